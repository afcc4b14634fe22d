"""Error against iterations and time on 3D Poisson, every optimizer in both recipes, in one run.

    python -m benchmarks.convergence [--points 10000] [--width 64] [--rank 500] [--steps 150]

Same network, points, start and evaluation for all. Seconds count stepping: no compilation, no error evaluation.
"""

import argparse

import jax
import numpy as np

import natgrad as ng
from benchmarks.machine import description
from benchmarks.step import poisson3d

jax.config.update("jax_enable_x64", True)
MARKS = (20, 30, 50, 100, 150)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--rank", type=int, default=500)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    problem = poisson3d(options.points, options.width, options.seed)
    rank = options.rank
    solvers = {
        "NyströmNGD gaussian": ng.NystromNGD(rank),
        "NyströmNGD sampling": ng.NystromNGD(rank, test="sampling"),
        "RPCholNGD": ng.RPCholNGD(rank),
        "FullNGD": ng.FullNGD(),
        "NyströmNGD gaussian, published": ng.NystromNGD(rank, recipe="published"),
        "RPCholNGD, published": ng.RPCholNGD(rank, recipe="published"),
        "FullNGD, published": ng.FullNGD(recipe="published"),
    }
    print(f"p = {problem.num_parameters}, q = {problem.num_rows}, seed {options.seed}; {description()}")
    marks = [m for m in MARKS if m <= options.steps]
    head = " ".join(f"{'H¹ at ' + str(m):>10s}" for m in marks)
    print(f"{'optimizer':32s} {head} {'ms/step':>8s} {'compile s':>9s} {'cg':>5s} {'α':>5s}")
    for name, solver in solvers.items():
        solution = ng.solve(problem, solver, options.steps, evaluate_every=10, progress=False)
        history, errors = solution.history, solution.history.errors["h1"]
        row = " ".join(f"{errors[m - 1]:10.1e}" if m <= len(errors) else f"{solution.status:>10s}" for m in marks)
        print(
            f"{name:32s} {row} {1e3 * solution.time / len(history):8.1f} {solution.compile_time:9.1f} "
            f"{history.inner_iterations.mean():5.1f} {np.median(history.step_size):5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
