"""Natgrad on a small case: `python -m benchmarks.peers.on_natgrad CASE --method nystrom --out FILE`."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import natgrad as ng
from benchmarks.peers.case import NU, WEIGHT, Case, Run, source

jax.config.update("jax_enable_x64", True)
SOLVERS = {"auto": ng.NGD, "warm": ng.NGD, "nystrom": ng.NystromNGD, "full": ng.FullNGD}  # warm: see `run`


def problem_of(case: Case) -> ng.LeastSquares:
    """The case as natgrad takes it."""

    def pde(u, x):
        if case.name == "poisson2d":
            return ng.laplacian(u, x) + source(case.name, x, jnp.sin)
        value, du, laplacian = ng.value_gradient_laplacian(u, x, dims=tuple(range(1, len(x))))
        return du[0] - laplacian / 4 if case.name == "heat2d" else du[0] + value * du[1] - NU * laplacian

    make = lambda key: ng.MLP(case.layers[0], 1, case.layers[1:-1], key=key)
    structure = jax.tree.structure(eqx.filter_eval_shape(make, jax.random.key(0)))
    arrays = [jnp.asarray(array) for pair in zip(case.weights, case.biases, strict=True) for array in pair]
    network = jax.tree.unflatten(structure, arrays)
    return ng.LeastSquares(
        network,
        pde=ng.Residual(pde, jnp.asarray(case.interior)),
        data=ng.Residual(lambda u, x, g: u(x) - g, jnp.asarray(case.boundary), data=case.data, weight=WEIGHT),
    )


def training(run: Run) -> None:
    """Until the run says that it is over."""
    problem = problem_of(run.case)
    solver = SOLVERS[run.method]()
    predict = jax.jit(lambda params, x: jax.vmap(problem.network(params))(x))
    seen: dict[str, Any] = {}

    def look(params: Any, state: Any) -> None:
        run.look(seen["step"], lambda x: predict(params, x))

    ng.solve(problem, solver, 10_000, callback=seen.update, checkpoint=look, progress=False, group=1)


if __name__ == "__main__":
    Run(__doc__, "natgrad", tuple(SOLVERS), "jax", "jaxlib").train(training)
