"""Rules for the regularization μ of (G + μI) d = ∇L (section 4.3 of the paper).

Every rule keeps μ ≥ γ·eps·λ̂₁; the rules differ in how much more they ask for far from the minimum. A rule is asked by
the direction solver, the owner of μ, once it knows λ̂₁.

γ = 10 is the cut-off below which the eigenvalues of an assembled G are round-off. It is no limit for products with
A = W^½J: the errors of Aᵀ(Av) are small where Av is, and conjugate gradients solve with AᵀA + μI for far smaller μ. The
last digits are there: once all steps are full ones, what is left of the error lies in directions that μ holds back.
"""

import abc

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from natgrad import host
from natgrad.problem import Problem

DampingState = Float[Array, ""]


class Damping(eqx.Module):
    """μ = max(γ·eps·λ̂₁, `extra`), a scalar; `extra` is what a rule adds (section 4.3 of the paper)."""

    gamma: eqx.AbstractVar[float]

    def resolve(self, problem: Problem) -> "Damping":
        """The rule itself, or the one it stands for on this problem."""
        return self

    def init(self, dtype: jnp.dtype) -> DampingState:
        """The rule's memory: one number."""
        return host.zeros((), dtype)

    def mu(
        self,
        state: DampingState,
        *,
        largest: Float[Array, ""],
        loss: Float[Array, ""],
        gradient_norm: Float[Array, ""],
        iteration: Int[Array, ""],
    ) -> Float[Array, ""]:
        """μ for this step, from λ̂₁ (`largest`), L, ‖∇L‖ and the iteration k = 0, 1, …"""
        floor = self.gamma * jnp.finfo(largest.dtype).eps * largest
        # A zero Gramian leaves nothing to scale by: any positive μ gives a gradient step.
        floor = jnp.where(floor > 0, floor, jnp.finfo(largest.dtype).eps)
        extra = self.extra(state, loss, gradient_norm, iteration)
        return jnp.maximum(floor, jnp.where(jnp.isfinite(extra), extra, 0.0)).astype(largest.dtype)

    @abc.abstractmethod
    def extra(self, state: DampingState, loss: Array, gradient_norm: Array, iteration: Array) -> Array:
        """What the rule asks for beyond round-off."""

    def update(self, state: DampingState, *, mu: Array, step: Array, gain: Array) -> DampingState:
        """After a step of size `step` (0 for a rejected one); `gain` is the actual over the predicted decrease of the
        loss."""
        return state


class Spectral(Damping):
    """μ = γ·eps·λ̂₁, the round-off of G and no more: `ng.FullNGD(damping=ng.damping.Spectral(gamma=10))`."""

    gamma: float = eqx.field(static=True, default=10.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return jnp.zeros_like(loss)


class LossPower(Damping):
    """μ = max(γ·eps·λ̂₁, c·|L|^α); the paper's rule for PINNs has c = 1e-4, α = 2."""

    gamma: float = eqx.field(static=True, default=10.0)
    scale: float = eqx.field(static=True, default=1e-4)
    power: float = eqx.field(static=True, default=2.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return self.scale * jnp.abs(loss) ** self.power


class FollowSteps(Damping):
    """μ goes up tenfold after a step shorter than `short` and down tenfold after a longer one, between two bounds:

        max(γ·eps·λ̂₁, low·L)  ≤  μ  ≤  high·L²    (or the lower bound, where that is larger).

    The upper bound is the paper's rule. Alone it is far too much for equations that are linear, where steps are good at
    any μ, and what nonlinear ones need before their loss is small. It falls with the loss, so that μ is at the lower
    bound in the end, whatever the steps. Networks of some thousand parameters need half the steps with it, larger ones
    as many, and smaller ones more: `ng.NystromNGD(damping=ng.damping.FollowSteps(gamma=0.1))`.
    """

    gamma: float = eqx.field(static=True, default=10.0)
    low: float = eqx.field(static=True, default=1e-10)
    high: float = eqx.field(static=True, default=1e-4)
    short: float = eqx.field(static=True, default=0.2)
    factor: float = eqx.field(static=True, default=10.0)

    def init(self, dtype):
        return host.array(jnp.inf, dtype)

    def extra(self, state, loss, gradient_norm, iteration):
        low = self.low * jnp.abs(loss)
        return jnp.clip(state, low, jnp.maximum(low, self.high * loss**2))

    def update(self, state, *, mu, step, gain):
        return mu * jnp.where(step < self.short, self.factor, 1 / self.factor)


class GradientPower(Damping):
    """μ = max(γ·eps·λ̂₁, c·‖∇L‖^α), with c = `scale` and α = `power` (section 4.3 of the paper)."""

    gamma: float = eqx.field(static=True, default=10.0)
    scale: float = eqx.field(static=True, default=1e-4)
    power: float = eqx.field(static=True, default=2.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return self.scale * gradient_norm**self.power


class Geometric(Damping):
    """μ = max(γ·eps·λ̂₁, 2⁻ᵏ) at iteration k, the paper's rule for energies, whose value says nothing about the distance
    to the minimum."""

    gamma: float = eqx.field(static=True, default=10.0)
    ratio: float = eqx.field(static=True, default=0.5)

    def extra(self, state, loss, gradient_norm, iteration):
        return jnp.asarray(self.ratio, loss.dtype) ** iteration


class LevenbergMarquardt(Damping):
    """μ grows where the quadratic model was wrong (gain < ¼) and shrinks where it was right (gain > ¾), from `start` on
    (Levenberg, 1944; Marquardt, 1963): `ng.FullNGD(damping=ng.damping.LevenbergMarquardt(start=1.0))`."""

    gamma: float = eqx.field(static=True, default=10.0)
    start: float = eqx.field(static=True, default=1e-3)
    up: float = eqx.field(static=True, default=2.0)
    down: float = eqx.field(static=True, default=3.0)

    def init(self, dtype):
        return host.array(self.start, dtype)

    def extra(self, state, loss, gradient_norm, iteration):
        return state

    def update(self, state, *, mu, step, gain):
        # From μ and not from the state: below the round-off floor the state would drift away unheard.
        factor = jnp.where(gain > 0.75, 1 / self.down, jnp.where(gain < 0.25, self.up, 1.0))
        return mu * factor


class Auto(Damping):
    """`LossPower` for least squares, `LevenbergMarquardt` for energies; with `published` the paper's `Geometric`.

    2⁻ᵏ is gone after some 30 steps, whether the minimum is near by then or not: on meshes with corners and holes the
    steps become short there, and a rule that looks at them came 10 to 50 times further in 60 steps.
    """

    gamma: float = eqx.field(static=True, default=10.0)
    published: bool = eqx.field(static=True, default=False)

    def resolve(self, problem: Problem) -> Damping:
        if problem.least_squares:
            return LossPower(self.gamma)
        return Geometric(self.gamma) if self.published else LevenbergMarquardt(self.gamma)

    def extra(self, state, loss, gradient_norm, iteration):
        return jnp.zeros_like(loss)
