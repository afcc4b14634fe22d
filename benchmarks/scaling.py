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
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks.machine import description
from benchmarks.step import poisson3d
from natgrad.linalg import gaussian

WIDTHS = (16, 20, 24, 32, 40)
POINTS = (250, 400, 700, 1200, 2000)
RANKS = (25, 50, 100, 200, 400)
WIDTH, COUNT, RANK, BATCH = 24, 500, 100, 100  # where the other two are held
DIMENSIONS, HIDDEN, DIRECTIONS = (5, 10, 25, 50, 100), (768, 768, 512, 512), 10
PAPER = {  # exponents of the leading term: set-up in p, q; product in p, q, ℓ
    "jacobian": ("1 1", "1 1 1"),
    "batched": ("- -", "1 1 1"),
    "linearized": ("- -", "1 1 1"),
    "assembled": ("2 1", "2 0 1"),
}


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


def laplacian(count: int = 32, rows: int = 150) -> None:
    """Milliseconds a row, over the number of dimensions."""
    print(f"{description()}; hidden layers {HIDDEN}; ms a row")
    print(f"{'d':>4s} {'exact':>8s} {f'{DIRECTIONS} signs':>9s} {'value':>8s} {f'AAᵀ of {rows}':>11s}")
    for dim in DIMENSIONS:
        cube, times = ng.Box([0] * dim, [1] * dim), []
        for residual in (ng.laplacian, estimate, lambda u, x: u(x)):
            net = ng.MLP(dim, 1, HIDDEN, key=jax.random.key(0))
            problem = ng.LeastSquares(net, pde=ng.Residual(residual, cube.interior(count, key=jax.random.key(1))))
            build = jax.jit(lambda problem: ng.gramian(problem, strategy="jacobian"))
            times.append(seconds(build, problem) / count)
        kernel = seconds(jax.jit(lambda G: G.kernel()), build(problem)) / count**2 * rows
        exact, signs, value, kernel = (1e3 * t for t in (*times, kernel))
        print(f"{dim:4d} {exact:8.1f} {signs:9.1f} {value:8.1f} {kernel:11.1f}", flush=True)


def exponent(x: list[float], y: list[float]) -> str:
    return f"{np.polyfit(np.log(x), np.log(y), 1)[0]:.2f}" if min(y) > 0 else "-"


def main(factor: int, wide: int) -> None:
    """The table."""
    print(f"{description()}; three hidden layers; else width {wide * WIDTH}, {factor * COUNT} points, ℓ = {RANK}")
    print(f"{'strategy':11s} {'set-up: p':>10s} {'q':>5s}   {'product: p':>10s} {'q':>5s} {'ℓ':>5s}   paper")
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
        print(
            f"{strategy:11s} {setup[0]:>10s} {setup[1]:>5s}   "
            f"{product[0]:>10s} {product[1]:>5s} {product[2]:>5s}   {paper[0]} | {paper[1]}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1, help="multiplies the numbers of points")
    parser.add_argument("--widths", type=int, default=1, help="multiplies the widths")
    parser.add_argument("--laplacian", action="store_true", help="the cost of rows in d dimensions instead")
    options = parser.parse_args()
    if options.laplacian:
        laplacian()
    else:
        main(options.points, options.widths)
