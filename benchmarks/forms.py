"""The forms of natural gradient descent side by side: what `ng.NGD` chooses by.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.forms [--sizes 6:550 32:2200:30 …]

3D Poisson, tanh networks of three hidden layers, a size is WIDTH:ROWS or WIDTH:ROWS:STEPS. Each form (KernelNGD where
rows are fewer than parameters) takes its steps, 40 of them, from the same start, in turn. Seconds are the process' own
on a CPU (all threads together), of the clock on a GPU, of stepping alone. `ms` is the mean of a step, `to X` the
seconds until the relative H¹ error, looked at every five steps, is at most X: the largest error that one of the forms
ends at.
"""

import argparse
import time
from collections.abc import Iterator

import jax
import numpy as np

import natgrad as ng
from benchmarks import tables
from benchmarks.machine import description
from benchmarks.step import poisson3d
from benchmarks.tables import short

FORMS = {"FullNGD": ng.FullNGD(), "NystromNGD": ng.NystromNGD(), "KernelNGD": ng.KernelNGD()}
HEAD = ("p", "q", "X", *(cell for form in FORMS for cell in (f"`{form}()`: ms", "to X")))
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


def compare(width: int, rows: int, steps: int = 40) -> tuple[str, ...]:
    """The row of a size."""
    problem = poisson3d(rows * 10 // 11, width)
    p, q = problem.num_parameters, problem.num_rows
    forms = {name: Form(solver, problem) for name, solver in FORMS.items() if name != "KernelNGD" or q < p}
    for _ in range(steps):
        for form in forms.values():
            form.take(problem)
    last = max(min(form.seen.values()) for form in forms.values())
    cells = [f"{p:,}", f"{q:,}", short(last)]
    for form in (forms.get(name) for name in FORMS):
        cells += [f"{1e3 * np.mean(form.seconds):,.0f}", f"{form.reach(last):.1f} s"] if form else ["", ""]
    return tuple(cells)


def rows(sizes: list[str]) -> Iterator[tuple[str, ...]]:
    """One for each size."""
    for size in sizes:
        yield compare(*map(int, size.split(":")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="WIDTH:ROWS or WIDTH:ROWS:STEPS")
    tables.option(parser)
    options = parser.parse_args()
    print(description())
    tables.show(HEAD, rows(options.sizes), options.keep)
