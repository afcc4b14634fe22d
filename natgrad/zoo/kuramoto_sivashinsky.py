"""The Kuramoto–Sivashinsky equation, which is chaotic: u_t + α u u_x + β u_xx + γ u_xxxx = 0, points (t, x).

α = 100/16, β = 100/16², γ = 100/16⁴. It grows and turns at rates of α and more: the residual is divided by α. Periodic
in x by the network: `sines` sees the first waves of x, `harmonics` of them, and `series` is a Fourier series with as
many, whose coefficients are a network of t. Errors are those on 64 × 256 points of the window, the middles of a regular
grid of time and space, against a Fourier series (`_reference/periodic.py`).
"""

import math
from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from natgrad.calculus import derivatives, partial
from natgrad.domains import Box
from natgrad.options import Count, Positive, Range
from natgrad.problem import Evolution
from natgrad.zoo import _reference
from natgrad.zoo._grid import regular
from natgrad.zoo._periodic import NETWORKS, sobol
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar, whole

ALPHA, BETA, GAMMA = 100 / 16, 100 / 16**2, 100 / 16**4
CIRCLE = Box([0], [2 * math.pi])


def equation(u, z):
    value, u_x, u_xx, _, u_xxxx = derivatives(u, z, 1, order=4)
    return (partial(u, z, 0) + ALPHA * value * u_x + BETA * u_xx + GAMMA * u_xxxx) / ALPHA


def evolution(
    key,
    *,
    network: Literal["sines", "series"] = "sines",
    width: Count = 40,
    depth: Count = 3,
    harmonics: Count = 4,
    frequency: Positive = 1.0,
    interior: Count = 10_000,
    initial: Count = 512,
    end: Annotated[float, Range(above=0, at_most=1)] = 1.0,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    return Evolution(
        NETWORKS[network](net, CIRCLE, 1, width, depth, harmonics, frequency),
        CIRCLE,
        pde=equation,
        initial=lambda x: jnp.cos(x[0]) * (1 + jnp.sin(x[0])),
        interval=(0, end),
        points=sobol(inside, interior, start, initial),
        exact=_reference.kuramoto_sivashinsky(end),
        evaluation=lambda cylinder: regular(cylinder, 64, 256),
    )


def picture(options):
    end = options.get("end", 1.0)
    return Picture((0, 0), (end, CIRCLE.upper[0]), ("t", "x"), scalar(_reference.kuramoto_sivashinsky(end)))


options = {"width": 16, "interior": 3_000, "initial": 512, "end": 0.2}
steps = budget(ngd=25, quasi_newton=3_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, windows=4, error=1e-2)
sizes = {"width": 10, "depth": 1, "harmonics": 120, "frequency": 2.0, "interior": 5_500}
record = Preset({"network": "series", **sizes}, budget(ngd=15, quasi_newton=20_000, adam=100_000), windows=80)  # polish
benchmark = register(
    Benchmark(
        name="kuramoto_sivashinsky",
        title="Kuramoto–Sivashinsky equation, chaotic",
        equation="u_t + α u u_x + β u_xx + γ u_xxxx = 0 in (0,1)×(0,2π), periodic, u(0, x) = cos x (1 + sin x)",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=picture,
        norm="l2",
    )
)
