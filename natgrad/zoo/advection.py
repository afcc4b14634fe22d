"""Advection u_t + c u_x = 0 round a circle, points (t, x): for c = 80 the sine passes almost thirteen times.

A network of sines in windows of time. The solution is one wave, which a single hidden layer of sines holds exactly
once it has found its frequencies: `frequency` is about that of the first layer in a window, of coordinates from −1 to
1. The residual is divided by c. That u(t, 0) = u(t, 2π) is a block `ends`. Errors are those on the grid of 201 × 129
points of [0, 1] × [0, 2π], ends included; each window has as many.
"""

from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.calculus import gradient
from natgrad.domains import Interval
from natgrad.networks import MLP, Normalized
from natgrad.options import Count, Positive, Range, Whole
from natgrad.problem import Evolution
from natgrad.zoo._grid import grid
from natgrad.zoo._periodic import CIRCLE, gap, left
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar, whole

SPEED = 80.0
Speed = Annotated[float, Range(at_least=1, at_most=1000)]


def exact_for(c: float):
    return lambda z: jnp.sin(z[1] - c * z[0])


def equation(c: float):
    def advection(u, z):
        u_t, u_x = gradient(u, z)
        return u_t / c + u_x

    return advection


def evolution(
    key,
    *,
    c: Speed = SPEED,
    width: Count = 96,
    depth: Whole = 1,
    frequency: Positive = 4.0,
    interior: Count = 2_000,
    initial: Count = 200,
    boundary: Count = 100,
) -> Evolution:
    net, points, rim = jax.random.split(key, 3)
    sines = MLP(2, 1, width, depth, activation=jnp.sin, frequency=frequency, key=net)
    return Evolution(
        Normalized(sines, Interval(0, 1) * CIRCLE),
        CIRCLE,
        pde=equation(c),
        initial=lambda x: jnp.sin(x[0]),
        ends=gap,
        points={"pde": interior, "initial": initial, "ends": left(rim, boundary)},
        exact=exact_for(c),
        evaluation=partial(grid, times=201, positions=129),
        key=points,
    )


sizes = {"width": 48, "interior": 400, "initial": 50, "boundary": 50}
small = Preset(sizes, budget(ngd=40, quasi_newton=500, adam=5_000), {"max_rank": 300}, error=1e-9, windows=8)
record = Preset({}, budget(ngd=60, quasi_newton=1_000, adam=10_000), windows=8)
benchmark = register(
    Benchmark(
        name="advection",
        title="Advection round a circle",
        equation="u_t + c u_x = 0 in (0,1)×(0,2π), periodic, u(0, x) = sin x, c = 80",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=lambda options: Picture((0, 0), (1, CIRCLE.b), ("t", "x"), scalar(exact_for(options.get("c", SPEED)))),
        norm="l2",
    )
)
