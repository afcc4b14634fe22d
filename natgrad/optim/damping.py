"""Rules for the regularization μ of (G + μI) d = ∇L (section 4.3 of the paper), and the guard around a rule.

Every rule keeps μ ≥ γ·eps·λ̂₁; the rules differ in how much more they ask for far from the minimum. γ = 10 is the
cut-off below which the eigenvalues of an assembled G are round-off. It is no limit for products with A = W^½J: the
errors of Aᵀ(Av) are small where Av is, and conjugate gradients solve with AᵀA + μI for far smaller μ. The last digits
are there: once all steps are full ones, what is left of the error lies in directions that μ holds back.

The paper's rules have units: if the residuals are multiplied by s, G and L grow by s², but 1e-4 L² by s⁴, and 2⁻ᵏ not
at all. `Relative`, the default, compares like with like: μ with λ̂₁, L with L at the start.

A formula cannot know what the steps will say. `Guarded` listens to them: μ is multiplied by s ≥ 1, which grows where
steps are short and falls where they are long. That is the only memory of the steps: a rejected step, a short one and a
Cholesky factorization that needed more than it was given all raise s. The published recipe has no guard.
"""

import abc
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from natgrad.backend import host
from natgrad.options import Checked, Factor, Fraction, NonNegative, Positive, Share
from natgrad.problem import Problem


class Seen(NamedTuple):
    """What is known when μ is asked for: λ̂₁, L, ‖∇L‖ and the iteration k = 0, 1, … (section 4.3 of the paper)."""

    largest: Float[Array, ""]
    loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    iteration: Int[Array, ""]


class Outcome(NamedTuple):
    """What became of a step: what was `seen` before it, the μ `asked` for and the μ it had, the step size α (0 for a
    rejected step), and `gain`, the actual over the predicted decrease of the loss."""

    seen: Seen
    asked: Float[Array, ""]
    mu: Float[Array, ""]
    step_size: Float[Array, ""]
    gain: Float[Array, ""]


class Damping(Checked):
    """What is asked for μ at every step: a `Rule` (section 4.3 of the paper), or a guard around one."""

    def resolve(self, problem: Problem) -> Any:
        """The rule itself, or the one it stands for on this problem."""
        return self

    def init(self, dtype: jnp.dtype) -> Any:
        """The rule's memory before the first step."""
        return None

    @abc.abstractmethod
    def mu(self, state: Any, seen: Seen) -> Float[Array, ""]:
        """μ for this step."""

    def update(self, state: Any, outcome: Outcome) -> Any:
        """The memory after a step."""
        return state

    def guard(self, state: Any, dtype: jnp.dtype) -> Float[Array, ""]:
        """s, the factor by which short steps have raised μ; 1 without a guard."""
        return jnp.ones((), dtype)


class Rule(Damping):
    """μ = max(γ·eps·λ̂₁, `extra`), a scalar; `extra` is what a rule adds (section 4.3 of the paper)."""

    gamma: eqx.AbstractVar[float]

    def mu(self, state, seen):
        dtype = seen.largest.dtype
        floor = self.gamma * jnp.finfo(dtype).eps * seen.largest
        # A zero Gramian leaves nothing to scale by: any positive μ gives a gradient step.
        floor = jnp.where(floor > 0, floor, jnp.finfo(dtype).eps)
        extra = self.extra(state, seen)
        return jnp.maximum(floor, jnp.where(jnp.isfinite(extra), extra, 0.0)).astype(dtype)

    @abc.abstractmethod
    def extra(self, state: Any, seen: Seen) -> Array:
        """What the rule asks for beyond round-off."""


class Spectral(Rule):
    """μ = γ·eps·λ̂₁, the round-off of G and no more: `ng.FullNGD(damping=ng.damping.Spectral(gamma=10))`."""

    gamma: Positive = eqx.field(static=True, default=10.0)

    def extra(self, state, seen):
        return jnp.zeros_like(seen.loss)


class LossPower(Rule):
    """μ = max(γ·eps·λ̂₁, c·|L|^α); the paper's rule for PINNs has c = 1e-4, α = 2."""

    gamma: Positive = eqx.field(static=True, default=10.0)
    scale: NonNegative = eqx.field(static=True, default=1e-4)
    power: NonNegative = eqx.field(static=True, default=2.0)

    def extra(self, state, seen):
        return self.scale * jnp.abs(seen.loss) ** self.power


class GradientPower(Rule):
    """μ = max(γ·eps·λ̂₁, c·‖∇L‖^α), with c = `scale` and α = `power` (section 4.3 of the paper)."""

    gamma: Positive = eqx.field(static=True, default=10.0)
    scale: NonNegative = eqx.field(static=True, default=1e-4)
    power: NonNegative = eqx.field(static=True, default=2.0)

    def extra(self, state, seen):
        return self.scale * seen.gradient_norm**self.power


class Geometric(Rule):
    """μ = max(γ·eps·λ̂₁, ratioᵏ) at iteration k: the paper's rule for energies, whose value says nothing about the
    distance to the minimum, has ratio = ½."""

    gamma: Positive = eqx.field(static=True, default=10.0)
    ratio: Fraction = eqx.field(static=True, default=0.5)

    def extra(self, state, seen):
        return jnp.asarray(self.ratio, seen.loss.dtype) ** seen.iteration


