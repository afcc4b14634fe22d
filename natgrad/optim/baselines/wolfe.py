"""A line search for the strong Wolfe conditions (Nocedal and Wright, 2006, Algorithms 3.5 and 3.6).

With φ(α) = L(θ + αd) − L(θ) and φ'(0) = −slope < 0, a step is good where

    φ(α) ≤ −c₁ α slope    (the loss falls enough)    and    |φ'(α)| ≤ c₂ slope    (it would not fall much further).

The search grows α until [lo, hi] brackets a good step, then narrows it: lo is the lowest step known that falls enough,
and φ' at lo points into the bracket. The next trial is the minimizer of the cubic through values and slopes at the two
ends, kept away from both, or the midpoint where the last trial did not shorten the bracket by a third. Growing and
narrowing are one loop with one evaluation, which keeps compilation short; each trial gives value and gradient together,
and the gradient at the step found is handed on, so that nothing is evaluated twice.

Where the fall that the slope promises drops below √eps of the loss, its measurement may drown in round-off; then any
fall will do for the first condition, as the slope alone decides (after Hager and Zhang, 2005). The loss never rises.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from natgrad.options import Checked, Count, Fraction


class Trial(NamedTuple):
    """A step, φ and φ' there, and what else the evaluation gave."""

    step: Float[Array, ""]
    change: Float[Array, ""]
    slope: Float[Array, ""]
    extra: Any


class WolfeResult(eqx.Module):
    """`step` is 0 where no descent was found; `wolfe` says whether both conditions hold; `extra` belongs to `step`."""

    step: Float[Array, ""]
    change: Float[Array, ""]
    extra: Any
    evaluations: Int[Array, ""]
    wolfe: Bool[Array, ""]


class _Carry(NamedTuple):
    step: Array  # the next trial
    lo: Trial
    hi: Trial  # without extra; before the bracket: the lo before this one
    bracketed: Array
    width: Array
    evaluations: Array
    found: Array


class Wolfe(Checked):
    """Strong Wolfe search by bracketing and cubic interpolation (Nocedal and Wright, 2006, Algorithms 3.5, 3.6).

    It looks for φ(α) ≤ φ(0) + c₁ α φ'(0) with |φ'(α)| ≤ c₂ |φ'(0)|: `ng.BFGS(search=ng.Wolfe(curvature=0.5))`.

    Arguments:
        decrease: c₁.
        curvature: c₂.
        max_evaluations: the most evaluations; after them the search takes the lowest step that it found, or 0 where
            that does not lower the loss enough.
    """

    decrease: Fraction = eqx.field(static=True, default=1e-4)
    curvature: Fraction = eqx.field(static=True, default=0.9)
    max_evaluations: Count = eqx.field(static=True, default=25)

    def __check_init__(self):
        super().__check_init__()
        if not self.decrease < self.curvature:
            raise ValueError(f"Wolfe needs decrease < curvature, got {self.decrease} and {self.curvature}")

    def __call__(
        self,
        evaluate: Callable[[Array], tuple[Array, Array, Any]],
        slope: Float[Array, ""],
        start: Float[Array, ""],
        loss: Float[Array, ""],
        extra: Any,
    ) -> WolfeResult:
        """Searches along one direction.

        Arguments:
            evaluate: α ↦ (φ(α), φ'(α), extra), with extra any arrays, the gradient say.
            slope: −φ'(0) > 0.
            start: the first trial.
            loss: L(θ), whose size says what round-off is.
            extra: `extra` at α = 0.
        """
        dtype = slope.dtype
        eps = jnp.finfo(dtype).eps
        zero = jnp.zeros((), dtype)
        origin = Trial(zero, zero, -slope, extra)

        def body(c: _Carry) -> _Carry:
            change, derivative, more = evaluate(c.step)
            trial = Trial(c.step, change, derivative, more)
            finite = jnp.isfinite(change) & jnp.isfinite(derivative)
            promised = c.step * slope
            bound = jnp.where(promised <= jnp.sqrt(eps) * jnp.abs(loss), 0.0, -self.decrease * promised)
            falls = finite & (change <= bound) & (change < 0)
            found = falls & (jnp.abs(derivative) <= self.curvature * slope)
            # A trial that is no better than lo becomes the far end, another the new lo.
            far = ~found & (~falls | (change >= c.lo.change))
            # The slope at the new lo points out of the bracket: the old lo is the far end.
            ahead = jnp.where(c.bracketed, c.hi.step - c.lo.step, 1.0)
            turned = ~far & (derivative * ahead >= 0)
            bracketed = c.bracketed | far | turned
            lo = jax.tree.map(lambda old, new: jnp.where(far, old, new), c.lo, trial)
            bare = lambda t: t._replace(extra=())
            hi = jax.tree.map(
                lambda old_hi, old_lo, new: jnp.where(far, new, jnp.where(turned | ~bracketed, old_lo, old_hi)),
                c.hi,
                bare(c.lo),
                bare(trial),
            )
            width = jnp.abs(hi.step - lo.step)
            slow = c.bracketed & (width > 2 / 3 * c.width)
            step = jnp.where(bracketed, _inside(lo, hi, slow), _beyond(lo, hi))
            return _Carry(step, lo, hi, bracketed, width, c.evaluations + 1, found)

        def go_on(c: _Carry) -> Array:
            alive = ~c.bracketed | (c.width > 4 * eps * jnp.maximum(c.lo.step, c.hi.step))
            return ~c.found & alive & (c.evaluations < self.max_evaluations) & jnp.isfinite(c.step)

        first = _Carry(
            start, origin, origin._replace(extra=()), jnp.asarray(False), zero, jnp.asarray(0), jnp.asarray(False)
        )
        last = jax.lax.while_loop(go_on, body, first)
        return WolfeResult(last.lo.step, last.lo.change, last.lo.extra, last.evaluations, last.found)


def _minimizer(a: Trial, b: Trial) -> Array:
    """The minimizer of the cubic through values and slopes at two steps; NaN where there is none."""
    d1 = a.slope + b.slope - 3 * (a.change - b.change) / (a.step - b.step)
    d2 = jnp.sign(b.step - a.step) * jnp.sqrt(d1**2 - a.slope * b.slope)
    return b.step - (b.step - a.step) * (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)


def _inside(lo: Trial, hi: Trial, slow: Array) -> Array:
    """The next trial in a bracket: a tenth of it away from the ends at least. A far end that is not finite says
    nothing but that it is far."""
    gap = hi.step - lo.step
    t = (_minimizer(lo, hi) - lo.step) / gap
    t = jnp.where(jnp.isfinite(t) & ~slow, jnp.clip(t, 0.1, 0.9), 0.5)
    wild = ~(jnp.isfinite(hi.change) & jnp.isfinite(hi.slope))
    return lo.step + jnp.where(wild, 0.1, t) * gap


def _beyond(lo: Trial, before: Trial) -> Array:
    """The next trial while the loss still falls steeply."""
    gap = lo.step - before.step
    t = (_minimizer(before, lo) - lo.step) / gap
    return lo.step + jnp.where(jnp.isfinite(t) & (t > 0), jnp.clip(t, 1.0, 4.0), 2.0) * gap
