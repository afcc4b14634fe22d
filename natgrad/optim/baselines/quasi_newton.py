"""Quasi-Newton methods: θ⁺ = θ − α H ∇L(θ), H an approximation of the inverse Hessian learned from the steps.

With s = θ⁺ − θ and y = ∇L(θ⁺) − ∇L(θ), the next H satisfies the secant equation H⁺y = s. The methods differ in what
they remember (`empty`) and how they learn (`update`); the step around it is the same:

- α from a strong Wolfe search, which makes sᵀy > 0. It sees the change of the loss as the problem computes it, without
  cancellation, and its last gradient is kept for the next step.
- The first trial is α = 1, or, in the methods with a dense H, the smaller min(1, 2.02 (L₋ − L)/slope) that would repeat
  the fall of the step before (Nocedal and Wright, 2006, eq. 3.60).
- Without memory (at the start, or after a restart) the direction is −∇L and the first trial min(1, 1/|∇L|).
- Where no descent is found, the memory is dropped and the search repeated along −∇L. A step is rejected only where this
  fails too; where H promised no more than the round-off of the loss, it has `converged`.
- A pair with sᵀy ≤ 0 by round-off teaches nothing and is left out.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, PRNGKeyArray, PyTree

from natgrad.optim.baselines.info import BaselineInfo, loss_and_gradient
from natgrad.optim.baselines.wolfe import Wolfe
from natgrad.optim.linesearch import at_round_off
from natgrad.options import Checked
from natgrad.problem import Problem
from natgrad.problem.base import check_steppable


class Pair(eqx.Module):
    """What a step teaches: s, y, the new gradient, sᵀy, and sᵀBs with B = H⁻¹ of the step (B s = −α∇L)."""

    s: Float[Array, " p"]
    y: Float[Array, " p"]
    gradient: Float[Array, " p"]
    sy: Float[Array, ""]
    sBs: Float[Array, ""]
    good: Bool[Array, ""]


class QuasiNewtonState(eqx.Module):
    """Gradient and next direction at the parameters it comes with, and what the last step did to the loss.

    `fresh` means that `memory` holds nothing: H = I.
    """

    gradient: Float[Array, " p"]
    direction: Float[Array, " p"]
    memory: Any
    fresh: Bool[Array, ""]
    change: Float[Array, ""]


class QuasiNewton(Checked):
    """The step that all quasi-Newton methods share.

    The state holds the gradient at its parameters: a new problem or new parameters need a new `init`.
    """

    search: eqx.AbstractVar[Wolfe]

    #: Whether the first trial is one that would repeat the last fall of the loss, where this is less than 1.
    cautious: eqx.AbstractClassVar[bool]

    #: What it learns from the gradients of two steps holds for one loss: weights must stay as they are.
    compares: ClassVar[bool] = True

    @abc.abstractmethod
    def empty(self, size: int, dtype: Any) -> Any:
        """The memory before the first step, in its final shape."""

    @abc.abstractmethod
    def update(self, memory: Any, fresh: Bool[Array, ""], pair: Pair) -> tuple[Any, Float[Array, " p"]]:
        """The memory with the pair in it, and H⁺∇L(θ⁺). Where `fresh`, whatever `memory` holds is to be ignored; where
        not `pair.good`, the pair."""

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> QuasiNewtonState:
        """The state before the first step; `key` is not used."""
        _, gradient = loss_and_gradient(problem, params)
        memory, zero = self.empty(gradient.size, gradient.dtype), jnp.zeros((), gradient.dtype)
        return QuasiNewtonState(gradient, -gradient, memory, jnp.asarray(True), zero)

    def step(
        self, problem: Problem, params: PyTree, state: QuasiNewtonState
    ) -> tuple[PyTree, QuasiNewtonState, BaselineInfo]:
        """One iteration: one line search, or two where the first finds no descent; pure, jittable."""
        check_steppable(problem)
        theta, unravel = ravel_pytree(params)
        g = state.gradient
        loss, norm = problem.loss(params), jnp.linalg.norm(g)
        difference = problem.changes(params)
        change = jax.value_and_grad(lambda t: difference(unravel(t)))
        nothing = jnp.asarray(0.0, theta.dtype)

        def attempt(carry):
            tried, d, fresh, _, evaluations = carry
            downhill = jnp.all(jnp.isfinite(d)) & (g @ d < 0)
            fresh = fresh | tried | ~downhill  # second time round, whatever was remembered has failed
            d = jnp.where(fresh, -g, d)

            def evaluate(step):
                value, gradient = change(theta + step * d)
                return value, gradient @ d, gradient

            slope = -(g @ d)
            usual = jnp.clip(-2.02 * state.change / slope, 1e-3, 1.0) if self.cautious else 1.0
            start = jnp.where(fresh, jnp.minimum(1.0, 1.0 / norm), usual)
            found = self.search(evaluate, slope, start, loss, g)
            return jnp.asarray(True), d, fresh, (found.step, found.change, found.extra), evaluations + found.evaluations

        def go_on(carry):
            tried, _, fresh, (step, _, _), _ = carry
            return ~tried | ((step == 0) & ~fresh)

        first = (jnp.asarray(False), state.direction, state.fresh, (nothing, nothing, g), jnp.asarray(0))
        _, d, fresh, (step, delta, gradient), evaluations = jax.lax.while_loop(go_on, attempt, first)

        accepted = step > 0
        new = jnp.where(accepted, theta + step * d, theta)
        # ½ gᵀHg, of which an H that was just begun knows nothing but that a zero gradient promises none.
        promised = jnp.where(state.fresh & (norm > 0), jnp.inf, -0.5 * (g @ state.direction))
        converged = at_round_off(lambda theta: difference(unravel(theta)), theta, new, promised)
        s, y = new - theta, gradient - g
        sy = s @ y
        good = accepted & (sy > jnp.finfo(theta.dtype).eps * jnp.linalg.norm(s) * jnp.linalg.norm(y))
        memory, ahead = self.update(state.memory, fresh, Pair(s, y, gradient, sy, -step * (s @ g), good))
        info = BaselineInfo(
            loss=loss,
            change=delta,
            gradient_norm=norm,
            step_size=step,
            evaluations=evaluations,
            restarted=fresh & ~state.fresh,
            accepted=accepted,
            converged=converged,
        )
        fresh = fresh & ~good
        direction = jnp.where(fresh, -gradient, -ahead)
        return unravel(new), QuasiNewtonState(gradient, direction, memory, fresh, delta), info