class LevenbergMarquardt(Rule):
    """μ grows where the quadratic model was wrong (gain < ¼) and shrinks where it was right (gain > ¾), from
    `start`·λ̂₁ on (Levenberg, 1944; Marquardt, 1963): `ng.FullNGD(damping=ng.damping.LevenbergMarquardt(start=1e-3))`.
    """

    gamma: Positive = eqx.field(static=True, default=10.0)
    start: Positive = eqx.field(static=True, default=1e-5)
    up: Factor = eqx.field(static=True, default=2.0)
    down: Factor = eqx.field(static=True, default=3.0)

    def init(self, dtype):
        return host.array(jnp.nan, dtype)

    def extra(self, state, seen):
        return jnp.where(jnp.isnan(state), self.start * seen.largest, state)

    def update(self, state, outcome):
        # From μ and not from the state: below the round-off floor the state would drift away unheard.
        factor = jnp.where(outcome.gain > 0.75, 1 / self.down, jnp.where(outcome.gain < 0.25, self.up, 1.0))
        return outcome.mu * factor


class Start(eqx.Module):
    """The memory of `Relative(…)`: λ̂₁ and L of the first step, scalars; NaN before it."""

    largest: Float[Array, ""]
    loss: Float[Array, ""]


class Relative(Rule):
    """A rule without units, at iteration k:

        μ = max(γ·eps·λ̂₁, c·λ̂₁·dᵏ·(L/L(0))²)     where the loss is zero at a solution (`by_loss`)
        μ = max(γ·eps·λ̂₁, c·λ̂₁(0)·dᵏ)            for energies, which are known up to a constant only

    c is `start` and d `decay`. λ̂₁ grows by two to four orders of magnitude in the first ten steps: for energies, whose
    μ is to fall whatever the steps bring, the first one counts. None is what the problem says (`Problem.caution`,
    `Problem.least_squares`): `ng.NystromNGD(damping=ng.damping.Guarded(ng.damping.Relative(gamma=0.1, start=1e-4)))`.
    """

    gamma: Positive = eqx.field(static=True, default=10.0)
    start: Positive | None = eqx.field(static=True, default=None)
    decay: Share | None = eqx.field(static=True, default=None)
    by_loss: bool | None = eqx.field(static=True, default=None)

    def resolve(self, problem):
        start, decay = problem.caution
        return Relative(
            self.gamma,
            start if self.start is None else self.start,
            decay if self.decay is None else self.decay,
            problem.least_squares if self.by_loss is None else self.by_loss,
        )

    def init(self, dtype):
        unknown = host.array(jnp.nan, dtype)
        return Start(unknown, unknown)

    def extra(self, state, seen):
        if self.start is None or self.decay is None:
            raise TypeError("Relative stands for a rule with a start: resolve(problem) gives it")
        first, fading = self._first(state, seen), jnp.asarray(self.decay, seen.loss.dtype) ** seen.iteration
        if self.by_loss:
            return self.start * seen.largest * fading * (seen.loss / first.loss) ** 2
        return self.start * first.largest * fading

    def update(self, state, outcome):
        return self._first(state, outcome.seen)

    def _first(self, state: Start, seen: Seen) -> Start:
        known = lambda first, now: jnp.where(jnp.isnan(first), now, first)
        return Start(known(state.largest, seen.largest), known(state.loss, seen.loss))


class Watched(eqx.Module):
    """The memory of `Guarded(…)`: s, a scalar, and the memory of its rule."""

    times: Float[Array, ""]
    rule: Any


class Guarded(Damping):
    """s times the μ of a rule, at most λ̂₁: s grows by `up` after a step α < `short` and falls by `down` after others.

    Where steps are long, s is 1. Where a formula asks for too little, the steps become short, and s brings μ back. A
    Cholesky factorization that took more than μ to succeed raises s by as much.
    `ng.FullNGD(damping=ng.damping.Guarded(ng.damping.Spectral(10.0)))`
    """

    rule: Rule
    short: Share = eqx.field(static=True, default=0.2)
    up: Factor = eqx.field(static=True, default=8.0)
    down: Factor = eqx.field(static=True, default=4.0)

    def resolve(self, problem):
        return Guarded(self.rule.resolve(problem), self.short, self.up, self.down)

    def init(self, dtype):
        return Watched(host.array(1, dtype), self.rule.init(dtype))

    def mu(self, state, seen):
        alone = self.rule.mu(state.rule, seen)
        return jnp.minimum(state.times * alone, jnp.maximum(alone, seen.largest))

    def update(self, state, outcome):
        times = state.times * outcome.mu / outcome.asked
        times = times * jnp.where(outcome.step_size < self.short, self.up, 1 / self.down)
        # Beyond λ̂₁ every step is a gradient step, and more damping is only a shorter one.
        most = jnp.maximum(1.0, outcome.seen.largest * state.times / outcome.asked)
        return Watched(jnp.clip(times, 1.0, most), self.rule.update(state.rule, outcome))

    def guard(self, state, dtype):
        return state.times


class Published(Rule):
    """The rules of the paper: `LossPower` for least squares and `Geometric` for energies."""

    gamma: Positive = eqx.field(static=True, default=10.0)

    def resolve(self, problem):
        return LossPower(self.gamma) if problem.least_squares else Geometric(self.gamma)

    def extra(self, state, seen):
        raise TypeError("Published stands for another rule: resolve(problem) gives it")
