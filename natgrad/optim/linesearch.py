"""Searches for the step size α along a path θ(α) with θ(0) = θ; none ever raises the loss.

A search sees the change of the loss, φ(α) = L(θ(α)) − L(θ), and the slope −φ'(0) = ∇Lᵀd ≥ 0. The problem computes φ
without cancellation, so the searches go on where the loss itself no longer changes in floating point.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from natgrad.options import Checked, Count, Fraction


class SearchResult(eqx.Module):
    """`step_size`, α, is 0 where no descent was found."""

    step_size: Float[Array, ""]
    change: Float[Array, ""]
    evaluations: Int[Array, ""]


class LineSearch(Checked):
    """How far to go along the path of a step, for a `NaturalGradient(search=…)`: the base of `Armijo` and `GridSearch`.

    One of your own is a call that gives a `SearchResult`; the step 0 rejects the direction.
    """

    @abc.abstractmethod
    def __call__(self, change: Callable[[Array], Array], slope: Float[Array, ""]) -> SearchResult:
        """`change(α)` is φ(α), `slope` −φ'(0)."""


class Armijo(LineSearch):
    """Backtracking until φ(α) ≤ −c α ∇Lᵀd (Armijo, 1966).

    Arguments:
        decrease: c.
        shrink: the factor between trials.
        max_trials: after so many the step is given up, and 0 returned.
    """

    decrease: Fraction = eqx.field(static=True, default=1e-4)
    shrink: Fraction = eqx.field(static=True, default=0.5)
    max_trials: Count = eqx.field(static=True, default=30)

    def __call__(self, change, slope):
        good = lambda step, phi: (phi <= -self.decrease * step * slope) & (phi < 0) & jnp.isfinite(phi)

        def go_on(carry):
            step, phi, trials = carry
            return ~good(step, phi) & (trials < self.max_trials)

        def shrink(carry):  # the first trial in the loop, too: XLA compiles it once
            step, _, trials = carry
            step = jnp.where(trials == 0, step, self.shrink * step)
            return step, change(step), trials + 1

        start = jnp.ones_like(slope), jnp.full_like(slope, jnp.inf), jnp.asarray(0)
        step, phi, trials = jax.lax.while_loop(go_on, shrink, start)
        found = good(step, phi)
        return SearchResult(jnp.where(found, step, 0.0), jnp.where(found, phi, 0.0), trials)


class GridSearch(LineSearch):
    """The best of α = 1, ½, ¼, …, 2^(1−points), all evaluated; 0 where none lowers the loss.

    ng.NystromNGD(search=ng.GridSearch(points=20))
    """

    shrink: Fraction = eqx.field(static=True, default=0.5)
    points: Count = eqx.field(static=True, default=30)

    def __call__(self, change, slope):
        steps = jnp.asarray(self.shrink, slope.dtype) ** jnp.arange(self.points)
        phis = jax.lax.map(change, steps)
        phis = jnp.where(jnp.isfinite(phis), phis, jnp.inf)
        best = jnp.argmin(phis)
        found = phis[best] < 0
        return SearchResult(
            jnp.where(found, steps[best], 0.0), jnp.where(found, phis[best], 0.0), jnp.asarray(self.points)
        )
