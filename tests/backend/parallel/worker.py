"""What several devices compute against one, in a process of its own: `python -m tests.backend.parallel.worker TASK …`.

The number of devices of a processor is fixed when JAX starts, so the tests start processes. Each prints one JSON value.
"""

import dataclasses
import json
import re
import sys
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.backend import tuning
from natgrad.backend.parallel import devices, everywhere, shard
from natgrad.gramian import gramian
from natgrad.optim.kernel import Kernel
from tests.stages.equations import heat

jax.config.update("jax_enable_x64", True)

STRATEGIES = ("assembled", "jacobian", "batched", "linearized")
SQUARE = ng.Box([0, 0], [1, 1])


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def network(width=4, depth=1):
    return ng.MLP(2, 1, width, depth, key=jax.random.key(0))


def poisson(width=4, depth=1, interior=37, boundary=13):
    """Numbers of points that no number of devices divides."""
    return ng.LeastSquares(
        network(width, depth),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + 2 * jnp.pi**2 * exact(x), SQUARE.interior(interior, key=jax.random.key(1))
        ),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), SQUARE.boundary(boundary, key=jax.random.key(2))),
        exact=exact,
    )


def ritz():
    density = lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - exact(x) * u(x)
    points = SQUARE.interior(37, key=jax.random.key(1))
    return ng.EnergyMinimization(network(), interior=ng.Energy(density, points, metric=ng.metrics.H1()))


def feinn_energy():
    space = ng.fem.rectangle((4, 3), degree=2)
    return ng.FEINNEnergy(network(), space, ng.fem.Form(), load=1.0, dirichlet=0.0)


def feinn_least_squares():
    space = ng.fem.rectangle((4, 3), degree=2)
    form = ng.fem.Form(diffusion=1.0, advection=jnp.array([1.0, 0.5]))
    return ng.FEINNLeastSquares(network(), space, form, load=1.0, dirichlet=0.0)


PROBLEMS = {"poisson": poisson, "ritz": ritz, "feinn_energy": feinn_energy, "feinn_least_squares": feinn_least_squares}


def exactly(solver):
    """With inner solves to round-off: where one ends early, round-off decides at which iteration."""
    direction = dataclasses.replace(solver.direction, tol=1e-14, min_decrease=0.0, maxiter=1000)
    return dataclasses.replace(solver, direction=direction)


SOLVERS = {
    "nystrom": lambda: exactly(ng.NystromNGD(test="gaussian", gamma=10.0)),
    "signs": lambda: exactly(ng.NystromNGD(test="signs", gamma=10.0)),
    "uniform": lambda: exactly(ng.NystromNGD(test="uniform", gamma=10.0, gramian="linearized")),
    "sampling": lambda: exactly(ng.NystromNGD(test="sampling", gamma=10.0, gramian="batched", batch=7)),
    "rpcholesky": lambda: exactly(ng.RPCholNGD(gamma=10.0)),
    "full": lambda: ng.FullNGD(),
    "kernel": lambda: ng.NaturalGradient(direction=Kernel(), gramian="jacobian"),
    "kernel_batched": lambda: ng.NaturalGradient(direction=Kernel(), gramian="batched", batch=7),
    "kernel_nystrom": lambda: ng.NaturalGradient(
        direction=Kernel(ng.PCG(ng.RowFactor(test="gaussian"), tol=1e-14, min_decrease=0.0, maxiter=1000)),
        damping=ng.damping.LossPower(10.0),
        gramian="jacobian",
    ),
    "polish": lambda: ng.Polish(),
    "adam": lambda: ng.Adam(),
}


def relative(a, b):
    a, b = (np.asarray(ravel_pytree(t)[0]) for t in (a, b))
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def products(name, count):
    """{strategy.product: how far it is from one device's}; products with A go by blocks of rows, as with a large A."""
    tuning.CACHE_BYTES, tuning.CACHE_ROWS = 150, 1
    one = PROBLEMS[name]()
    many = shard(one, devices(count))
    V = jax.random.normal(jax.random.key(3), (one.num_parameters, 5))
    indices = jnp.array([3, 0, 9])

    @jax.jit
    def everything(problem):
        found = {}
        for strategy in STRATEGIES:
            G = gramian(problem, strategy=strategy, batch=7)
            found |= {f"{strategy}.mv": G.mv(V[:, 0]), f"{strategy}.mm": G.mm(V), f"{strategy}.diagonal": G.diagonal()}
            found |= {f"{strategy}.columns": G.columns(indices), f"{strategy}.as_matrix": G.as_matrix()}
            found |= {f"{strategy}.loss_gradient": G.loss_gradient()}
        return found

    return jax.tree.map(relative, everything(many), everything(one))


