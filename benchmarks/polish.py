"""Every part of a step of `Polish`, and the two ways to its factors, against the machine's own rates.

    python -m benchmarks.polish [multiscale_poisson] [--preset record] [--set width=40 …]

The floor of a part is the larger of its flops over the rate of a matrix product and its bytes over the rate of a copy;
the ratio is what it takes over that. `orthonormal` and `backward` are max |QᵀQ − I| (the rows of √μ I included) and
max |QR − A| / max |A| of each way, at the least μ that `Polish` takes.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import natgrad as ng
from benchmarks.machine import best_time, copy_rate, description, gemm_rate
from natgrad import zoo
from natgrad.backend import tuning
from natgrad.experiment.config import keys
from natgrad.gramian import StoredJacobian
from natgrad.linalg.damped import DampedRows, by_grams, by_reflections
from natgrad.optim.polish import LEAST

jax.config.update("jax_enable_x64", True)
WAYS = {"reflections": by_reflections, "grams": by_grams}
FLOPS = {"reflections": 4, "grams": 9}  # times (q + p)p²: R and Q; three products and three substitutions


def accuracy(A: jax.Array, mu: jax.Array, factors: DampedRows) -> str:
    """How orthonormal Q is, and how near QR to A."""
    Q, R = factors.orthogonal, factors.triangle
    lower = jnp.sqrt(mu) * jax.scipy.linalg.solve_triangular(R, jnp.eye(R.shape[0]), lower=False)
    defect = jnp.max(jnp.abs(Q.T @ Q + lower.T @ lower - jnp.eye(R.shape[0])))
    return f"orthonormal {defect:.1e}, backward {jnp.max(jnp.abs(Q @ R - A)) / jnp.max(jnp.abs(A)):.1e}"


def measure(problem: ng.LeastSquares, key: jax.Array) -> None:
    """Prints the table of a problem."""
    p, q, params = problem.num_parameters, problem.num_rows, problem.params
    gemm, copy = gemm_rate(), copy_rate()
    print(f"machine: {gemm / 1e9:.0f} GFLOP/s in a matrix product, {copy / 1e9:.1f} GB/s in a copy")
    print(f"{'part':28s} {'ms':>9s} {'floor ms':>9s} {'ratio':>6s}")

    def row(name: str, f: Callable, *args: Any, flops: float, traffic: float) -> Any:
        compiled = jax.jit(f).lower(*args).compile()
        seconds = best_time(lambda: compiled(*args))
        floor = max(flops / gemm, 8 * traffic / copy)
        print(f"{name:28s} {1e3 * seconds:9.1f} {1e3 * floor:9.1f} {seconds / floor:6.1f}", flush=True)
        return compiled(*args)

    jacobian = lambda params: StoredJacobian(problem, params).jacobian
    A = row("Jacobian", jacobian, params, flops=0.0, traffic=p * q)
    r = row("residuals", lambda params: problem.covector(params), params, flops=0.0, traffic=q)
    mu = LEAST * jnp.finfo(A.dtype).eps ** 2 * jnp.linalg.norm(A, 2) ** 2
    for name, way in WAYS.items():
        factored = lambda A, way=way: way(A, mu)[:3]
        arrays = row(f"factors by {name}", factored, A, flops=FLOPS[name] * (q + p) * p**2, traffic=4 * (q + p) * p)
        solve = lambda arrays, r: DampedRows(*arrays, lambda x: x).solve(r)
        row("a solve with them", solve, arrays, r, flops=2 * q * p, traffic=q * p + p * p)
        print(f"    {accuracy(A, mu, DampedRows(*arrays, lambda x: x))}")
    solver = ng.Polish()
    flops = FLOPS["reflections" if tuning.REFLECTIONS.here() else "grams"] * (q + p) * p**2
    state = solver.init(problem, params, key)
    step = lambda problem, params, state: solver.step(problem, params, state)
    row("a whole step", step, problem, params, state, flops=flops, traffic=5 * q * p)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?", default="multiscale_poisson", help="a problem of the zoo")
    parser.add_argument("--preset", default="record")
    parser.add_argument("--set", nargs="*", default=[], help="sizes, as width=16")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    key = keys(given.seed)
    sizes = {name: int(value) for name, value in (word.split("=") for word in given.set)}
    problem = zoo.get(given.problem).problem(key.problem, given.preset, **sizes)
    print(f"{given.problem}, {given.preset}: p = {problem.num_parameters}, q = {problem.num_rows}; {description()}")
    measure(problem, key.solver)


if __name__ == "__main__":
    main()
