"""Preconditioner builders: from a Gramian to a low-rank Ĝ ≈ G and the inverse of Ĝ + μI on its range.

There are two forms. `Approximation` has eigenvectors of Ĝ, as in the paper: μ enters only when it is applied, so that
it may serve for many steps, and its eigenvalues say which rank is next. `Factored` is made of Ĝ = FᵀF by Cholesky
factorizations alone, anew at every step and at a fraction of the cost, and the iterations it leaves to the inner solve
say which rank is next. Shapes are static; the rank ℓ is a number that masks columns or picks one of a few widths, so
that a run compiles once.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad import host
from natgrad.gramian import Gramian
from natgrad.linalg import LowRank, orthogonal_factor

MAX_RANK = 1000  # where neither the user nor the problem says another
MuRule = Callable[[Float[Array, ""]], Float[Array, ""]]  # λ̂₁ ↦ μ


def round_off(largest: Float[Array, ""]) -> Float[Array, ""]:
    """10·eps·λ₁: below it the eigenvalues of an assembled Gramian, and its diagonal, say nothing."""
    return 10 * jnp.finfo(largest.dtype).eps * largest


class Approximation(eqx.Module):
    """What a builder keeps: U diag(λ̂) Uᵀ ≈ G of rank ≤ max_rank (or a factor F of it), and the rank to try next."""

    basis: Float[Array, "p m"]
    eigenvalues: Float[Array, " m"]
    largest: Float[Array, ""]
    rank: Int[Array, ""]
    next_rank: Int[Array, ""]

    def found(self) -> LowRank:
        """U diag(λ̂) Uᵀ with the eigenvalues above round-off alone.

        λ̂_ℓ, the scale of the preconditioner outside the range of U, is then the smallest of these: a zero, where the
        rank asked for exceeds the numerical one, says nothing about what lies outside.
        """
        return LowRank(self.basis, self.eigenvalues, jnp.sum(self.eigenvalues > 0))


class Factored(eqx.Module):
    """Ĝ = VᵀHV with orthonormal rows of V, and how many there are; the others are zero. And the diagonal of Ĝ."""

    V: Float[Array, "m p"]
    H: Float[Array, "m m"]
    largest: Float[Array, ""]
    rank: Int[Array, ""]
    diagonal: Float[Array, " p"]


def factored(F: Float[Array, "m p"], width: int) -> Factored:
    """From Ĝ = FᵀF, filled up to a given width."""
    V, H, largest = orthogonal_factor(F)
    fill = width - F.shape[0]
    H = jnp.pad(H, (0, fill))
    # A row of zeros is no direction, and must not be the smallest eigenvalue of H.
    none = jnp.diagonal(H) == 0
    rank = jnp.sum(~none).astype(jnp.int32)
    H = H + jnp.diag(jnp.where(none, largest, 0.0))
    return Factored(jnp.pad(V, ((0, fill), (0, 0))), H, largest, rank, jnp.sum(F**2, axis=0))


class Preconditioner(eqx.Module):
    """A builder of preconditioners."""

    def limited(self, max_rank: int | None) -> "Preconditioner":
        """With this ℓ_max, where it has one and was not told another."""
        return self

    @property
    def lasting(self) -> bool:
        """Whether what was built may be used at a later step."""
        return True

    @abc.abstractmethod
    def init(self, size: int, dtype: jnp.dtype, key: PRNGKeyArray) -> Any:
        """The state before anything is built."""

    @abc.abstractmethod
    def build(self, gramian: Gramian, mu: MuRule, state: Any, key: PRNGKeyArray) -> Any:
        """A fresh approximation of the Gramian, with its `largest` eigenvalue, its `rank` and, where it is not
        `lasting`, its `diagonal`."""

    @abc.abstractmethod
    def inverse(self, approximation: Any, mu: Float[Array, ""]) -> Callable[[Array], Array]:
        """v ↦ P⁻¹ v."""

    def keep(self, approximation: Any, state: Any) -> Any:
        """What the next step needs of an approximation, and of the state it was built from: the state."""
        return approximation

    def adapt(self, state: Any, iterations: Int[Array, ""]) -> Any:
        """The state after an inner solve of so many iterations."""
        return state


class Ranked(Preconditioner):
    """One that has a rank ℓ ≤ ℓ_max; None is what suits the problem."""

    max_rank: eqx.AbstractVar[int | None]

    def limited(self, max_rank):
        if self.max_rank is not None:
            return self
        return dataclasses.replace(self, max_rank=self.most if max_rank is None else max_rank)

    @property
    def most(self) -> int:
        """ℓ_max, told or not."""
        return MAX_RANK if self.max_rank is None else self.max_rank


def check_counts(builder: Preconditioner, *names: str) -> None:
    """Refuses numbers below 1; None is no number."""
    for name in names:
        if (value := getattr(builder, name)) is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")


def empty(size: int, width: int, rank: int, dtype: jnp.dtype) -> Approximation:
    """Nothing known yet: P = μI."""
    return Approximation(
        basis=host.zeros((size, width), dtype),
        eigenvalues=host.zeros(width, dtype),
        largest=host.zeros((), dtype),
        rank=host.array(0, np.int32),
        next_rank=host.array(min(rank, width), np.int32),
    )