def iterates(name, counts, steps, *sizes):
    """[count, distance of the parameters from those of one device, H¹ error] for each number of devices."""
    one, solver = poisson(*sizes), SOLVERS[name]()
    rows, reference = [], None
    for count in counts:
        problem = one if count == 1 else shard(one, devices(count))
        solution = ng.solve(problem, solver, steps, evaluate_every=steps, progress=False)
        reference = solution.params if reference is None else reference
        rows.append([count, relative(solution.params, reference), solution.errors["h1"]])
    return rows


def validation(count):
    """How far the loss at other points, and the training loss of the same blocks, are from one device's."""
    sensors = ng.Residual(lambda u, x: u(x) - 1.0, jnp.ones((5, 2)))
    pde = ng.Residual(lambda u, x: ng.laplacian(u, x) - exact(x), SQUARE.interior(37, key=jax.random.key(1)))
    one = ng.LeastSquares(network(), pde=pde, sensors=sensors)
    found = jax.jit(partial(everywhere, lambda problem, params: problem.validate(params)))
    return jax.tree.map(relative, found(shard(one, devices(count)), one.params), found(one, one.params))


def collectives(count):
    """{operation: the sizes of its results} in the compiled NyströmNGD step, with q and p."""
    problem = shard(poisson(width=6, interior=640, boundary=64), devices(count))
    solver = ng.NystromNGD(max_rank=8, gramian="jacobian")
    state = solver.init(problem, problem.params, jax.random.key(0))
    text = jax.jit(solver.step).lower(problem, problem.params, state).compile().as_text()
    found = {}
    pattern = r"= (.*?) (all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("
    for shapes, kind in re.findall(pattern, text):
        for dims in re.findall(r"\w+\[([\d,]*)\]", shapes):
            size = int(np.prod([int(d) for d in dims.split(",") if d])) if dims else 1
            found.setdefault(kind, []).append(size)
    return {"found": found, "q": problem.num_rows, "p": problem.num_parameters}


def moving_points(count, way):
    """The distance of the parameters after steps with points drawn at every one; there are others that stay."""
    ways = {"fresh": {"fresh": True}, "adaptive": {"adaptive": ng.ByResidual()}}
    draw = lambda seed, **moves: SQUARE.interior(21, key=jax.random.key(seed), **moves)
    points = draw(1, **ways[way]) + draw(2)
    block = ng.Residual(lambda u, x: ng.laplacian(u, x) + 2 * jnp.pi**2 * exact(x), points)
    one = ng.LeastSquares(network(), pde=block)
    ends = [ng.solve(p, ng.FullNGD(), 3, progress=False).params for p in (one, shard(one, devices(count)))]
    return relative(*ends)


def balanced(count, solver):
    """The distances of the weights and of the parameters after steps in which the former are found three times."""
    one = poisson()
    auto = tuple(dataclasses.replace(block, auto=block.name == "boundary") for block in one.features)
    one = eqx.tree_at(lambda p: p.features, one, auto)
    solver = ng.Balanced(SOLVERS[solver](), every=2)
    ends = [ng.solve(p, solver, 5, progress=False) for p in (one, shard(one, devices(count)))]
    weights = [end.history.weights["boundary"] for end in ends]
    assert len(set(weights[0])) == 3, weights
    return [relative(weights[1], weights[0]), relative(ends[1].params, ends[0].params)]


def march(counts):
    """The distances of the parameters of all windows from those of one device, for each number of devices."""
    rows, reference = [], None
    for count in counts:
        one, mesh = heat(points={"pde": 37, "initial": 13, "ends": 7}), devices(count)
        spread = one if count == 1 else lambda *window, one=one, mesh=mesh: shard(one(*window), mesh)
        solution = ng.march(spread, ng.FullNGD(), [0, 0.5, 1, 2], 4, progress=False)
        reference = solution if reference is None else reference
        rows.append([relative(solution.params, reference.params), relative(solution.errors, reference.errors)])
    return rows


if __name__ == "__main__":
    task, *args = sys.argv[1:]
    print(json.dumps(globals()[task](*map(json.loads, args))))
