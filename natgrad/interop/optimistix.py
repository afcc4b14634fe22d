"""Natural gradient descent as a least-squares solver of Optimistix.

    solver = natgrad.interop.optimistix.NaturalGradient(rtol=1e-8, atol=1e-8)
    solution = optimistix.least_squares(fn, solver, y0, args, max_steps=200)

`fn(y, args)` gives any pytree of real arrays, y is any pytree of real arrays; together they are the problem
`ng.ResidualFunction`, L(y) = ½ |fn(y, args)|². A step of the solver is a step of `ng.NaturalGradient` on it, its line
search included: `max_steps` counts linear systems, those of rejected steps too.

The solve ends where a full step would change neither y nor f by more than the tolerances, entry by entry, in `norm`:

    norm(Δy / (atol + rtol |y|)) < 1   and   norm(Δf / (atol + rtol |f|)) < 1

(for a step cut short to α < 1 by the search, Δ is what was done over α), or where no step lowers the loss and f is
orthogonal to the range of J: |Jᵀf| ≤ max(rtol, √eps) ‖J‖ |f| + atol, or where a step promised
no more than the round-off of the loss. It fails, with `RESULTS.nonlinear_divergence`,
where ten steps in a row, each with more damping than the one before, find no descent.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

from natgrad.backend import host
from natgrad.extras import needs
from natgrad.optim import NaturalGradient as Optimizer
from natgrad.optim.ngd import State, StepInfo
from natgrad.optim.residuals import default_solver, local_problem
from natgrad.problem import ResidualFunction

with needs("natgrad.interop.optimistix", "optimistix"):
    import optimistix as optx

GIVE_UP = 10


class SolverState(eqx.Module):
    """The state of the optimizer, the residuals (rows,) at the current y, and what the last step said (scalars):
    `optimistix.least_squares(…).state.info.mu`, or any other field of `natgrad.optim.ngd.StepInfo`.
    """

    inner: State
    residual: Float[Array, " rows"]
    info: StepInfo
    rejected: Int[Array, ""]
    inner_iterations: Int[Array, ""]
    terminate: Bool[Array, ""]
    result: optx.RESULTS


class NaturalGradient(optx.AbstractLeastSquaresSolver):
    """Damped Gauss–Newton steps by Cholesky or by conjugate gradients with a randomized preconditioner.

    Arguments:
        rtol, atol: the tolerances, see the module's header.
        norm: a function of pytrees, `optimistix.max_norm` by default.
        optimizer: an `ng.NaturalGradient`, such as `ng.NystromNGD(max_rank=100, gramian="linearized")`. By default
            Cholesky with Marquardt's scaling up to 1000 parameters, beyond it pCG with a Nyström preconditioner, both
            with Levenberg and Marquardt's damping.

    Options (`options=…` of `optimistix.least_squares`):
        key: the randomness of the preconditioner; a fixed one by default.
        jac: "fwd" (default), or "bwd" for functions that have no forward mode (`jax.custom_vjp`), which then go without
            geodesic acceleration.

    `solution.stats` has, beside Optimistix's own, `loss`, `mu`, `rank` and `inner_iterations` (of all steps together).
    Derivatives of the solution with respect to `args` come from the implicit function theorem, Optimistix's default.
    """

    rtol: float
    atol: float
    norm: Callable[[PyTree], Float[Array, ""]] = optx.max_norm
    optimizer: Optimizer | None = None

    def init(self, fn, y, args, options, f_struct, aux_struct, tags) -> SolverState:
        problem, optimizer = self._problem(fn, y, args, options), self._optimizer(y, options)
        # As plain integers: Optimistix passes its solution through a callback, which takes no typed keys.
        inner = optimizer.init(problem, y, jax.random.key_data(options.get("key", host.key(host.SOLVER))))
        info = jax.eval_shape(lambda s: optimizer.step(problem, y, s)[2], inner)
        info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), info)
        return SolverState(
            inner=inner,
            residual=problem.network(y)(),
            info=info,
            rejected=jnp.asarray(0),
            inner_iterations=jnp.zeros_like(info.inner_iterations),
            terminate=jnp.asarray(False),
            result=optx.RESULTS.successful,  # type: ignore[arg-type]
        )

    def step(self, fn, y, args, options, state: SolverState, tags) -> tuple[PyTree, SolverState, Any]:
        optimizer = self._optimizer(y, options)
        new, inner, info = optimizer.step(self._problem(fn, y, args, options), y, state.inner)
        value, aux = fn(new, args)
        residual = ravel_pytree(value)[0]
        length = jnp.where(info.accepted, info.step_size, 1.0)
        still = self._small(inner.moved / length, y) & self._small((residual - state.residual) / length, value)
        slack = max(self.rtol, float(jnp.finfo(residual.dtype).eps) ** 0.5)
        flat = info.gradient_norm <= slack * jnp.sqrt(2 * info.largest * info.loss) + self.atol
        rejected = jnp.where(info.accepted, 0, state.rejected + 1)
        terminate = info.converged | jnp.where(info.accepted, still, flat)
        lost = (rejected >= GIVE_UP) & ~terminate
        state = SolverState(
            inner=inner,
            residual=residual,
            info=info,
            rejected=rejected,
            inner_iterations=state.inner_iterations + info.inner_iterations,
            terminate=terminate,
            result=optx.RESULTS.where(lost, optx.RESULTS.nonlinear_divergence, optx.RESULTS.successful),
        )
        return new, state, aux

    def terminate(self, fn, y, args, options, state: SolverState, tags) -> tuple[Bool[Array, ""], optx.RESULTS]:
        return state.terminate, state.result

    def postprocess(self, fn, y, aux, args, options, state: SolverState, tags, result):
        stats = {
            "loss": 0.5 * jnp.sum(state.residual**2),
            "mu": state.info.mu,
            "rank": state.info.rank,
            "inner_iterations": state.inner_iterations,
        }
        return y, aux, stats

    def _problem(self, fn: Callable, y: PyTree, args: PyTree, options: dict[str, Any]) -> ResidualFunction:
        residual = lambda y: fn(y, args)[0]
        return ResidualFunction(residual, y) if options.get("jac") == "bwd" else local_problem(residual, y)

    def _optimizer(self, y: PyTree, options: dict[str, Any]) -> Optimizer:
        size = sum(leaf.size for leaf in jax.tree.leaves(y))
        optimizer = default_solver(size) if self.optimizer is None else self.optimizer
        if (mode := options.get("jac", "fwd")) not in ("fwd", "bwd"):
            raise ValueError(f'the option jac is "fwd" or "bwd", got {mode!r}')
        if mode == "fwd":
            return optimizer
        if optimizer.gramian != "assembled":
            optimizer = dataclasses.replace(optimizer, gramian="jacobian", batch=None)
        return dataclasses.replace(optimizer, acceleration=0.0)

    def _small(self, change: Float[Array, " n"], tree: PyTree) -> Bool[Array, ""]:
        """Whether a flat change of a tree is within the tolerances."""
        flat, unravel = ravel_pytree(tree)
        return self.norm(unravel(change / (self.atol + self.rtol * jnp.abs(flat)))) < 1
