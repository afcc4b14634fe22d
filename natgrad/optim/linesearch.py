"""Searches for the step size α along a path θ(α) with θ(0) = θ; none ever raises the loss.

A search sees the change of the loss, φ(α) = L(θ(α)) − L(θ), and the slope −φ'(0) = ∇Lᵀd ≥ 0. The problem computes φ
without cancellation, so the searches go on where the loss itself no longer changes in floating point.

They end at the round-off of the loss, below which there is nothing left to descend (`at_round_off`). Parameters are
known to their last digit. Where that digit is changed, θᵢ → θᵢ(1 ± eps), the loss changes by what floating point cannot
tell from nothing: the rounding of the parameters and all that of evaluating the loss, whatever terms it is the
difference of. Where a step was rejected, or moved the last digits alone, and had promised no more than the largest of a
few such changes, there was nothing to find. The test has no units: a loss and its changes scale alike, and so do
parameters and their digits.
"""

import abc
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from natgrad.options import Checked, Count, Fraction

PROBES = 8
NEAR = 64.0  # times eps ‖θ‖: a step that went no further is looked at, for its decrease may be round-off, too


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
        max_trials: the most trials; after them the search gives up and returns 0.
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


def at_round_off(
    change: Callable[[Array], Array], theta: Float[Array, " p"], new: Float[Array, " p"], promised: Float[Array, ""]
) -> Bool[Array, ""]:
    """Whether a step from θ that ended at `new`, and had promised such a decrease, was within round-off.

    `change(θ⁺)` is L(θ⁺) − L(θ); it is evaluated only where the step left θ as it was, to the last digits.
    """
    eps, places = jnp.finfo(theta.dtype).eps, jnp.arange(theta.size)
    near = jnp.linalg.norm(new - theta) <= NEAR * eps * jnp.linalg.norm(theta)

    def probe(number, noise):
        # Signs of a golden rotation: spread evenly over the parameters, others for each probe, and no key is needed.
        turned = (0.6180339887498949 * places + 0.4142135623730951 * number) % 1.0
        signs = jnp.where(turned < 0.5, 1.0, -1.0).astype(theta.dtype)
        return jnp.maximum(noise, jnp.abs(change(theta * (1 + eps * signs))))

    noise = jax.lax.fori_loop(0, jnp.where(near, PROBES, 0), probe, jnp.zeros_like(promised))
    return near & (promised <= noise) & jnp.isfinite(noise)
