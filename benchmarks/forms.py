"""The forms of natural gradient descent side by side: what `ng.NGD` chooses by.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.forms [--sizes 6:550 24:2200 …] [--steps 40]

3D Poisson, tanh networks of three hidden layers, a size is WIDTH:ROWS. Each form (`direct`: FullNGD, `rows`:
NystromNGD, `kernel`: KernelNGD where rows are fewer than parameters) takes its steps from the same start, in turn.
Seconds are the process' own on a CPU (all threads together), of the clock on a GPU, of stepping alone. `ms` is the mean
of a step, `to X` the seconds until the relative H¹ error, looked at every five steps, is at most X: the largest error
that one of the forms ends at, and ten times that.
"""

import argparse
import time

import jax
import numpy as np

import natgrad as ng
from benchmarks.machine import description
from benchmarks.step import poisson3d

SIZES = (
    "6:550",
    "10:550",
    "10:2200",
    "18:550",
    "18:2200",
    "24:550",
    "24:2200",
    "24:8800",
    "32:550",
    "32:2200",
    "43:2200",
)
EVERY = 5
clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter


class Form:
    """A solver on its way."""

    def __init__(self, solver, problem):
        self.params, self.state = problem.params, solver.init(problem, problem.params, jax.random.key(0))
        self.step = jax.jit(solver.step).lower(problem, self.params, self.state).compile()
        self.errors = jax.jit(lambda problem, params: problem.errors(params)["h1"])
        self.seconds, self.seen = [], {}

    def take(self, problem):
        started = clock()
        self.params, self.state, _ = jax.block_until_ready(self.step(problem, self.params, self.state))
        self.seconds.append(clock() - started)
        if len(self.seconds) % EVERY == 0:
            self.seen[len(self.seconds)] = float(self.errors(problem, self.params))

    def reach(self, error: float) -> float:
        """The seconds to an error, looked at now and then; inf where it was not reached."""
        steps = next((step for step, seen in self.seen.items() if seen <= error), None)
        return float("inf") if steps is None else sum(self.seconds[:steps])


def compare(width: int, rows: int, steps: int) -> None:
    """A line for each form at a size."""
    problem = poisson3d(rows * 10 // 11, width)
    p, q = problem.num_parameters, problem.num_rows
    solvers = {"direct": ng.FullNGD(), "rows": ng.NystromNGD()} | ({"kernel": ng.KernelNGD()} if q < p else {})
    forms = {name: Form(solver, problem) for name, solver in solvers.items()}
    for _ in range(steps):
        for form in forms.values():
            form.take(problem)
    last = max(min(form.seen.values()) for form in forms.values())
    for name, form in forms.items():
        numbers = f"{1e3 * np.mean(form.seconds):9.1f} {form.reach(10 * last):9.2f} {form.reach(last):9.2f}"
        print(f"{p:6d} {q:6d}  {name:7s} {numbers} {min(form.seen.values()):9.1e} {last:9.1e}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="WIDTH:ROWS")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()
    print(description())
    print(f"{'p':>6s} {'q':>6s}  {'form':7s} {'ms':>9s} {'to 10X':>9s} {'to X':>9s} {'end':>9s} {'X':>9s}")
    for size in options.sizes:
        compare(*map(int, size.split(":")), options.steps)
