"""What LLVM's levels of optimization cost to compile, and what they save a step, on a CPU.

    python -m benchmarks.levels poisson3d burgers kovasznay deepritz2d drt2d [--steps 10]

Small presets with NyströmNGD. Seconds and milliseconds are of the processor, which others that use the machine change
little; steps of the levels alternate, and their median counts.
"""

import argparse
import statistics
import time

import jax

import natgrad as ng
from benchmarks.machine import description
from natgrad import zoo

OPTIONS = {
    "2 (XLA's default)": {},
    "2, no expensive passes": {"xla_llvm_disable_expensive_passes": True},
    "1": {"xla_backend_optimization_level": 1},
    "0": {"xla_backend_optimization_level": 0},
}


def measure(name: str, steps: int) -> None:
    """A line of Markdown for each level."""
    problem = zoo.get(name).problem(0, "small")
    solver = ng.plan(ng.NystromNGD(max_rank=zoo.get(name).preset("small").solver_options().get("max_rank")), problem)
    place = problem.params, solver.init(problem, problem.params, jax.random.key(0))
    lowered = jax.jit(lambda problem, params, state: solver.step(problem, params, state)).lower(problem, *place)
    programs, compiling, places, times = {}, {}, {}, {level: [] for level in OPTIONS}
    for level, options in OPTIONS.items():
        began = time.process_time()
        programs[level] = lowered.compile(compiler_options=options)
        compiling[level], places[level] = time.process_time() - began, place
    for _ in range(steps):
        for level, program in programs.items():
            began = time.process_time()
            *places[level], _ = jax.block_until_ready(program(problem, *places[level]))
            times[level].append(time.process_time() - began)
    for level in OPTIONS:
        print(
            f"| {name} | {level} | {compiling[level]:.1f} | {1e3 * statistics.median(times[level]):.1f} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="+", choices=zoo.names(), metavar="PROBLEM")
    parser.add_argument("--steps", type=int, default=10)
    chosen = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(f"{description()}\n\n| problem | level | compiling, s | a step, ms |\n|---|---|---|---|")
    for name in chosen.problems:
        measure(name, chosen.steps)


if __name__ == "__main__":
    main()
