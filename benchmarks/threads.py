"""Forty steps on an idle machine, and beside busy processes: do threads stand in each other's way?

    python -m benchmarks.threads [--repeats 3] [--steps 40] [--only NystromNGD,…] [--before] [--orders]

Each problem is compiled once; then its steps are timed beside none, one and two processes that do nothing but count
(`while True: pass`), and this again and again, so that what else the machine does meets all of them. The last column is
the ratio of the medians, beside two processes and beside none. `--before` has a second row for each, with as many
threads of LAPACK as it takes by itself. `--orders` times the Cholesky factorization of one matrix alone, by its order.
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import natgrad as ng
from benchmarks import tables
from benchmarks.compile import build
from benchmarks.machine import description
from benchmarks.tables import brief
from natgrad import zoo
from natgrad.backend import blas

BUSY = (0, 1, 2)
HEAD = ("", "p", "none", "one", "two", "two : none")
LABELS = {
    "NystromNGD": "`NystromNGD(max_rank=200)`, 2D Poisson",
    "RPCholNGD": "`RPCholNGD(max_rank=200)`, 2D Poisson",
    "FullNGD": "`FullNGD()`, 2D Poisson",
    "deepritz2d": "deepritz2d, preset `small`, `NystromNGD(max_rank=300)`",
    "drt2d": "drt2d, preset `small`, `NystromNGD(max_rank=300)`",
}
ORDERS_HEAD = (
    "order", "one thread: idle", "one busy", "two busy", "all threads: idle", "one busy", "two busy",
)  # fmt: skip
ORDERS = (100, 200, 500, 1000, 2000, 3000)


@contextmanager
def beside(count: int) -> Iterator[None]:
    """So many busy processes."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.3)  # until they are
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def cases() -> dict[str, tuple[Callable[[], Any], Any]]:
    """A problem, built when it is needed, and a solver, by name."""
    small = lambda: build(20, 800)  # p = 501, 1,000 rows
    fem = lambda name: lambda: zoo.get(name).problem(jax.random.key(0), "small")
    return {
        "NystromNGD": (small, ng.NystromNGD(max_rank=200)),
        "RPCholNGD": (small, ng.RPCholNGD(max_rank=200)),
        "FullNGD": (small, ng.FullNGD()),
        "deepritz2d": (fem("deepritz2d"), ng.NystromNGD(max_rank=300)),
        "drt2d": (fem("drt2d"), ng.NystromNGD(max_rank=300)),
    }


def measure(runs: dict[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Medians of the seconds of each run beside none, one and two processes; the spread goes to the other output."""
    medians = {}
    for name, run in runs.items():
        times: dict[int, list[float]] = {count: [] for count in BUSY}
        for _ in range(repeats):
            for count in BUSY:
                with beside(count):
                    times[count].append(run())
        medians[name] = [statistics.median(times[count]) for count in BUSY]
        spread = "  ".join(f"{min(times[c]):.3g}–{max(times[c]):.3g}" for c in BUSY)
        print(f"{name}: from least to most {spread}", file=sys.stderr, flush=True)
    return medians


def steps_rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One for each case, and with `--before` another."""
    for name in options.only.split(",") if options.only else cases():
        for words, seconds in measure(steps(name, options.steps, options.before), options.repeats).items():
            label, _, p = words.partition(", p = ")
            yield label, p, *map(brief, seconds), f"{seconds[-1] / seconds[0]:.1f}"


def order_rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One for each order, in milliseconds."""
    for order in ORDERS:
        found = measure(factorization(order), options.repeats)
        yield f"{order:,}", *(brief(1e3 * number) for seconds in found.values() for number in seconds)


def steps(name: str, count: int, before: bool) -> dict[str, Callable[[], float]]:
    """What times the steps of a case."""
    make, solver = cases()[name]
    problem = make()
    run = lambda: ng.solve(problem, solver, count, progress=False, evaluate_every=count).time
    run()

    def as_before() -> float:
        now, blas.one_thread = blas.one_thread, nullcontext  # type: ignore[assignment]
        try:
            return run()
        finally:
            blas.one_thread = now

    sizes = f"{LABELS[name]}, p = {problem.num_parameters}"
    return {sizes: run, "as many threads as LAPACK takes": as_before} if before else {sizes: run}


def factorization(order: int) -> dict[str, Callable[[], float]]:
    """What times the Cholesky factorization of a matrix of this order, with one thread and with all."""
    A = np.random.default_rng(0).standard_normal((order, order))
    A = jnp.asarray(A @ A.T + order * np.eye(order))
    factor = jax.jit(jnp.linalg.cholesky)
    factor(A).block_until_ready()

    def all_threads() -> float:
        start = time.perf_counter()
        factor(A).block_until_ready()
        return time.perf_counter() - start

    def one() -> float:
        with blas.one_thread():
            return all_threads()

    return {f"order {order}, one thread": one, f"order {order}, all threads": all_threads}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--only", default="", help="some of the cases, divided by commas")
    parser.add_argument("--before", action="store_true", help="also with as many threads as LAPACK takes by itself")
    parser.add_argument("--orders", action="store_true", help="Cholesky factorizations alone")
    tables.option(parser)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print(description())
    if options.orders:
        tables.show(ORDERS_HEAD, order_rows(options), options.keep)
    else:
        tables.show(HEAD, steps_rows(options), options.keep)


if __name__ == "__main__":
    main()
