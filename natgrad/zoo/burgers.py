"""Burgers' equation, which steepens a sine into a shock of width ν: u_t + u u_x = ν u_xx, points (t, x).

There are `boundary` points on the boundary and as many at t = 0. ν is 0.01/π by default, 0.1/π in the preset `small`.
"""

from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.backend import host
from natgrad.calculus import value_gradient_laplacian
from natgrad.domains import Box, Interval, Points
from natgrad.networks import MLP
from natgrad.options import Count, Range, Whole
from natgrad.problem import Evolution, LeastSquares, Residual
from natgrad.zoo import _reference
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

TIME = Interval(0, 1)
DOMAIN = TIME * Box(-1, 1)
NU = 0.01 / float(jnp.pi)


def layered(n: int, key, rule: str = "sobol"):
    """Half of the points where the shock is, |x| < 0.1, and half elsewhere."""
    strips = ((-0.1, 0.1, n // 2), (-1, -0.1, n // 4), (0.1, 1, n // 4))
    keys = jax.random.split(key, 3)
    blocks = [(TIME * Box(a, b)).interior(m, key=k, rule=rule) for (a, b, m), k in zip(strips, keys, strict=True)]
    return Points.concatenate(*blocks)


def equation(nu: float):
    def burgers(u, z):
        value, (u_t, u_x), u_xx = value_gradient_laplacian(u, z, dims=1)
        return u_t + value * u_x - nu * u_xx

    return burgers


def build(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    interior: Annotated[int, Range(at_least=4)] = 10_000,
    boundary: Count = 400,
    nu: Annotated[float, Range(at_least=1e-3, at_most=1)] = NU,
) -> LeastSquares:
    net, inside, rim, start = jax.random.split(key, 4)
    return LeastSquares(
        MLP(in_size=2, out_size=1, width=width, depth=depth, key=net),
        pde=Residual(equation(nu), layered(interior, inside)),
        boundary=Residual(lambda u, z: u(z), DOMAIN.boundary(boundary, key=rim), weight=10),
        initial=Residual(lambda u, z: u(z) + jnp.sin(jnp.pi * z[1]), DOMAIN.initial(boundary, key=start), weight=10),
        exact=_reference.burgers(nu),
        evaluation=layered(10 * interior, host.key(host.EVALUATION), "monte-carlo"),
    )


def evolution(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    interior: Annotated[int, Range(at_least=4)] = 10_000,
    boundary: Count = 400,
    nu: Annotated[float, Range(at_least=1e-3, at_most=1)] = NU,
) -> Evolution:
    net, inside, rim, start = jax.random.split(key, 4)
    return Evolution(
        MLP(in_size=2, out_size=1, width=width, depth=depth, key=net),
        Box(-1, 1),
        pde=equation(nu),
        initial=lambda x: -jnp.sin(jnp.pi * x[0]),
        boundary=lambda u, z: u(z),
        points={
            "pde": lambda _: layered(interior, inside),
            "boundary": lambda cylinder: cylinder.boundary(boundary, key=rim),
            "initial": lambda cylinder: cylinder.initial(boundary, key=start),
        },
        weights={"boundary": 10},
        exact=_reference.burgers(nu),
        evaluation=lambda _: layered(10 * interior, host.key(host.EVALUATION), "monte-carlo"),
    )


options = {"width": 20, "depth": 2, "interior": 1_200, "boundary": 100, "nu": 10 * NU}
steps = budget(ngd=120, quasi_newton=3_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, error=1.7e-4)  # measured 8.5e-5
benchmark = register(
    Benchmark(
        name="burgers",
        title="Viscous Burgers equation",
        equation="u_t + u u_x = ν u_xx in (0,1)×(−1,1), u(0, x) = −sin πx, ν = 0.01/π (small: 0.1/π)",
        build=build,
        evolution=evolution,
        presets={"small": small},
        fields=lambda options: Picture((0, -1), (1, 1), ("t", "x"), scalar(_reference.burgers(options.get("nu", NU)))),
    )
)
