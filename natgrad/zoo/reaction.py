"""The reaction equation u_t = ρ u (1 − u), points (t, x): u grows from a bell curve to a plateau with steep sides.

There is no derivative in x. That u(t, 0) = u(t, 2π) is a block `ends`; the slopes differ there, so that the network is
not periodic by itself. Errors are those on the grid of 101 × 257 points of [0, 1] × [0, 2π], ends included; each window
has as many.
"""

from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.calculus import partial as derivative
from natgrad.domains import Interval
from natgrad.networks import MLP, Normalized
from natgrad.options import Count, Range, Whole
from natgrad.problem import Evolution
from natgrad.zoo._grid import grid
from natgrad.zoo._periodic import CIRCLE, gap, left
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar, whole

RHO = 5.0
Rate = Annotated[float, Range(above=0, at_most=20)]


def bell(x):
    return jnp.exp(-((x[0] - jnp.pi) ** 2) / (2 * (jnp.pi / 4) ** 2))


def exact_for(rho: float):
    """h e^ρt / (h e^ρt + 1 − h), h the bell curve."""

    def u(z):
        grown = bell(z[1:]) * jnp.exp(rho * z[0])
        return grown / (grown + 1 - bell(z[1:]))

    return u


def equation(rho: float):
    return lambda u, z: derivative(u, z, 0) - rho * u(z) * (1 - u(z))


def evolution(
    key,
    *,
    rho: Rate = RHO,
    width: Count = 40,
    depth: Whole = 3,
    interior: Count = 8_000,
    initial: Count = 400,
    boundary: Count = 200,
) -> Evolution:
    net, points, rim = jax.random.split(key, 3)
    return Evolution(
        Normalized(MLP(2, 1, width, depth, key=net), Interval(0, 1) * CIRCLE),
        CIRCLE,
        pde=equation(rho),
        initial=bell,
        ends=gap,
        points={"pde": interior, "initial": initial, "ends": left(rim, boundary)},
        exact=exact_for(rho),
        evaluation=partial(grid, times=101, positions=257),
        key=points,
    )


sizes = {"width": 16, "depth": 2, "interior": 600, "initial": 60, "boundary": 60}
small = Preset(
    sizes, budget(ngd=80, quasi_newton=2_000, adam=10_000), {"max_rank": 300}, error=1e-4
)  # measured 9.8e-6, seed 1 3.5e-5
record = Preset({}, budget(ngd=150, quasi_newton=10_000, adam=50_000))
benchmark = register(
    Benchmark(
        name="reaction",
        title="Reaction equation",
        equation="u_t = ρ u (1 − u) in (0,1)×(0,2π), periodic, u(0, x) = exp(−8 (x − π)² / π²), ρ = 5",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=lambda options: Picture((0, 0), (1, CIRCLE.b), ("t", "x"), scalar(exact_for(options.get("rho", RHO)))),
        norm="l2",
    )
)
