"""Every part of a step at the size of the paper's 3D Poisson problem, against the machine's own rates.

    python -m benchmarks.step [--points 10000] [--width 64] [--rank 500] [--steps 24]

The floor of a part is the larger of its flops over the rate of a matrix product and its bytes over the rate of a copy;
the ratio is what it takes over that. Then whole steps, NyströmNGD and RPCholNGD against FullNGD, in both recipes.
"""

import argparse
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks.machine import best_time, copy_rate, description, gemm_rate
from natgrad.gramian import second_directional
from natgrad.linalg import (
    factor_preconditioner,
    from_factor,
    gaussian,
    nystrom,
    nystrom_preconditioner,
    orthogonal_factor,
    pcg,
    sparse_signs,
)

jax.config.update("jax_enable_x64", True)


def poisson3d(points: int, width: int, seed: int = 0) -> ng.LeastSquares:
    """−Δu = f on the unit cube, points/10 of them on the boundary; tanh, three hidden layers."""
    cube = ng.Box([0, 0, 0], [1, 1, 1])
    exact = lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    keys = jax.random.split(jax.random.key(seed), 3)
    return ng.LeastSquares(
        ng.MLP(3, 1, width, 3, key=keys[0]),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + 3 * jnp.pi**2 * exact(x), cube.interior(points, key=keys[1])),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), cube.boundary(points // 10, key=keys[2])),
        exact=exact,
    )


def parts(problem: ng.LeastSquares, rank: int) -> None:
    """The parts of a step, each with its floor."""
    p, q = problem.num_parameters, problem.num_rows
    gemm, copy = gemm_rate(), copy_rate()
    print(f"machine: {gemm / 1e9:.0f} GFLOP/s in a matrix product, {copy / 1e9:.1f} GB/s in a copy")
    print(f"p = {p}, q = {q}, ℓ = {rank}; {description()}\n")
    print(f"{'part':34s} {'ms':>9s} {'floor ms':>9s} {'ratio':>6s}  bound by")

    def row(name: str, f: Callable, *args, flops: float, traffic: float) -> object:
        compiled = jax.jit(f).lower(*args).compile()
        seconds = best_time(lambda: compiled(*args))
        compute, memory = flops / gemm, 8 * traffic / copy
        floor, bound = (compute, "flops") if compute > memory else (memory, "memory")
        print(f"{name:34s} {1e3 * seconds:9.1f} {1e3 * floor:9.1f} {seconds / floor:6.1f}  {bound}", flush=True)
        return compiled(*args)

    passes = 5 * 2 * p * q  # value, three derivatives and the Laplacian: five products with each weight matrix
    params = problem.params
    stored = lambda problem, params: ng.gramian(problem, params, "jacobian")
    G = row("Jacobian", stored, problem, params, flops=3 * passes, traffic=p * q)
    gradient = row("gradient from it", lambda G: G.loss_gradient(), G, flops=passes, traffic=p * q)
    row(
        "gradient by reverse mode",
        lambda problem, th: jax.grad(problem.loss)(th),
        problem,
        params,
        flops=3 * passes,
        traffic=p,
    )
    row("product with G (one vector)", lambda G, v: G.mv(v), G, gradient, flops=4 * p * q, traffic=p * q)
    signs = sparse_signs(jax.random.key(3), p, rank)
    row(f"A Ω, sparse signs ({rank} columns)", lambda G: G.push_many(signs), G, flops=4 * p * q, traffic=2 * p * q)
    flops = 2.0 * p * q * rank + 4.0 * q * rank**2
    F = row(f"factor of rank {rank}", lambda G: G.factor(signs), G, flops=flops, traffic=3 * p * q)
    flops = 4.0 * p * rank**2 + 3.0 * rank**3
    V, H, _ = row("its orthonormal basis", orthogonal_factor, F, flops=flops, traffic=4 * p * rank)
    row("inverse of H + μI", lambda H: factor_preconditioner(V, H, 1e-9).Z, H, flops=2.0 * rank**3, traffic=4 * rank**2)
    omega = gaussian(jax.random.key(3), p, rank)
    Y = row(f"sketch G Ω ({rank} vectors)", lambda G, V: G.mm(V), G, omega, flops=4.0 * p * q * rank, traffic=2 * p * q)
    indices = jax.random.permutation(jax.random.key(4), p)[:rank]
    row(f"{rank} columns of G", lambda G, i: G.columns(i), G, indices, flops=2.0 * p * q * rank, traffic=p * q)
    small = 10.0 * p * rank**2
    row(
        "Nyström less sketch, eigenvalues",
        lambda Y, V: nystrom(lambda _: Y, V),
        Y,
        omega,
        flops=small,
        traffic=8 * p * rank,
    )
    row(
        "Nyström less sketch, published",
        lambda Y, V: nystrom(lambda _: Y, V, method="svd"),
        Y,
        omega,
        flops=small,
        traffic=8 * p * rank,
    )
    low = nystrom(lambda _: Y, omega)
    row("eigenbasis of a factor", lambda B: from_factor(B), Y, flops=6.0 * p * rank**2, traffic=4 * p * rank)
    mu = 10 * jnp.finfo(jnp.float64).eps * low.eigenvalues[0]
    solve = lambda G, b, low: pcg(
        lambda v: G.mv(v) + mu * v, b, preconditioner=nystrom_preconditioner(low, mu), maxiter=20, tol=0.0
    )
    row("pCG, 20 iterations", solve, G, gradient, low, flops=21 * 4 * p * (q + rank), traffic=21 * p * (q + 2 * rank))
    bend = lambda problem, th: second_directional(problem, th, th)
    row("curvature along the direction", bend, problem, params, flops=6 * passes, traffic=p)
    row(
        "loss (one trial of the search)", lambda problem, th: problem.loss(th), problem, params, flops=passes, traffic=p
    )
    row("AᵀA (FullNGD)", lambda G: G.as_matrix(), G, flops=1.0 * p * p * q, traffic=p * p)
    matrix = G.as_matrix() + jnp.eye(p)
    row("Cholesky of p×p (FullNGD)", jnp.linalg.cholesky, matrix, flops=p**3 / 3, traffic=p * p)


