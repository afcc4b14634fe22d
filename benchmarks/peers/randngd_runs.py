"""Randngd, the package of the paper's authors, on one of the paper's problems, with natgrad's points and errors.

    python -m benchmarks.peers.randngd_runs poisson3d --setting paper --steps 300 --seed 0 --out DIR

Settings: `paper` is NystromNGD as the paper and the package's notes on its runs say (ℓ_max = 500, 20 iterations of pCG,
γ = 10, μ by Levenberg–Marquardt for the Kovasznay flow, 2⁻ᵏ for the energy, 1e-4 L² elsewhere); `best` is the package's
defaults with the rule 1e-4 L² for the Kovasznay flow too; `full` and `rpchol` are its other solvers with the rules of
`best`. The residuals, the loss and the network are natgrad's, differentiated by randngd; finite-element metrics go in
as matrices, with products by natgrad's operators in `best`, `full` and `rpchol`, faster than JAX' sparse ones.

Steps are those that a line search accepted; they run in a compiled loop, as in `optimistix.minimise`, `--every` at a
time. Errors are evaluated between the loops, off the clock.
"""

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import randngd
from jax.experimental import sparse

from benchmarks.peers import paper
from benchmarks.peers.record import Recorder
from natgrad.fem import STIFFNESS
from natgrad.problem import Problem
from natgrad.problem.feinn import FEINN

jax.config.update("jax_enable_x64", True)
SETTINGS = ("paper", "best", "full", "rpchol")
TRIALS = 40  # of the line searches, for each step asked for, before a loop gives the word back


class Matrix:
    """A matrix by its products: a finite-element operator of natgrad."""

    def __init__(self, operator: Any):
        self.operator, self.shape, self.dtype = operator, operator.shape, jnp.dtype("float64")

    def __matmul__(self, x: jax.Array) -> jax.Array:
        return self.operator.apply(x)


def metric_of(problem: Problem, setting: str) -> Callable[[Any], randngd.Gramian]:
    """The metric of the natural gradient, params ↦ Gramian."""
    full = setting == "full"
    coupling = problem.coupling(problem.params)
    if coupling is None:
        terms = [_term(problem, block) for block in problem.features]
        return randngd.metrics.gauss_newton(terms, problem.params, representation="full" if full else "jacobians")
    assert isinstance(problem, FEINN)
    model = lambda params, x: jnp.squeeze(problem.network(params)(x))
    if setting == "paper":  # the matrix of ∇v·∇w, which both problems have there
        free = np.asarray(problem.free)
        matrix: Any = sparse.BCOO.from_scipy_sparse(problem.space.assemble(STIFFNESS)[free][:, free])
    else:
        matrix = Matrix(coupling.operator)
    return randngd.metrics.finite_element(
        model, problem.features[0].inputs[0], matrix, problem.params, representation="full" if full else "lazy"
    )


def _term(problem: Problem, block: Any) -> tuple[Callable, jax.Array, float]:
    """A block of residuals as randngd takes it: data and the roots of the quadrature weights are more coordinates."""
    columns = [*block.inputs, jnp.sqrt(block.weights)]
    shapes = [array.shape[1:] for array in columns]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def residual(params: Any, row: jax.Array) -> jax.Array:
        u = problem.network(params)
        parts = jnp.split(row, ends[:-1])
        *inputs, root = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
        return root * block.evaluate(u, u, *inputs)

    return residual, jnp.concatenate([array.reshape(len(array), -1) for array in columns], axis=1), 1.0


def solver_of(problem: Problem, name: str, setting: str, rank: int, seed: int) -> Any:
    """The solver of a setting."""
    metric = metric_of(problem, setting)
    if name == "kovasznay" and setting == "paper":
        damping: Any = randngd.LevenbergMarquardt(alpha="next_trial")
    elif not problem.least_squares:
        damping = randngd.EigenvalueDamping(min_mu=lambda loss, iteration: 0.5**iteration)
    else:
        damping = randngd.EigenvalueDamping()
    if setting == "full":
        return randngd.ngd_solver(randngd.NGDFull(metric, damping=damping, key=seed))
    if setting == "rpchol":
        return randngd.ngd_solver(randngd.RPCholNGD(metric, ell_max=rank, damping=damping, key=seed))
    if setting == "best":
        return randngd.ngd_solver(randngd.NystromNGD(metric, ell_max=rank, damping=damping, key=seed))
    nystrom = randngd.NystromNGD(metric, ell_max=rank, damping=damping, init_factor="n", init_min_mu=1e-2, key=seed)
    return randngd.ngd_solver(nystrom, min_stepsize=1e-15)


class Loop:
    """Optimistix' interactive interface, several accepted steps a call, compiled once."""

    def __init__(self, solver: Any, loss: Callable[[Any], jax.Array], params: Any, every: int):
        fn = lambda y, args: (loss(y), None)
        struct, tags = jax.eval_shape(loss, params), frozenset[object]()
        split: dict[str, Any] = {}

        def init(y):
            state = solver.init(fn, y, None, {}, struct, None, tags)
            dynamic, split["static"] = eqx.partition(state, eqx.is_array)
            return dynamic

        def steps(y, dynamic):
            last = dynamic.num_accepted_steps + every
            trials = dynamic.num_steps + TRIALS * every

            def going(carry):
                _, dynamic = carry
                return (dynamic.num_accepted_steps < last) & (dynamic.num_steps < trials)

            def step(carry):
                y, dynamic = carry
                y, state, _ = solver.step(fn, y, None, {}, eqx.combine(dynamic, split["static"]), tags)
                return y, eqx.filter(state, eqx.is_array)

            return jax.lax.while_loop(going, step, (y, dynamic))

        start = jax.jit(init).lower(params).compile()
        self.y, self.state = params, start(params)
        self.steps = jax.jit(steps).lower(params, self.state).compile()

    def __call__(self) -> int:
        """Goes on; the accepted steps so far."""
        self.y, self.state = jax.block_until_ready(self.steps(self.y, self.state))
        return int(self.state.num_accepted_steps)


def main() -> None:
    """One run."""
    options = paper.arguments(__doc__, SETTINGS)
    problem, _ = paper.problem_of(options)
    options.rank = options.rank or 500
    evaluate = paper.evaluator(problem)
    record = paper.recorder("randngd", problem, options)
    solver = solver_of(problem, options.problem, options.setting, options.rank, options.seed)
    loop = Loop(solver, problem.loss, problem.params, options.every)
    record.ready()
    with ExitStack() as stack:
        with record.paused():
            stack.enter_context(paper.alone(options.lock))
        train(loop, problem, evaluate, record, options)
    paper.finish(record, options)


def train(loop: Loop, problem: Problem, evaluate: Callable, record: Recorder, options: argparse.Namespace) -> None:
    """Steps until there is a reason to stop."""
    step, record.status = 0, "steps"
    while step < options.steps:
        before, step = step, loop()
        with record.paused():
            errors = evaluate(loop.y)
            loss, trials = float(problem.loss(loop.y)), int(loop.state.num_steps)
        record.add(step, errors, loss=loss, trials=trials)
        reasons = {
            "not finite": not np.isfinite(loss),
            "target": errors["h1"] <= options.stop_at,
            "time": record.time >= options.seconds,
            "no descent": step == before,
        }
        if hit := [reason for reason, holds in reasons.items() if holds]:
            record.status = hit[0]
            break


if __name__ == "__main__":
    main()
