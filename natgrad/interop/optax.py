"""Natural gradients as gradient transformations of Optax, which are told of the residuals at every update.

    optimizer = natgrad.interop.optax.natural_gradient()
    state = optimizer.init(params)
    ...
    residual = lambda params: model.apply(params, x) - y
    updates, state = optimizer.update(grads, state, params, residual=residual)
    params = optax.apply_updates(params, updates)

`residual` is a function of the parameters that gives any pytree of real arrays, for the loss ½ Σ r²; or a problem such
as `ng.LeastSquares(…)`, whose residuals come point by point, which makes for a cheaper Jacobian.

There are two of them. `natural_gradient` takes whole steps, and its search says how far. `scale_by_gramian` multiplies
what it is given by (G + μD)⁻¹ and leaves signs, momentum, decay and lengths to the rest of an `optax.chain`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.extras import needs
from natgrad.gramian import gramian as gramian_of
from natgrad.optim import NaturalGradient
from natgrad.optim.damping import Damping, Outcome, Relative, Seen
from natgrad.optim.direction import Direct, Direction
from natgrad.optim.ngd import State, StepInfo
from natgrad.optim.residuals import default_solver, local_problem
from natgrad.plan import plan
from natgrad.problem import LeastSquares, Problem, ResidualFunction
from natgrad.problem.base import check_steppable

with needs("natgrad.interop.optax", "optax"):
    import optax


class NaturalGradientState(NamedTuple):
    """The state of `natural_gradient(…)`, and what it says of the last step (scalars): `state.info.loss` before it, and
    `state.info.step_size`, or any other field of `natgrad.optim.ngd.StepInfo`.
    """

    inner: State
    info: StepInfo


class ScaleByGramianState(NamedTuple):
    """What the next update of `scale_by_gramian(…)` needs; `previous` (p,) is the last direction it gave."""

    key: PRNGKeyArray
    iteration: Int[Array, ""]
    direction: Any
    damping: Any
    previous: Float[Array, " p"]


def natural_gradient(
    optimizer: NaturalGradient | None = None, *, key: PRNGKeyArray | None = None
) -> optax.GradientTransformationExtraArgs:
    """Whole steps of natural gradient descent: θ + updates is where the line search ended.

    `update(grads, state, params, residual=…)` does not look at `grads` (None will do): the gradient comes from the
    Jacobian of the residuals. Example: the module's header.

    Arguments:
        optimizer: an `ng.NaturalGradient` whose direction is `Direct` or `PCG`. By default Cholesky with Marquardt's
            scaling up to 1000 parameters, beyond it pCG with a Nyström preconditioner, both with Levenberg and
            Marquardt's damping.
        key: the randomness of the preconditioner; a fixed one by default.
    """

    def chosen(params: PyTree) -> NaturalGradient:
        return default_solver(_size(params)) if optimizer is None else optimizer

    def init(params: PyTree) -> NaturalGradientState:
        stand_in = ResidualFunction(lambda params: params, params)
        solver = plan(chosen(params), stand_in)
        inner = solver.init(stand_in, params, host.key(host.SOLVER) if key is None else key)
        info = jax.eval_shape(lambda inner: solver.step(stand_in, params, inner)[2], inner)
        inner = dataclasses.replace(inner, plan=solver)
        return NaturalGradientState(inner, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), info))

    def update(grads, state, params=None, *, residual=None, **extra):
        del grads, extra
        problem, asked, decided = _problem(residual, params), chosen(params), state.inner.plan
        # What depends on the rows is decided now; the direction, which gives the state its shapes, stays as it was.
        solver = plan(dataclasses.replace(asked, direction=decided.direction), problem)
        new, inner, info = solver.step(problem, params, dataclasses.replace(state.inner, plan=solver))
        inner = dataclasses.replace(inner, plan=decided)
        return jax.tree.map(jnp.subtract, new, params), NaturalGradientState(inner, info)

    return optax.GradientTransformationExtraArgs(init, update)


def scale_by_gramian(
    direction: Direction | None = None,
    damping: Damping | None = None,
    *,
    gramian: str = "auto",
    batch: int | None = None,
    key: PRNGKeyArray | None = None,
) -> optax.GradientTransformationExtraArgs:
    """(G + μD)⁻¹ times the updates it is given, G = Jᵀ W J of the residuals: a part of an `optax.chain`.

        optimizer = optax.chain(
            optax.add_decayed_weights(1e-6), natgrad.interop.optax.scale_by_gramian(), optax.scale_by_learning_rate(0.5)
        )

    Arguments:
        direction: `ng.Direct()`, the default, or `ng.PCG(…)`.
        damping: the rule for μ, `ng.damping.Relative()` by default. It sees the loss and the updates' norm. What
            becomes of its steps it does not see: it takes them for full ones that brought what the model promised.
        gramian, batch: the strategy, see `ng.gramian`.
        key: the randomness of the preconditioner; a fixed one by default.
    """
    given, rule = direction or Direct(), damping or Relative(10.0, *LeastSquares.caution, by_loss=True)

    def init(params: PyTree) -> ScaleByGramianState:
        theta, _ = ravel_pytree(params)
        stand_in = ResidualFunction(lambda params: params, params)
        here, sub = jax.random.split(host.key(host.SOLVER) if key is None else key)
        inner = given.resolve(stand_in).init(theta.size, theta.dtype, sub)
        return ScaleByGramianState(here, jnp.zeros((), jnp.int32), inner, rule.init(theta.dtype), jnp.zeros_like(theta))

    def update(grads, state, params=None, *, residual=None, **extra):
        problem = _problem(residual, params)
        solver = given.resolve(problem)
        gradient, unravel = ravel_pytree(grads)
        here, sub = jax.random.split(state.key)
        loss, norm = problem.loss(params), jnp.linalg.norm(gradient)
        seen = lambda largest: Seen(largest, loss, norm, state.iteration)
        mu = lambda largest: rule.mu(state.damping, seen(largest))
        G = gramian_of(problem, params, gramian, batch=batch)
        system, inner = solver.prepare(G, mu, state.direction, sub, state.iteration)
        solve = system.solve(gradient, state.previous)
        inner = solver.finish(inner, solve, jnp.asarray(True))
        full = jnp.ones_like(loss)
        after = rule.update(state.damping, Outcome(seen(system.largest), mu(system.largest), system.mu, full, full))
        return unravel(solve.x), ScaleByGramianState(here, state.iteration + 1, inner, after, solve.x)

    return optax.GradientTransformationExtraArgs(init, update)


def _problem(residual: Callable | Problem | None, params: PyTree) -> Problem:
    if params is None:
        raise ValueError("natural gradients need the parameters: update(grads, state, params, residual=…)")
    if isinstance(residual, Problem):
        check_steppable(residual)
        return residual
    if not callable(residual):
        kind = "nothing" if residual is None else type(residual).__name__
        raise ValueError(f"update takes residual=…, a function of the parameters or a problem, got {kind}")
    return local_problem(residual, params)


def _size(params: PyTree) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(params))
