"""The Allen–Cahn equation, periodic in x by the network: u_t = D u_xx + R (u − u³), points (t, x)."""

from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.calculus import value_gradient_laplacian
from natgrad.domains import Box, Interval
from natgrad.networks import MLP, Periodic
from natgrad.options import Count, Range, Whole
from natgrad.problem import Evolution, LeastSquares, Residual
from natgrad.zoo import _reference
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

DOMAIN = Interval(0, 1) * Box([-1], [1])


def equation(diffusion: float, reaction: float):
    def allen_cahn(u, z):
        value, (u_t, _), u_xx = value_gradient_laplacian(u, z, dims=1)
        return u_t - diffusion * u_xx - reaction * (value - value**3)

    return allen_cahn


def build(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    interior: Count = 10_000,
    initial: Count = 400,
    diffusion: Annotated[float, Range(at_least=1e-3, at_most=2e-2)] = 1e-3,
    reaction: Annotated[float, Range(at_least=0, at_most=10)] = 5.0,
) -> LeastSquares:
    net, inside, start = jax.random.split(key, 3)
    return LeastSquares(
        Periodic(MLP(in_size=3, out_size=1, width=width, depth=depth, key=net), periods=(None, 2.0)),
        pde=Residual(equation(diffusion, reaction), DOMAIN.interior(interior, key=inside, rule="sobol")),
        initial=Residual(lambda u, z: u(z) + jnp.cos(jnp.pi * z[1]), DOMAIN.initial(initial, key=start), weight=10),
        exact=_reference.allen_cahn(diffusion, reaction),
    )


def evolution(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    interior: Count = 10_000,
    initial: Count = 400,
    diffusion: Annotated[float, Range(at_least=1e-3, at_most=2e-2)] = 1e-3,
    reaction: Annotated[float, Range(at_least=0, at_most=10)] = 5.0,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    return Evolution(
        Periodic(MLP(in_size=3, out_size=1, width=width, depth=depth, key=net), periods=(None, 2.0)),
        Box([-1], [1]),
        pde=equation(diffusion, reaction),
        initial=lambda x: -jnp.cos(jnp.pi * x[0]),
        points={
            "pde": lambda cylinder: cylinder.interior(interior, key=inside, rule="sobol"),
            "initial": lambda cylinder: cylinder.initial(initial, key=start),
        },
        exact=_reference.allen_cahn(diffusion, reaction),
    )


def picture(options):
    exact = _reference.allen_cahn(options.get("diffusion", 1e-3), options.get("reaction", 5.0))
    return Picture((0, -1), (1, 1), ("t", "x"), scalar(exact))


options = {"width": 24, "depth": 2, "interior": 4_000, "initial": 200}
steps = budget(ngd=100, quasi_newton=3_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, error=8.8e-5)  # measured 4.4e-5
benchmark = register(
    Benchmark(
        name="allen_cahn",
        title="Allen–Cahn equation",
        equation="u_t = D u_xx + R (u − u³) in (0,1)×(−1,1), periodic, u(0, x) = −cos πx, D = 10⁻³, R = 5",
        build=build,
        evolution=evolution,
        presets={"small": small},
        fields=picture,
    )
)
