"""The Gray–Scott equations: u feeds v, and spots of v divide, u_t = 0.2 Δu + 40 (1 − u) − 1000 u v² and
v_t = 0.1 Δv − 100 v + 1000 u v², points (t, x, y).

This is the problem of the literature, with t ≤ 2: u = 1 − exp(−10 ((x + 0.05)² + (y + 0.02)²)) at the start, and
v = exp(−10 ((x − 0.05)² + (y − 0.02)²)). The residuals are divided by 100, about the rate at which things happen.
u and v are what they are at the start and a network, which is periodic and small at first. Errors are those of both
fields together on 8 × 32 × 32 points of the window, the middles of a regular grid of time and space, against a Fourier
series (`_reference/periodic.py`); they are of values alone.
"""

from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.calculus import value_gradient_laplacian
from natgrad.networks import HardBoundary
from natgrad.options import Count, Positive, Range, Whole
from natgrad.problem import Evolution
from natgrad.problem.evolution import Tabulated
from natgrad.zoo import _reference
from natgrad.zoo._grid import regular
from natgrad.zoo._periodic import SQUARE, sines, sobol, tenth
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, components, register, whole


def equation(w, z):
    (u, v), slopes, (u_second, v_second) = value_gradient_laplacian(w, z, dims=(1, 2))
    made = 1000 * u * v**2
    u_rate = 0.2 * u_second + 40 * (1 - u) - made
    v_rate = 0.1 * v_second - 100 * v + made
    return (slopes[:, 0] - jnp.stack([u_rate, v_rate])) / 100


def start_values(x):
    bump = lambda a, b: jnp.exp(-10 * ((x[0] - a) ** 2 + (x[1] - b) ** 2))
    return jnp.stack([1 - bump(-0.05, -0.02), bump(0.05, 0.02)])


def begin(z):
    return start_values(z[1:])


def evolution(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    harmonics: Count = 3,
    frequency: Positive = 1.0,
    interior: Count = 8_000,
    initial: Count = 1_000,
    end: Annotated[float, Range(above=0, at_most=2)] = 2.0,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    return Evolution(
        HardBoundary(sines(net, SQUARE, 2, width, depth, harmonics, frequency), distance=tenth, lift=begin),
        SQUARE,
        pde=equation,
        initial=start_values,
        interval=(0, end),
        points=sobol(inside, interior, start, initial),
        exact=Tabulated(_reference.gray_scott(end).values),
        evaluation=lambda cylinder: regular(cylinder, 8, 32),
    )


def picture(options):
    end = options.get("end", 2.0)
    fields = components(("u", "v"), _reference.gray_scott(end))
    return Picture((0, -1, -1), (end, 1, 1), ("t", "x", "y"), fields, at={"t": end})


# Fast at first.
TIMES = [0, 0.002, 0.005, 0.01, 0.02, 0.035, 0.06, 0.1, 0.16, 0.24, 0.34, 0.46, 0.6, 0.8, 1.0, 1.25, 1.5, 1.75, 2.0]
options = {"width": 16, "harmonics": 2, "interior": 5_000, "initial": 800, "end": 0.01}
small = Preset(options, budget(ngd=60, quasi_newton=3_000, adam=10_000), {"max_rank": 300}, windows=1, error=1.5e-2)
options = {"width": 32, "harmonics": 4, "interior": 20_000, "initial": 2_000}
record = Preset(options, budget(ngd=50, quasi_newton=20_000, adam=100_000), windows=TIMES)
benchmark = register(
    Benchmark(
        name="gray_scott",
        title="Gray–Scott equations",
        equation="u_t = 0.2 Δu + 40 (1 − u) − 1000 u v², v_t = 0.1 Δv − 100 v + 1000 u v² in (0,2)×(−1,1)², periodic",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=picture,
        norm="l2",
    )
)
