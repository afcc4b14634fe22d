"""The Helmholtz equation in a square, u = 0 on the boundary: Δu + k²u = q with u = sin a₁πx · sin a₂πy.

The network is one of sines, since the solution is waves. It is multiplied by (1 − x²)(1 − y²), so that the boundary
values are exact; with `boundary` points it stands alone, and they are a residual. With depth 1 it is a sum of `width`
waves that start with frequencies up to `frequency`; alone it holds the solution exactly. Then `frequency` is to be that
of q, aπ, and a tenth more. With more layers it is an MLP, and `frequency` about that of its first layer.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from natgrad.calculus import laplacian
from natgrad.domains import Box
from natgrad.networks import MLP, HardBoundary, Waves
from natgrad.options import Count, Positive, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

SQUARE = Box([-1, -1], [1, 1])


def waves(a1: int, a2: int):
    return lambda x: jnp.sin(a1 * jnp.pi * x[0]) * jnp.sin(a2 * jnp.pi * x[1])


def distance(x):
    return jnp.prod(1 - x**2)


def build(
    key,
    *,
    width: Count = 48,
    depth: Count = 3,
    frequency: Positive = 2.0,
    interior: Count = 10_000,
    boundary: Whole = 0,
    waves_x: Count = 1,
    waves_y: Count = 4,
    k: float = 1.0,
) -> LeastSquares:
    exact, size = waves(waves_x, waves_y), (waves_x**2 + waves_y**2) * jnp.pi**2

    def helmholtz(u, x):
        return (laplacian(u, x) + k**2 * u(x) - (k**2 - size) * exact(x)) / size

    net, inside, rim = jax.random.split(key, 3)
    deep = lambda: MLP(2, 1, width, depth, activation=jnp.sin, frequency=frequency, key=net)
    flat = lambda: Waves(2, 1, width, up_to=frequency, key=net)
    network = deep() if depth > 1 else flat()
    blocks: dict[str, Any] = {"pde": Residual(helmholtz, SQUARE.interior(interior, key=inside, rule="sobol"))}
    if boundary:
        blocks["boundary"] = Residual(lambda u, x: u(x), SQUARE.boundary(boundary, key=rim, rule="sobol"))
    return LeastSquares(network if boundary else HardBoundary(network, distance), exact=exact, **blocks)


def picture(options):
    exact = waves(options.get("waves_x", 1), options.get("waves_y", 4))
    return Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), scalar(exact))


small = Preset(
    options={"width": 24, "depth": 2, "interior": 1_500},
    steps=budget(ngd=60, quasi_newton=3_000, adam=10_000),
    solver={"max_rank": 300},
    error=1e-7,  # measured 4.3e-8
)
record, record_66, record_1010 = (
    Preset(
        {"width": width, "depth": 1, "frequency": 1.1 * max(a) * math.pi, "interior": 10 * width, "boundary": 2 * width}
        | {"waves_x": a[0], "waves_y": a[1]},
        budget(ngd=60, quasi_newton=10_000, adam=50_000),
    )  # for `polish`
    for a, width in (((1, 4), 96), ((6, 6), 192), ((10, 10), 384))
)
benchmark = register(
    Benchmark(
        name="helmholtz2d",
        title="Helmholtz equation in 2D",
        equation="Δu + k²u = q in (−1,1)², u = sin a₁πx · sin a₂πy, a = (1, 4), k = 1",
        build=build,
        presets={"small": small, "record": record, "record_66": record_66, "record_1010": record_1010},
        fields=picture,
    )
)
