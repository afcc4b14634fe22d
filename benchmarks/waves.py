"""Sums of waves beside other networks with as many parameters, under `ng.Polish`.

    python -m benchmarks.waves [SOLUTION …] [--networks waves sin:1 sin:2 tanh:2] [--seeds 0:2] [--steps 30]

Poisson's equation −Δu = f in (−1, 1)², u given on the boundary, about 400 parameters, 1,500 + 300 points. SOLUTION is

    sum       sin 4πx sin 3πy + sin (πx + 2πy), which a sum of waves holds exactly
    envelope  exp(−3/2 |x − c|²) sin 4πx sin (3πy + 0.3)
    chirp     sin (5xy + 3x²), whose frequency depends on the place
    front     tanh 6(x + y/2), which has no frequency

`waves` are `ng.Waves` up to 14 (4π and a tenth more), sin:1 and sin:2 `ng.MLP` with so many hidden layers of sines and
`frequency=` half of that, tanh:2 with two layers of tanh. A row has the relative L² error of each seed.
"""

import argparse
import time
from collections.abc import Iterator

import jax
import jax.numpy as jnp

import natgrad as ng
from benchmarks import tables
from benchmarks.machine import description
from benchmarks.tables import short

SQUARE = ng.Box([-1, -1], [1, 1])
UP_TO = 14.0
POINTS = 1_500, 300
SOLUTIONS = {
    "sum": lambda x: (
        jnp.sin(4 * jnp.pi * x[0]) * jnp.sin(3 * jnp.pi * x[1]) + jnp.sin(jnp.pi * x[0] + 2 * jnp.pi * x[1])
    ),
    "envelope": lambda x: (
        jnp.exp(-1.5 * ((x[0] + 0.2) ** 2 + (x[1] - 0.1) ** 2))
        * jnp.sin(4 * jnp.pi * x[0])
        * jnp.sin(3 * jnp.pi * x[1] + 0.3)
    ),
    "chirp": lambda x: jnp.sin(5 * x[0] * x[1] + 3 * x[0] ** 2),
    "front": lambda x: jnp.tanh(6 * (x[0] + x[1] / 2)),
}
HEAD = ("solution", "network", "p", "relative L² errors", "processor seconds")
NETWORKS = {
    "waves": lambda key: ng.Waves(2, 1, 100, up_to=UP_TO, key=key),
    "sin:1": lambda key: ng.MLP(2, 1, 100, 1, activation=jnp.sin, frequency=UP_TO / 2, key=key),
    "sin:2": lambda key: ng.MLP(2, 1, 18, 2, activation=jnp.sin, frequency=UP_TO / 2, key=key),
    "tanh:2": lambda key: ng.MLP(2, 1, 18, 2, key=key),
}


def problem(solution: str, network: str, seed: int) -> ng.LeastSquares:
    """With the residual divided by UP_TO²."""
    exact = SOLUTIONS[solution]
    net, inside, rim = jax.random.split(jax.random.key(seed), 3)
    return ng.LeastSquares(
        NETWORKS[network](net),
        pde=ng.Residual(
            lambda u, x: (ng.laplacian(u, x) - ng.laplacian(exact, x)) / UP_TO**2,
            SQUARE.interior(POINTS[0], key=inside, rule="sobol"),
        ),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), SQUARE.boundary(POINTS[1], key=rim, rule="sobol")),
        exact=exact,
    )


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One for each solution and network."""
    for name in options.solutions:
        for kind in options.networks:
            start, errors = time.process_time(), []
            for seed in range(*map(int, options.seeds.split(":"))):
                case = problem(name, kind, seed)
                solved = ng.solve(case, ng.Polish(), options.steps, evaluate_every=options.steps, progress=False)
                errors.append(short(solved.errors["l2"]))
            spent = time.process_time() - start
            yield name, kind, str(case.num_parameters), " ".join(errors), f"{spent:.0f}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solutions", nargs="*", default=list(SOLUTIONS))
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--seeds", default="0:2")
    parser.add_argument("--steps", type=int, default=30)
    tables.option(parser)
    options = parser.parse_args()
    print(f"{description()}, {options.steps} steps\n")
    tables.show(HEAD, rows(options), options.keep)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
