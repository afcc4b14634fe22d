"""Points that are drawn anew during training: fresh ones at every step, adaptive ones now and then.

Where they are is part of the state: a run goes on bit for bit, from a checkpoint too, and a step is compiled once. The
solver inside sees points that stay. All devices draw all points, from the same key, and each keeps its share.
"""

from typing import Any

import equinox as eqx
import jax
from jaxtyping import Array, Int, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import everywhere
from natgrad.optim.balance import balance, weighted
from natgrad.options import Checked
from natgrad.problem import Problem
from natgrad.problem.moving import Placed


class ResampledState(eqx.Module):
    """The points of the last step, {block: …}, and the state of the solver."""

    inner: Any
    points: dict[str, Placed]
    iteration: Int[Array, ""]
    key: PRNGKeyArray


class Resampled(Checked):
    """A solver that draws the points of `fresh` and `adaptive` blocks; `ng.solve` makes one where it must.

        solver = ng.Resampled(ng.NystromNGD())
        state = solver.init(problem, problem.params, jax.random.key(0))
        params, state, info = jax.jit(solver.step)(problem, problem.params, state)
        state.points["pde"].inputs[0]  # where they were

    Solvers that compare the gradients of two steps (BFGS, L-BFGS, SSBroyden) stay with the first points: what these
    learn holds for one loss.

    Arguments:
        solver: any solver; `ng.Balanced(solver)` where weights are to be found, too.
    """

    solver: Any

    def __check_init__(self):
        super().__check_init__()
        if isinstance(self.solver, Resampled):
            raise ValueError("the solver draws points already: give ng.Resampled the one it was made of")
        if not (hasattr(self.solver, "init") and hasattr(self.solver, "step")):
            raise ValueError(f"Resampled takes a solver such as ng.NystromNGD(), got {type(self.solver).__name__}")

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> ResampledState:
        """The state before the first step."""
        _check(problem)
        inner, own = host.split(key)
        points = everywhere(lambda problem: problem.placed(), problem)
        return ResampledState(self.solver.init(problem, params, inner), points, host.array(0), own)

    def step(self, problem: Problem, params: PyTree, state: ResampledState) -> tuple[PyTree, ResampledState, Any]:
        """One step of the solver at the points of the step: pure, jittable."""
        _check(problem)
        return everywhere(self._step, problem, params, state)

    def _step(self, problem: Problem, params: PyTree, state: ResampledState) -> tuple[PyTree, ResampledState, Any]:
        key, points = state.key, state.points
        if not getattr(getattr(self.solver, "solver", self.solver), "compares", False):
            key, now = jax.random.split(key)
            subs = zip(problem.moving.items(), jax.random.split(now, len(problem.moving)), strict=True)
            score = lambda name: lambda inputs: problem.residual_size(name, params, inputs)
            points = {name: moves(points[name], sub, state.iteration, score(name)) for (name, moves), sub in subs}
        params, inner, info = self.solver.step(problem.at(points), params, state.inner)
        return params, ResampledState(inner, points, state.iteration + 1, key), info


def complete(solver: Any, problem: Problem) -> Any:
    """The solver itself, or the one that finds the weights and draws the points that a problem leaves to it."""
    solver = solver if isinstance(solver, Resampled) else balance(solver, problem)
    return Resampled(solver) if problem.moving and not isinstance(solver, Resampled) else solver


def present(problem: Problem, state: Any) -> Problem:
    """The problem as a state has it: with the points of its last step, and the weights found for it."""
    if isinstance(state, ResampledState):
        problem, state = problem.at(state.points), state.inner
    return weighted(problem, state)


def _check(problem: Problem) -> None:
    if not problem.moving:
        raise ValueError("ng.Resampled has nothing to draw: give points fresh=True or adaptive=…, or take the solver")
