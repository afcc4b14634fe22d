"""The Korteweg–de Vries equation, whose waves break up into solitons: u_t + u u_x + μ² u_xxx = 0, points (t, x).

Periodic in x by the network: `sines` sees the first waves of x, `harmonics` of them, and `series` is a Fourier series
with as many, whose coefficients are a network of t. Errors are those on 64 × 256 points of the window, the middles of a
regular grid of time and space, against a Fourier series (`_reference/periodic.py`).
"""

from typing import Annotated, Literal

import jax
import jax.numpy as jnp

from natgrad.calculus import derivatives, partial
from natgrad.options import Count, Positive, Range
from natgrad.problem import Evolution
from natgrad.zoo import _reference
from natgrad.zoo._grid import regular
from natgrad.zoo._periodic import LINE, NETWORKS, sobol
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar, whole


def equation(mu: float):
    def kdv(u, z):
        value, u_x, _, u_xxx = derivatives(u, z, 1, order=3)
        return partial(u, z, 0) + value * u_x + mu**2 * u_xxx

    return kdv


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
    mu: Annotated[float, Range(at_least=0.02, at_most=0.1)] = 0.022,
    end: Annotated[float, Range(above=0, at_most=1)] = 1.0,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    return Evolution(
        NETWORKS[network](net, LINE, 1, width, depth, harmonics, frequency),
        LINE,
        pde=equation(mu),
        initial=lambda x: jnp.cos(jnp.pi * x[0]),
        interval=(0, end),
        points=sobol(inside, interior, start, initial),
        exact=_reference.kdv(mu, end),
        evaluation=lambda cylinder: regular(cylinder, 64, 256),
    )


def picture(options):
    end = options.get("end", 1.0)
    return Picture((0, -1), (end, 1), ("t", "x"), scalar(_reference.kdv(options.get("mu", 0.022), end)))


options = {"width": 20, "interior": 2_200, "initial": 200}
steps = budget(ngd=30, quasi_newton=3_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, windows=8, error=1e-4)  # measured 2.3e-5
options = {"width": 40, "depth": 4, "interior": 8_000, "initial": 1_024}
record = Preset(options, budget(ngd=50, quasi_newton=20_000, adam=100_000), windows=8)
benchmark = register(
    Benchmark(
        name="kdv",
        title="Korteweg–de Vries equation",
        equation="u_t + u u_x + μ² u_xxx = 0 in (0,1)×(−1,1), periodic, u(0, x) = cos πx, μ = 0.022",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=picture,
        norm="l2",
    )
)
