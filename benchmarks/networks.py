"""Networks against each other under natural gradients, at equal numbers of parameters.

    python -m benchmarks.networks [PROBLEM …] [--networks tanh sin sin:6] [--seeds 0:3] [--steps 60]

PROBLEM is one of the zoo (its small preset, whose MLPs are replaced) or of this file: `multiscale`, a Poisson equation
with sin wπx sin wπy for w = 1, 2, 4, and `helmholtz_66`, u = sin 6πx sin 6πy, both in (−1, 1)². NETWORK is

    tanh       ng.MLP as it is
    sin        activation=jnp.sin, which starts as `ng.MLP` says; sin:6 with frequency=6
    glorot     sines that start like tanh
    trained    sin with a trained factor before the sine of each layer
    gated      the modified MLP: units h ⊙ U + (1 − h) ⊙ V with two gates U, V of the inputs, tanh (Wang et al., 2021)
    residual   z + tanh(Wz + b) from the second layer on

A gated network is as wide as its parameters allow. All seeds of a case use one compiled program, `ng.NystromNGD` with
the preset's options. A row has the relative L² error of each seed at the last step and the processor seconds of all.
"""

import argparse
import importlib
import time
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

import natgrad as ng
from benchmarks import tables
from benchmarks.machine import description
from benchmarks.tables import short
from natgrad import zoo
from natgrad.experiment.config import keys

PROBLEMS = ("helmholtz2d", "burgers", "kovasznay", "nonlinear_poisson", "poisson3d", "multiscale", "helmholtz_66")
NETWORKS = ("tanh", "sin", "glorot", "trained", "gated", "residual")
SQUARE = ng.Box([-1, -1], [1, 1])


class Trained(eqx.Module):
    """Sines with a trained factor in each layer."""

    network: ng.MLP
    factors: jax.Array

    def __call__(self, x):
        for layer, factor in zip(self.network.layers[:-1], self.factors, strict=True):
            x = jnp.sin(factor * layer(x))
        y = self.network.layers[-1](x)
        return y[0] if self.network.out_size == 1 else y


class Gated(eqx.Module):
    """The modified MLP."""

    network: ng.MLP
    gates: ng.MLP  # one layer: both gates

    def __call__(self, x):
        first, second = jnp.split(jnp.tanh(self.gates(x)), 2)
        for layer in self.network.layers[:-1]:
            h = jnp.tanh(layer(x))
            x = h * first + (1 - h) * second
        y = self.network.layers[-1](x)
        return y[0] if self.network.out_size == 1 else y


class Skipping(eqx.Module):
    """Residual blocks of one layer."""

    network: ng.MLP

    def __call__(self, x):
        first, *others, last = self.network.layers
        x = jnp.tanh(first(x))
        for layer in others:
            x = x + jnp.tanh(layer(x))
        return last(x)[0] if self.network.out_size == 1 else last(x)


def gated(in_size: int, out_size: int, width: int, depth: int, key: Any) -> Gated:
    """As wide as fits into the parameters of the MLP."""
    size = lambda w: 3 * (in_size + 1) * w + (depth - 1) * (w + 1) * w + (w + 1) * out_size
    most = (in_size + 1) * width + (depth - 1) * (width + 1) * width + (width + 1) * out_size
    width = max(w for w in range(1, width + 1) if size(w) <= most)
    one, two = jax.random.split(key)
    return Gated(ng.MLP(in_size, out_size, width, depth, key=one), ng.MLP(in_size, 2 * width, width, 0, key=two))


def sine(x):
    """What `ng.MLP` does not know to be jnp.sin."""
    return jnp.sin(x)


def maker(name: str) -> Any:
    """What takes the place of `ng.MLP`."""
    kind, _, frequency = name.partition(":")

    def make(in_size, out_size, width, depth, *, key, **preset):  # the network's own kind is what is replaced
        sines = {"activation": jnp.sin, "frequency": float(frequency) if frequency else None}
        if kind == "gated":
            return gated(in_size, out_size, width, depth, key)
        chosen = {"sin": sines, "trained": sines, "glorot": {"activation": sine}}.get(kind, {})
        net = ng.MLP(in_size, out_size, width, depth, key=key, **chosen)
        wrapped = {"trained": lambda: Trained(net, jnp.ones(depth)), "residual": lambda: Skipping(net)}
        return wrapped[kind]() if kind in wrapped else net

    return make


def waves(key: Any, make: Any, numbers: tuple[int, ...], k: float, points: int) -> ng.LeastSquares:
    """Δu + k²u = f in a square with u = Σ sin wπx sin wπy, u = 0 on the boundary."""
    net, inside, rim = jax.random.split(key, 3)
    rates = jnp.pi * jnp.array(numbers)
    exact = lambda x: jnp.sum(jnp.sin(rates * x[0]) * jnp.sin(rates * x[1]))
    force = lambda x: jnp.sum((k**2 - 2 * rates**2) * jnp.sin(rates * x[0]) * jnp.sin(rates * x[1]))
    size = 2 * float(rates.max()) ** 2
    return ng.LeastSquares(
        make(2, 1, 28, 3, key=net),
        pde=ng.Residual(
            lambda u, x: (ng.laplacian(u, x) + k**2 * u(x) - force(x)) / size,
            SQUARE.interior(points, key=inside, rule="sobol"),
        ),
        boundary=ng.Residual(lambda u, x: u(x), SQUARE.boundary(300, key=rim, rule="sobol")),
        exact=exact,
    )


def problem(name: str, seed: int, make: Any) -> tuple[ng.Problem, dict[str, Any]]:
    """The problem with such a network, and the options of its solver."""
    key = keys(seed).problem
    if name == "multiscale":
        return waves(key, make, (1, 2, 4), 0.0, 2000), {"max_rank": 300}
    if name == "helmholtz_66":
        return waves(key, make, (6,), 1.0, 2500), {"max_rank": 300}
    importlib.import_module(f"natgrad.zoo.{name}").MLP = make  # type: ignore[attr-defined]
    benchmark = zoo.get(name)
    return benchmark.problem(key, "small"), benchmark.preset("small").solver_options()


def rows(options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """One for each problem and network."""
    seeds = range(*map(int, options.seeds.split(":")))
    for name in options.problems:
        for kind in options.networks:
            start = time.process_time()
            problems, solvers = zip(*(problem(name, seed, maker(kind)) for seed in seeds), strict=True)
            solutions = ng.solve_many(
                problems, ng.NystromNGD(**solvers[0]), options.steps, keys=[keys(seed).solver for seed in seeds],
                evaluate_every=options.steps, progress=False,
            )  # fmt: skip
            errors = " ".join(short(solution.errors["l2"]) for solution in solutions)
            spent = time.process_time() - start
            yield name, kind, str(problems[0].num_parameters), errors, f"{spent:.0f}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--seeds", default="0:3")
    parser.add_argument("--steps", type=int, default=60)
    tables.option(parser)
    options = parser.parse_args()
    print(f"{description()}\n")
    errors = f"relative L² errors after {options.steps} steps, a seed each"
    head = ("problem", "network", "p", errors, "processor seconds of them all")
    tables.show(head, rows(options), options.keep)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
