"""Windows of time against one network for all of it: `python -m benchmarks.march`, the table of docs/evolution.md.

u_t + c u_x = 0 on (0, 1) × (0, 2π), periodic, u(0, x) = sin x, which goes round c/2π times. One network with as many
points and steps as all windows together, and windows of equal length with a network each.
"""

import argparse
import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp

import natgrad as ng
from benchmarks import tables
from benchmarks.tables import short

HEAD = ("windows", "points and steps of each", "loss of the last", "relative L² error", "seconds of stepping")
PERIOD = 2 * float(jnp.pi)


def advection(c: float, points: int, width: int, seed: int) -> ng.Evolution:
    """The equation, with a periodic network of two layers."""
    network, drawn = jax.random.split(jax.random.key(seed))
    return ng.Evolution(
        ng.Periodic(ng.MLP(3, 1, width, 2, key=network), periods=(None, PERIOD)),
        ng.Interval(0, PERIOD),
        pde=lambda u, z: (ng.gradient(u, z) @ jnp.array([1.0, c])) / c,
        initial=lambda x: jnp.sin(x[0]),
        exact=lambda z: jnp.sin(z[1] - c * z[0]),
        points={"pde": points, "initial": 64},
        key=drawn,
    )


def rows(given: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One for each number of windows; what a run says of itself goes to the other output."""
    for count in given.windows:
        points, steps = given.points // count, given.steps // count
        problem = advection(given.c, points, given.width, given.seed)
        solver = ng.NystromNGD(max_rank=300)
        solution = ng.march(problem, solver, times=count, steps=steps, evaluate_every=steps, progress=False)
        print(*solution.diagnosis, sep="\n", end="", file=sys.stderr, flush=True)
        numbers = (short(solution.loss), short(solution.errors["l2"]), f"{solution.time:.0f}")
        yield (str(count), f"{points:,}, {steps}", *numbers)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--c", type=float, default=80.0)
    parser.add_argument("--windows", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--points", type=int, default=9_600, help="of all windows together")
    parser.add_argument("--steps", type=int, default=640, help="of all windows together")
    parser.add_argument("--width", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    tables.option(parser)
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    tables.show(HEAD, rows(given), given.keep)


if __name__ == "__main__":
    main()
