"""`Polished`: another solver as far as it goes, and `Polish` from there, within one run.

The first solver's steps cost less and lead to its stall; those of `Polish` lead on. It takes over once the loss after a
step is above `fall` times that of `window` steps before, and stays. It begins with the μ/λ̂₁ that the first one had at
its end. Both are compiled, one of them runs at a time, and which one is part of the state.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.optim.ngd import StepInfo
from natgrad.optim.polish import Polish, PolishState
from natgrad.options import Checked, Count, Share
from natgrad.problem import Problem


class PolishedState(eqx.Module):
    """The states of both, the losses after the last `window` steps (the oldest at iteration mod window), and whether
    `Polish` has taken over."""

    inner: Any
    polish: PolishState
    losses: Float[Array, " window"]
    iteration: Int[Array, ""]
    taken: Bool[Array, ""]


class Polished(Checked):
    """A natural gradient to its stall, and then `Polish`: `ng.solve(problem, ng.Polished(ng.NGD()), steps=200)`.

    Arguments:
        solver: the first one, of natural gradients (`ng.NGD()`, `ng.NystromNGD()`).
        polish: the second one; its `start` is not asked for.
        window: how many steps are looked at.
        fall: what the loss must fall to within these, as a part, lest `polish` takes over.
    """

    solver: Any
    polish: Polish = Polish()
    window: Count = eqx.field(static=True, default=20)
    fall: Share = eqx.field(static=True, default=0.5)

    def __check_init__(self):
        super().__check_init__()
        if not hasattr(self.solver, "damping"):
            raise ValueError(f"Polished takes a natural gradient such as ng.NGD(), got {type(self.solver).__name__}")

    def held(self, problem: Problem) -> int:
        """Bytes at the peak of a step of the second one."""
        return self.polish.held(problem)

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> PolishedState:
        """The state before the first step."""
        first, second = host.split(key)
        return PolishedState(
            self.solver.init(problem, params, first),
            self.polish.init(problem, params, second),
            host.array([float("inf")] * self.window, problem.dtype),
            host.array(0),
            host.array(False),
        )

    def step(self, problem: Problem, params: PyTree, state: PolishedState) -> tuple[PyTree, PolishedState, StepInfo]:
        """One iteration of the one or the other: pure, jittable."""

        def first() -> tuple[PyTree, Any, PolishState, StepInfo]:
            new, inner, info = self.solver.step(problem, params, state.inner)
            relative_mu = info.mu / jnp.where(info.largest > 0, info.largest, 1.0)
            polish = PolishState(state.polish.key, state.polish.iteration, relative_mu)
            return new, inner, polish, info

        def second() -> tuple[PyTree, Any, PolishState, StepInfo]:
            new, polish, info = self.polish.step(problem, params, state.polish)
            return new, state.inner, polish, info

        kinds = jax.eval_shape(first)  # integers of another width, say
        cast = lambda x, kind: x if x.dtype == kind.dtype else x.astype(kind.dtype)
        alike = lambda: jax.tree.map(cast, second(), kinds)
        new, inner, polish, info = jax.lax.cond(state.taken, alike, first)
        place, loss = state.iteration % self.window, info.loss + info.change
        taken = state.taken | (loss > self.fall * state.losses[place])
        # What has converged for the first one has not for the second.
        info = eqx.tree_at(lambda info: info.converged, info, info.converged & state.taken)
        losses = state.losses.at[place].set(loss)
        return new, PolishedState(inner, polish, losses, state.iteration + 1, taken), info
