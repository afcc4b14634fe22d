"""Preconditioner builders: from a Gramian to a low-rank Ĝ ≈ G and the inverse of Ĝ + μI on its range.

A builder keeps what it built in its state, so that the direction solver may use it for many steps: μ enters only when
the preconditioner is applied, and a rebuild is asked for when the inner solve says that Ĝ has grown stale. Shapes are
static (p × max_rank); the rank ℓ is a number that masks columns, so that a run compiles once.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad.gramian import Gramian
from natgrad.linalg import LowRank

MuRule = Callable[[Float[Array, ""]], Float[Array, ""]]  # λ̂₁ ↦ μ


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


class Preconditioner(eqx.Module):
    """A builder of preconditioners."""

    @abc.abstractmethod
    def init(self, size: int, dtype: jnp.dtype, key: PRNGKeyArray) -> Approximation:
        """The state before anything is built."""

    @abc.abstractmethod
    def build(self, gramian: Gramian, mu: MuRule, state: Approximation, key: PRNGKeyArray) -> Approximation:
        """A fresh approximation of the Gramian."""

    @abc.abstractmethod
    def inverse(self, state: Approximation, mu: Float[Array, ""]) -> Callable[[Array], Array]:
        """v ↦ P⁻¹ v."""


def empty(size: int, width: int, rank: int, dtype: jnp.dtype) -> Approximation:
    """Nothing known yet: P = μI."""
    return Approximation(
        basis=jnp.zeros((size, width), dtype),
        eigenvalues=jnp.zeros((width,), dtype),
        largest=jnp.zeros((), dtype),
        rank=jnp.asarray(0, jnp.int32),
        next_rank=jnp.asarray(min(rank, width), jnp.int32),
    )
