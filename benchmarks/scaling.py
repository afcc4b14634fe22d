"""Cost of the Gramian's strategies in p, q and ℓ: exponents fitted over five sizes each, beside the paper's Table 1.

    python -m benchmarks.scaling [--points 1] [--widths 1]
    python -m benchmarks.scaling --laplacian

Set-up is the time to build the Gramian, product that of a product with ℓ vectors. Exponents
are slopes of log time against log size by least squares. The options multiply all numbers of points and all widths (on
a GPU by 16 and 2). On a CPU the clock is the process' own, which other processes do not slow down.

`--laplacian`: what a row of the Jacobian costs in d dimensions, with the network of `poisson_nd`'s preset 100d, where
the residual is the exact Laplacian, a random estimate of it (second derivatives along ten random directions of signs),
or the value alone; and what the row's share of the kernel AAᵀ costs.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks import tables
from benchmarks.machine import description
from benchmarks.step import poisson3d
from natgrad.linalg import gaussian

WIDTHS = (16, 20, 24, 32, 40)
POINTS = (250, 400, 700, 1200, 2000)
RANKS = (25, 50, 100, 200, 400)
WIDTH, COUNT, RANK, BATCH = 24, 500, 100, 100  # where the other two are held
DIMENSIONS, HIDDEN, DIRECTIONS = (5, 10, 25, 50, 100), (768, 768, 512, 512), 10
PAPER = {  # the leading terms: set-up; product
    "jacobian": "O(q [FP]); O(pqℓ)",
    "batched": "–; O(q [FP] + pqℓ)",
    "linearized": "not in it; O(ℓq [FP])",
    "assembled": "O(q [FP] + p²q); O(p²ℓ)",
}
HEAD = ("strategy", "set-up: p", "q", "product: p", "q", "ℓ", "Table 1")
LAPLACIAN = ("d", "exact", "ten directions", "value", "share of K")


def seconds(f: Callable, *args) -> float:
    """The least of three."""
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    jax.block_until_ready(f(*args))
    times = []
    for _ in range(3):
        start = clock()
        jax.block_until_ready(f(*args))
        times.append(clock() - start)
    return min(times)


def cost(strategy: str, width: int, points: int, rank: int) -> tuple[int, int, float, float]:
    """p, q and the seconds of set-up and product."""
    problem = poisson3d(points, width)
    p = problem.num_parameters
    V = gaussian(jax.random.key(0), p, rank, problem.dtype)
    make = lambda problem, params: ng.gramian(problem, params, strategy, batch=BATCH)
    if strategy in ("batched", "linearized"):  # nothing that outlives a program
        whole = jax.jit(lambda problem, params, V: make(problem, params).mm(V))
        return p, problem.num_rows, 0.0, seconds(whole, problem, problem.params, V)
    build, product = jax.jit(make), jax.jit(lambda G, V: G.mm(V))
    G = build(problem, problem.params)
    return p, problem.num_rows, seconds(build, problem, problem.params), seconds(product, G, V)


def estimate(u: Callable, x: jax.Array) -> jax.Array:
    """Δu by Hutchinson's estimator, E sᵀ∇²u s for random signs s; always the same ones, since only its cost counts."""
    second = lambda s: jax.jvp(lambda y: jax.jvp(u, (y,), (s,))[1], (x,), (s,))[1]
    return jnp.mean(jax.vmap(second)(jax.random.rademacher(jax.random.key(0), (DIRECTIONS, x.size), x.dtype)))


def laplacian(count: int = 32, rows: int = 150) -> Iterator[tuple[str, ...]]:
    """Milliseconds a row of the Jacobian, over the number of dimensions, and of its share of AAᵀ."""
    for dim in DIMENSIONS:
        cube, times = ng.Box([0] * dim, [1] * dim), []
        for residual in (ng.laplacian, estimate, lambda u, x: u(x)):
            net = ng.MLP(dim, 1, HIDDEN, key=jax.random.key(0))
            problem = ng.LeastSquares(net, pde=ng.Residual(residual, cube.interior(count, key=jax.random.key(1))))
            build = jax.jit(lambda problem: ng.gramian(problem, strategy="jacobian"))
            times.append(seconds(build, problem) / count)
        kernel = seconds(jax.jit(lambda G: G.kernel()), build(problem)) / count**2 * rows
        yield str(dim), *(f"{1e3 * t:.1f}" for t in (*times, kernel))


def exponent(x: list[float], y: list[float]) -> str:
    return f"{np.polyfit(np.log(x), np.log(y), 1)[0]:.2f}" if min(y) > 0 else "–"


def strategies(factor: int, wide: int) -> Iterator[tuple[str, ...]]:
    """Exponents of set-up in p and q, and of the product in p, q and ℓ, a row a strategy."""
    for strategy, paper in PAPER.items():
        over_p = [cost(strategy, wide * width, factor * COUNT, RANK) for width in WIDTHS]
        over_q = [cost(strategy, wide * WIDTH, factor * points, RANK) for points in POINTS]
        over_rank = [cost(strategy, wide * WIDTH, factor * COUNT, rank) for rank in RANKS]
        column = lambda rows, k: [row[k] for row in rows]
        p, q = column(over_p, 0), column(over_q, 1)
        setup = exponent(p, column(over_p, 2)), exponent(q, column(over_q, 2))
        product = (
            exponent(p, column(over_p, 3)),
            exponent(q, column(over_q, 3)),
            exponent(list(RANKS), column(over_rank, 3)),
        )
        yield f"`{strategy}`", *setup, *product, paper


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1, help="multiplies the numbers of points")
    parser.add_argument("--widths", type=int, default=1, help="multiplies the widths")
    parser.add_argument("--laplacian", action="store_true", help="the cost of rows in d dimensions instead")
    tables.option(parser)
    options = parser.parse_args()
    factor, wide = options.points, options.widths
    if options.laplacian:
        print(f"{description()}; hidden layers {HIDDEN}; ms a row")
        tables.show(LAPLACIAN, laplacian(), options.keep)
    else:
        print(f"{description()}; three hidden layers; else width {wide * WIDTH}, {factor * COUNT} points, ℓ = {RANK}")
        tables.show(HEAD, strategies(factor, wide), options.keep)
