"""Several seeds of a problem at once against one after the other.

    python -m benchmarks.seeds [--problems poisson3d burgers] [--preset small] [--seeds 10] [--steps N] [--rounds 1]
                              [--optimizer auto]

Each seed has its own network, points and solver key, as `natgrad run` gives them. `ng.solve_many(at_once=True)` and
`at_once=False` take the same steps from the same start, in turn so many `rounds`, with `ng.NGD()` or with the preset's
`ng.NystromNGD`. `ms/step` is what a step of all seeds takes (the sum over the seeds where they go one after the other),
without compilation; `ratio` is the second over the first. `error` is the largest over the seeds of the final relative
error in the problem's norm. The header says device and versions.
"""

import argparse
import platform

import jax
import numpy as np

import natgrad as ng
from natgrad import zoo
from natgrad.experiment.config import keys


def both(name: str, preset: str, seeds: int, steps: int | None, rounds: int, optimizer: str) -> None:
    """A line for a problem."""
    benchmark = zoo.get(name)
    size = benchmark.preset(preset)
    drawn = [keys(seed) for seed in range(seeds)]
    problems = [benchmark.problem(key.problem, preset) for key in drawn]
    solver = ng.NGD() if optimizer == "auto" else ng.NystromNGD(**size.solver_options())
    steps = steps or size.steps["ngd"]
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(rounds):
        for at_once in (True, False):
            solutions = ng.solve_many(
                problems, solver, steps, keys=[key.solver for key in drawn], at_once=at_once, progress=False,
                evaluate_every=steps,
            )  # fmt: skip
            spent = [solution.time for solution in solutions]
            seconds[at_once].append((max(spent) if at_once else sum(spent)) / steps)
            worst = max(solution.errors[benchmark.norm] for solution in solutions)
            print(
                f"{name:16s} {'at once' if at_once else 'in turn':8s} {seeds:5d} {steps:5d} "
                f"{1e3 * seconds[at_once][-1]:10.1f} {solutions[0].compile_time:9.1f} {worst:10.2e}",
                flush=True,
            )
    ratio = np.median(seconds[False]) / np.median(seconds[True])
    print(f"{name:16s} ratio {ratio:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["poisson3d", "burgers"])
    parser.add_argument("--preset", default="small")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--optimizer", choices=("auto", "nystrom"), default="auto")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{jax.devices()[0].device_kind}, Python {platform.python_version()}, jax {jax.__version__}, float64")
    print(f"{'problem':16s} {'form':8s} {'seeds':>5s} {'steps':>5s} {'ms/step':>10s} {'compile s':>9s} {'error':>10s}")
    for name in options.problems:
        both(name, options.preset, options.seeds, options.steps, options.rounds, options.optimizer)
