"""Adam (Kingma and Ba, 2015) by Optax, with a linear warm-up and a cosine decay of the rate.

A step ends where the next one begins: with the loss and the gradient at the new parameters. So the change of the loss
is known at no extra evaluation.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from natgrad.extras import needs
from natgrad.optim.baselines.info import BaselineInfo, loss_and_gradient
from natgrad.options import Checked, Count, NonNegative, Positive, Whole
from natgrad.problem import Problem
from natgrad.problem.base import check_steppable


class AdamState(eqx.Module):
    """Loss and gradient at the parameters it comes with, and the moments."""

    iteration: Int[Array, ""]
    loss: Float[Array, ""]
    gradient: Float[Array, " p"]
    moments: Any


class Adam(Checked):
    """Adam; by default with the schedule of the paper.

    The state holds the gradient at its parameters: a new problem or new parameters need a new `init`.

    Arguments:
        total: the iterations of the schedule; afterwards the rate stays at `end`.
        warmup: the iterations in which the rate climbs from `start` to `peak`; then it falls to `end` by half a
            cosine. A warm-up that does not fit (warmup ≥ total) is shortened to a tenth of the total.
        start, peak, end: the rates.
    """

    total: Count = eqx.field(static=True, default=150_000)
    warmup: Whole = eqx.field(static=True, default=5_000)
    peak: Positive = eqx.field(static=True, default=1e-3)
    start: NonNegative = eqx.field(static=True, default=1e-4)
    end: NonNegative = eqx.field(static=True, default=1e-5)

    def rate(self, iteration: Int[Array, ""] | int) -> Float[Array, ""]:
        """The learning rate of an iteration, counted from 0."""
        optax = _optax()
        warmup = self.warmup if self.warmup < self.total else self.total // 10
        # Optax wants a decay of at least one iteration.
        decay = max(self.total, warmup + 1)
        return optax.warmup_cosine_decay_schedule(self.start, self.peak, warmup, decay, self.end)(iteration)

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> AdamState:
        """The state before the first step."""
        optax = _optax()
        loss, gradient = loss_and_gradient(problem, params)
        return AdamState(jnp.asarray(0), loss, gradient, optax.scale_by_adam().init(gradient))

    def step(self, problem: Problem, params: PyTree, state: AdamState) -> tuple[PyTree, AdamState, BaselineInfo]:
        """One iteration: pure, jittable. The loss may rise."""
        optax = _optax()
        check_steppable(problem)
        theta, unravel = ravel_pytree(params)
        rate = self.rate(state.iteration).astype(theta.dtype)
        direction, moments = optax.scale_by_adam().update(state.gradient, state.moments)
        new = theta - rate * direction
        params = unravel(new)
        loss, gradient = loss_and_gradient(problem, params)
        info = BaselineInfo(
            loss=state.loss,
            change=loss - state.loss,
            gradient_norm=jnp.linalg.norm(state.gradient),
            step_size=rate,
            evaluations=jnp.asarray(1),
            restarted=jnp.asarray(False),
            accepted=jnp.asarray(True),
            converged=jnp.asarray(False),
        )
        return params, AdamState(state.iteration + 1, loss, gradient, moments), info


def _optax() -> Any:
    """Optax, whose import takes as long as that of natgrad: only those who train with Adam wait for it."""
    with needs("Adam", "optax"):
        import optax
    return optax
