"""The complex Ginzburg–Landau equation, whose waves are spirals: A_t = ε ΔA + μ A − γ A |A|², points (t, x, y).

ε = 0.004, μ = 10, γ = 10 + 15i, and A = (10y + 10ix) exp(−25 (x² + y²)) at the start. The fields are u = Re A and
v = Im A. The residuals are divided by μ. A is what it is at the start, in a small part of the square, and a network,
which is periodic and small at first. Errors are those of both fields together on 8 × 32 × 32 points of the window, the
middles of a regular grid of time and space, against a Fourier series (`_reference/periodic.py`); they are of values
alone.
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
    (u, v), slopes, second = value_gradient_laplacian(w, z, dims=(1, 2))
    square = u**2 + v**2
    turned = jnp.stack([10 * u - 15 * v, 15 * u + 10 * v])  # γ A
    return (slopes[:, 0] - 0.004 * second + turned * square) / 10 - jnp.stack([u, v])


def start_values(x):
    return jnp.stack([10 * x[1], 10 * x[0]]) * jnp.exp(-25 * (x[0] ** 2 + x[1] ** 2))


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
    end: Annotated[float, Range(above=0, at_most=1)] = 1.0,
) -> Evolution:
    net, inside, start = jax.random.split(key, 3)
    return Evolution(
        HardBoundary(sines(net, SQUARE, 2, width, depth, harmonics, frequency), distance=tenth, lift=begin),
        SQUARE,
        pde=equation,
        initial=start_values,
        interval=(0, end),
        points=sobol(inside, interior, start, initial),
        exact=Tabulated(_reference.ginzburg_landau(end).values),
        evaluation=lambda cylinder: regular(cylinder, 8, 32),
    )


def picture(options):
    end = options.get("end", 1.0)
    fields = components(("u", "v"), _reference.ginzburg_landau(end))
    return Picture((0, -1, -1), (end, 1, 1), ("t", "x", "y"), fields, at={"t": end})


options = {"width": 16, "harmonics": 2, "interior": 5_000, "initial": 800, "end": 0.05}
small = Preset(options, budget(ngd=60, quasi_newton=3_000, adam=10_000), {"max_rank": 300}, windows=1, error=2e-2)
options = {"width": 36, "harmonics": 4, "interior": 24_000, "initial": 2_000}
record = Preset(options, budget(ngd=50, quasi_newton=20_000, adam=100_000), windows=20)
benchmark = register(
    Benchmark(
        name="ginzburg_landau",
        title="Complex Ginzburg–Landau equation",
        equation="A_t = ε ΔA + μ A − γ A |A|² in (0,1)×(−1,1)², periodic, ε = 0.004, μ = 10, γ = 10 + 15i",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=picture,
        norm="l2",
    )
)
