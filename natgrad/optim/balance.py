"""Weights that balance the blocks of a least-squares loss, L = Σ_b λ_b L_b: found at the start, and now and then.

A residual has its own units: −Δu − f is π²d times as large as u where u has the frequency π, and a boundary term in
metres is a thousandth of one in millimetres. Where a block is too light, steps leave it behind, and where it is too
heavy, they do nothing else. So every block whose weight is "auto" gets the share of the blocks whose weight is a number
(of their mean, where there are several) in the trace of the Gramian (Wang, Yu and Perdikaris, 2022):

    λ_b t_b = mean over the others of λ_f t_f,    t_b = tr G_b = ‖W_b^½ J_b‖²_F with the weight 1.

Where all blocks are "auto" the first keeps the weight 1: a natural gradient does not see the scale of the whole loss,
and the loss then has the units of the first residual. Multiplying the residual of an "auto" block by a constant changes
no iterate. The weights are found again every `EVERY` steps, as the geometric mean of old and new.

Traces are estimated by t_b ≈ mean ‖W_b^½ J_b z‖² over a few random signs z (Hutchinson, 1990), one forward pass each
for all blocks. Signs are the same at every time: what changes is the network, not the sample.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.backend.chunks import by_rows
from natgrad.backend.parallel import everywhere, total
from natgrad.gramian.base import most_at_a_time, weighted_features
from natgrad.options import Checked, Whole
from natgrad.problem import LeastSquares, Problem

EVERY = 20  # steps
PROBES = 16


class BalancedState(eqx.Module):
    """The weights of all blocks, and the state of the solver; `key` draws the same probes at every time."""

    inner: Any
    weights: Float[Array, " blocks"]
    iteration: Int[Array, ""]
    key: PRNGKeyArray


@jax.tree_util.register_pytree_node_class
class BalancedInfo:
    """What the solver tells of a step, field by field, and `weights`, {block: its weight in this step}."""

    def __init__(self, **fields: Any):
        vars(self).update(fields)

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return tuple(vars(self).values()), tuple(vars(self))

    @classmethod
    def tree_unflatten(cls, names: tuple[str, ...], values: tuple[Any, ...]) -> "BalancedInfo":
        return cls(**dict(zip(names, values, strict=True)))


class Balanced(Checked):
    """A solver that finds the weights of "auto" blocks as it goes; `ng.solve` makes one of any solver where it must.

        solver = ng.Balanced(ng.NystromNGD())
        state = solver.init(problem, problem.params, jax.random.key(0))
        params, state, info = jax.jit(solver.step)(problem, problem.params, state)
        info.weights["boundary"], state.weights

    Arguments:
        solver: any solver.
        every: the number of steps after which the weights are found anew; 0 keeps those of the start. The default is
            20, and 0 for solvers that compare the gradients of two steps (BFGS, L-BFGS, SSBroyden): what they learn
            holds for one loss.
    """

    solver: Any
    every: Whole | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        super().__check_init__()
        if isinstance(self.solver, Balanced):
            raise ValueError("the solver is balanced already: give ng.Balanced the one it was made of")
        if not (hasattr(self.solver, "init") and hasattr(self.solver, "step")):
            raise ValueError(f"Balanced takes a solver such as ng.NystromNGD(), got {type(self.solver).__name__}")
        if self.every and self._compares:
            kind = type(self.solver).__name__
            raise ValueError(f"{kind} compares the gradients of two steps, so the weights must stay: give every=0")

    @property
    def _compares(self) -> bool:
        """Whether the solver learns from two steps what holds for one loss."""
        return getattr(self.solver, "compares", False)

    @property
    def period(self) -> int:
        """The steps between two times the weights are found; 0 for the start alone."""
        return self.every if self.every is not None else 0 if self._compares else EVERY

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> BalancedState:
        """The state before the first step, with the weights found at `params`."""
        problem = _balanceable(problem)
        inner, own = host.split(key)
        weights = jax.jit(self._found)(problem, params, own)
        state = self.solver.init(problem.with_weights(weights), params, inner)
        return BalancedState(state, weights, host.array(0), own)

    def step(self, problem: Problem, params: PyTree, state: BalancedState) -> tuple[PyTree, BalancedState, Any]:
        """One step of the solver with the present weights: pure, jittable."""
        problem, weights = _balanceable(problem), state.weights
        if self.period:
            due = (state.iteration > 0) & (state.iteration % self.period == 0)
            anew = lambda: jnp.sqrt(weights * self._found(problem, params, state.key, weights))
            weights = jax.lax.cond(due, anew, lambda: weights)
        params, inner, info = self.solver.step(problem.with_weights(weights), params, state.inner)
        found = {block.name: weight for block, weight in zip(problem.features, weights, strict=True)}
        info = BalancedInfo(**vars(info), weights=found)
        return params, BalancedState(inner, weights, state.iteration + 1, state.key), info

    def _found(
        self, problem: LeastSquares, params: PyTree, key: PRNGKeyArray, old: Float[Array, " blocks"] | None = None
    ) -> Float[Array, " blocks"]:
        """λ at the given parameters; a block without a share (or with one that is not finite) stays as it is."""
        old = problem.weights if old is None else old
        shares = everywhere(traces, problem, params, key)
        auto = jnp.asarray([block.auto for block in problem.features])
        wanted = jnp.mean(shares, where=~auto) / jnp.where(shares > 0, shares, jnp.nan)
        return jnp.where(auto, jnp.where(jnp.isfinite(wanted) & (wanted > 0), wanted, old), problem.weights)


def traces(problem: LeastSquares, params: PyTree, key: PRNGKeyArray) -> Float[Array, " blocks"]:
    """tr G_b (blocks,), estimated."""
    theta, unravel = ravel_pytree(params)
    ends = np.cumsum([block.rows for block in problem.features])[:-1]
    signs = jax.random.rademacher(key, (PROBES, theta.size), theta.dtype)

    def squares(z: Float[Array, " p"]) -> Float[Array, " blocks"]:
        rows = jax.jvp(lambda p: weighted_features(problem, p, params), (params,), (unravel(z),))[1]
        return jnp.stack([jnp.sum(part**2) for part in jnp.split(rows, ends)])

    return total(jnp.mean(by_rows(squares, signs, most_at_a_time(problem)), axis=0))


def balance(solver: Any, problem: Problem) -> Any:
    """The solver itself, or the one that finds the weights a problem leaves to it."""
    return Balanced(solver) if problem.auto and not isinstance(solver, Balanced) else solver


def weighted(problem: Problem, state: Any) -> Problem:
    """The problem with the weights that a state has found for it."""
    return problem.with_weights(state.weights) if isinstance(problem, LeastSquares) and problem.auto else problem


def _balanceable(problem: Problem) -> LeastSquares:
    if not isinstance(problem, LeastSquares) or not problem.auto:
        raise ValueError('ng.Balanced has nothing to balance: give a block weight="auto", or take the solver as it is')
    return problem