def steps(problem: ng.LeastSquares, rank: int, count: int) -> None:
    """Whole steps, the mean of a training's first ones: rank and inner iterations grow on the way.

    A direct solver takes as long for every step. One is timed before and one after each of the others, whose ratio is
    to the mean of the two: a machine that others use too is faster at times.
    """
    print(
        f"\n{f'mean of steps 1 to {count}':24s} {'seconds':>8s} {'first':>6s} {'last':>6s} {'FullNGD /':>9s} "
        f"{'compile':>8s} {'ℓ':>5s} {'cg':>5s}  loss and H¹ error after"
    )
    for recipe in ("default", "published"):
        mark = ", published" if recipe == "published" else ""
        full, before = direct(problem, recipe)
        print(f"{'FullNGD' + mark:24s} {before:8.2f} {'':23s} {full.compile_time:8.1f}", flush=True)
        for name, solver in compared(rank, recipe).items():
            solution = ng.solve(problem, solver, count, key=jax.random.key(5), progress=False, evaluate_every=count)
            full, after = direct(problem, recipe, full)
            times = np.diff(solution.history.time, prepend=0.0)
            print(
                f"{name + mark:24s} {times.mean():8.2f} {times[0]:6.2f} {times[-1]:6.2f} "
                f"{(before + after) / 2 / times.mean():9.1f} {solution.compile_time:8.1f} "
                f"{int(solution.history.rank[-1]):5d} {np.mean(solution.history.inner_iterations):5.1f}  "
                f"{solution.loss:.1e}  {solution.errors['h1']:.1e}",
                flush=True,
            )
            before = after
            print(f"{'FullNGD' + mark:24s} {before:8.2f}", flush=True)


def compared(rank: int, recipe: str) -> dict[str, ng.NaturalGradient]:
    """What is held against FullNGD."""
    nystrom = {"NyströmNGD": ng.NystromNGD(max_rank=rank, recipe=recipe)}
    if recipe == "published":
        return nystrom
    sampling = ng.NystromNGD(max_rank=rank, test="sampling")
    return nystrom | {"NyströmNGD sampling": sampling, "RPCholNGD": ng.RPCholNGD(max_rank=rank)}


def direct(problem: ng.LeastSquares, recipe: str, so_far: ng.Solution | None = None) -> tuple[ng.Solution, float]:
    """FullNGD two steps further, of which the first warms up, and the seconds of the second."""
    solution = ng.solve(problem, ng.FullNGD(recipe=recipe), 2, resume=so_far, progress=False)
    return solution, float(np.diff(solution.history.time)[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--steps", type=int, default=24, help="steps of a run whose mean is taken")
    options = parser.parse_args()
    problem = poisson3d(options.points, options.width)
    parts(problem, options.rank)
    steps(problem, options.rank, options.steps)
