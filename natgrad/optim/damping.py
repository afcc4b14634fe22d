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
DECAY = 1 / 3  # of the default `Geometric`, and of the c of D (`natgrad.optim.direction`), a step


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


class Formula(Damping):
    """A rule by a formula; with `short` > 0 the steps have their say, and μ = s·max(γ·eps·λ̂₁, `extra`).

    s ≥ 1 grows by the factor `up` after a step α < `short` and falls by four after a longer one. Where steps are long,
    s is 1. Where the formula asks for too little (the loss of a small network is small before its minimum is near, 2⁻ᵏ
    is gone after 30 steps, whatever they brought), the steps become short, and s brings μ back. The paper's rules have
    short = 0.
    """

    short: float = eqx.field(static=True, default=0.0, kw_only=True)
    up: float = eqx.field(static=True, default=2.0, kw_only=True)

    def mu(self, state, **known):
        return jnp.maximum(state, 1.0) * super().mu(state, **known)

    def update(self, state, *, mu, step, gain):
        times = jnp.maximum(state, 1.0) * jnp.where(step < self.short, self.up, 0.25)
        return jnp.minimum(times, 1 / jnp.finfo(state.dtype).eps)


class Spectral(Formula):
    """μ = γ·eps·λ̂₁, the round-off of G and no more: `ng.FullNGD(damping=ng.damping.Spectral(gamma=10))`."""

    gamma: float = eqx.field(static=True, default=10.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return jnp.zeros_like(loss)


class LossPower(Formula):
    """μ = max(γ·eps·λ̂₁, c·|L|^α); the paper's rule for PINNs has c = 1e-4, α = 2."""

    gamma: float = eqx.field(static=True, default=10.0)
    scale: float = eqx.field(static=True, default=1e-4)
    power: float = eqx.field(static=True, default=2.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return self.scale * jnp.abs(loss) ** self.power


class GradientPower(Formula):
    """μ = max(γ·eps·λ̂₁, c·‖∇L‖^α), with c = `scale` and α = `power` (section 4.3 of the paper)."""

    gamma: float = eqx.field(static=True, default=10.0)
    scale: float = eqx.field(static=True, default=1e-4)
    power: float = eqx.field(static=True, default=2.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return self.scale * gradient_norm**self.power


class Geometric(Formula):
    """μ = max(γ·eps·λ̂₁, ratioᵏ) at iteration k: a rule for energies, whose value says nothing about the distance to the
    minimum, and finite elements. The paper's has 2⁻ᵏ; the default recipe takes a quarter fewer steps by 3⁻ᵏ with
    `short=0.2, up=8`."""

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
    """`LossPower` for least squares and `Geometric` for energies, as in the paper; unless `published`, these look at
    the steps, and finite elements have the latter in any case."""

    gamma: float = eqx.field(static=True, default=10.0)
    published: bool = eqx.field(static=True, default=False)

    def resolve(self, problem: Problem) -> Damping:
        if self.published:
            return LossPower(self.gamma) if problem.least_squares else Geometric(self.gamma)
        if problem.damp_by_loss:
            return LossPower(self.gamma, short=0.2)
        return Geometric(self.gamma, DECAY, short=0.2, up=8.0)

    def extra(self, state, loss, gradient_norm, iteration):
        return jnp.zeros_like(loss)
