"""Burgers' equation, which steepens a sine into a shock of width ν: u_t + u u_x = ν u_xx, points (t, x).

Half of the points lie where the shock is, |x| < w = 10πν, the others in layers between there and the ends. With
`graded` the network sees asinh(x/w) beside t and x, in which the shock is as wide as all else. Values at the ends and
at t = 0 are exact by the network; with `odd` u is odd in x, which holds the shock where it is, and all points lie at
x > 0. Windows of time have a block `initial` instead, with a tenth as many points. Errors are those on the grid of
101 × 257 points of [0, 1] × [−1, 1], ends included (101 × 513 where ν < 0.002).
"""

from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.calculus import value_gradient_laplacian
from natgrad.domains import Box, Interval
from natgrad.networks import HardBoundary, hard_start
from natgrad.options import Count, Range, Whole
from natgrad.problem import Evolution, LeastSquares, Residual
from natgrad.zoo import _reference
from natgrad.zoo._grid import grid
from natgrad.zoo._shock import layered, network, shock_of
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

START, WALLS = lambda x: -jnp.sin(jnp.pi * x[0]), lambda z: 1 - z[1] ** 2
DOMAIN, NU = Interval(0, 1) * Box(-1, 1), 0.01 / float(jnp.pi)
Viscosity = Annotated[float, Range(at_least=1e-3, at_most=1)]
Many = Annotated[int, Range(at_least=4)]


def equation(nu: float):
    def burgers(u, z):
        value, (u_t, u_x), u_xx = value_gradient_laplacian(u, z, dims=1)
        return u_t + value * u_x - nu * u_xx

    return burgers


def build(
    key,
    *,
    width: Count = 64,
    depth: Whole = 3,
    interior: Many = 10_500,
    nu: Viscosity = NU,
    graded: bool = True,
    odd: bool = True,
) -> LeastSquares:
    net, inside, _ = jax.random.split(key, 3)
    return LeastSquares(
        hard_start(network(net, width, depth, shock_of(nu), graded, odd), DOMAIN, initial=START, boundary=0),
        pde=Residual(equation(nu), layered(interior, inside, shock=shock_of(nu), odd=odd)),
        exact=_reference.burgers(nu),
        evaluation=grid(DOMAIN, 101, 513 if nu < 0.002 else 257),
    )


def evolution(
    key,
    *,
    width: Count = 64,
    depth: Whole = 3,
    interior: Many = 10_500,
    nu: Viscosity = NU,
    graded: bool = True,
    odd: bool = True,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    return Evolution(
        HardBoundary(network(net, width, depth, shock_of(nu), graded, odd), distance=WALLS),
        Box(-1, 1),
        pde=equation(nu),
        initial=START,
        points={
            "pde": lambda _: layered(interior, inside, shock=shock_of(nu), odd=odd),
            "initial": lambda _: layered(max(4, interior // 10), start, shock=shock_of(nu), start=True, odd=odd),
        },
        exact=_reference.burgers(nu),
        evaluation=lambda cylinder: grid(cylinder, 101, 513 if nu < 0.002 else 257),
    )


sizes = {"width": 20, "interior": 2_000}
small = Preset(sizes, budget(ngd=100, quasi_newton=3_000, adam=10_000), {"max_rank": 300}, error=1.5e-4)
record = Preset({}, budget(ngd=200, quasi_newton=10_000, adam=50_000))
options = {"width": 40, "interior": 16_000, "nu": 0.01}
smooth = Preset(options, budget(ngd=120, quasi_newton=10_000, adam=50_000))  # polish
thin = Preset({"nu": 1e-3}, budget(ngd=300, quasi_newton=10_000, adam=50_000))
benchmark = register(
    Benchmark(
        name="burgers",
        title="Viscous Burgers equation",
        equation="u_t + u u_x = ν u_xx in (0,1)×(−1,1), u(0, x) = −sin πx, ν = 0.01/π",
        build=build,
        evolution=evolution,
        presets={"small": small, "record": record, "record_001": smooth, "record_1e3": thin},
        fields=lambda options: Picture((0, -1), (1, 1), ("t", "x"), scalar(_reference.burgers(options.get("nu", NU)))),
        norm="l2",
    )
)
