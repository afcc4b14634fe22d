"""Builders of preconditioners: from a Gramian to Ĝ ≈ G of low rank, and from Ĝ to the inverse of Ĝ + μI.

A builder makes an `Approximation` at every step and hands on a state, which is what the next step needs of this one. μ
enters only where the inverse is applied, so that two solves with one approximation may be damped differently. Shapes
are static; the rank ℓ is a number that masks columns or picks one of a few widths, so that a run compiles once.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from natgrad.gramian import Gramian
from natgrad.options import Checked, Count
from natgrad.problem import Problem

MAX_RANK = 1000  # where neither the user nor the problem says another
MuRule = Callable[[Float[Array, ""]], Float[Array, ""]]  # λ̂₁ ↦ μ
Inverse = Callable[[Array], Array]  # v ↦ P⁻¹ v


def round_off(largest: Float[Array, ""]) -> Float[Array, ""]:
    """10·eps·λ₁: below it the eigenvalues of an assembled Gramian, and its diagonal, say nothing."""
    return 10 * jnp.finfo(largest.dtype).eps * largest


class Approximation(eqx.Module):
    """Ĝ ≈ G, with λ̂₁ and the rank ℓ."""

    largest: eqx.AbstractVar[Float[Array, ""]]
    rank: eqx.AbstractVar[Int[Array, ""]]

    @property
    def rebuilt(self) -> Bool[Array, ""] | bool:
        """Whether it was made in this step."""
        return True

    @abc.abstractmethod
    def inverse(self, mu: Float[Array, ""]) -> Inverse:
        """v ↦ P⁻¹ v, for P ≈ G + μI."""


class Preconditioner(Checked):
    """A builder of preconditioners for `PCG(preconditioner=…)`: the base of `RowFactor`, `Nystrom` and the others.

    One of your own has `init`, `build` and `inverse` (docs/extend.md has a worked one).
    """

    #: Whether an approximation has the `diagonal` of Ĝ (p,), which then scales the damping of the next step.
    has_diagonal: ClassVar[bool] = False

    #: How many arrays of p×ℓ a step with it holds at its peak (measured in docs/memory.md).
    copies: ClassVar[int] = 9

    def resolve(self, problem: Problem) -> "Preconditioner":
        """The builder with every option decided that it leaves to the problem."""
        return self

    @abc.abstractmethod
    def init(self, size: int, dtype: jnp.dtype, key: PRNGKeyArray) -> Any:
        """The state before anything is built."""

    @abc.abstractmethod
    def build(self, gramian: Gramian, mu: MuRule, state: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        """An `Approximation` of the Gramian, and the state after it."""

    def adapt(self, state: Any, iterations: Int[Array, ""], good: Bool[Array, ""]) -> Any:
        """The state after an inner solve that took `iterations`; `good` where it ended before its cap and the step was
        accepted."""
        return state


class Ranked(Preconditioner):
    """One that has a rank ℓ ≤ ℓ_max; None is what suits the problem."""

    max_rank: eqx.AbstractVar[Count | None]

    def resolve(self, problem):
        if self.max_rank is not None:
            return self
        return dataclasses.replace(self, max_rank=MAX_RANK if problem.max_rank is None else problem.max_rank)

    def widest(self, size: int) -> int:
        """ℓ_max for a matrix of a given size."""
        if self.max_rank is None:
            raise ValueError(f"{type(self).__name__} has no max_rank: give one, or let resolve(problem) do so")
        return min(self.max_rank, size)
