"""The lid-driven cavity: the stationary Navier–Stokes equations in a box of fluid whose lid slides.

The network is the stream function ψ: u = (∂ψ/∂y, −∂ψ/∂x) is free of divergence, and ν Δ²ψ = u·∇Δψ has no pressure.
ψ = w + d N, where w has the values on the walls and what is singular in the corners under the lid, which are known
(`_reference/corners.py`), and d has double zeros on the walls. So the boundary values are exact and N is smooth.
Errors are relative L² errors of u on a regular grid, the centres of 100 × 100 cells.
"""

from typing import Annotated, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from natgrad.calculus import derivatives, gradient
from natgrad.domains import Box, as_points
from natgrad.networks import MLP, Normalized
from natgrad.networks.base import Function
from natgrad.options import Count, Range, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo import _reference
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register

SQUARE = Box([0, 0], [1, 1])
CELLS = (np.arange(100) + 0.5) / 100
GRID = np.stack(np.meshgrid(CELLS, CELLS, indexing="ij"), axis=-1).reshape(-1, 2)


class Flow(eqx.Module):
    """The velocity u(x) of the stream function ψ = w + d N."""

    network: Function
    walls: Function = eqx.field(static=True)

    def inner(self, x):
        return 256 * jnp.prod(x * (1 - x)) ** 2 * self.network(x)

    def __call__(self, x):
        return turned(gradient(lambda x: self.walls(x) + self.inner(x), x))


def reach(x):
    """The weight of the equation, small nearer than a tenth to the corners under the lid, where Δ²N has no bound."""
    squares = jnp.sum((x - jnp.array([[0, 1], [1, 1]])) ** 2, axis=1)
    return jnp.prod(squares / (squares + 0.01))


def turned(slope):
    return jnp.stack([slope[1], -slope[0]])


def slopes(psi, x):
    """∇ψ, ∇Δψ and Δ²ψ (5,), from the derivatives along two axes and two diagonals."""
    along = lambda e: jnp.stack(derivatives(lambda s: psi(x + s[0] * e), jnp.zeros(1, x.dtype), 0, 4))
    a, b, c, d = jax.vmap(along)(jnp.array([[1, 0], [0, 1], [1, 1], [1, -1]], x.dtype))
    first = (2 * a[3] + (c[3] + d[3]) / 2) / 3  # c + d = 2ψ_xxx + 6ψ_xyy
    second = (2 * b[3] + (c[3] - d[3]) / 2) / 3
    return jnp.stack([a[1], b[1], first, second, 2 / 3 * (a[4] + b[4]) + (c[4] + d[4]) / 6])


def build(
    key,
    *,
    width: Count = 40,
    depth: Whole = 3,
    interior: Count = 10_000,
    reynolds: Annotated[float, Range(at_least=1, at_most=1_500)] = 100.0,
    lid: Literal["parabola", "constant"] = "parabola",
) -> LeastSquares:
    walls = _reference.walls(float(reynolds), lid)

    def vorticity(flow, x, known):
        total = known + slopes(flow.inner, x)
        return reach(x) * (total[4] / reynolds - turned(total[:2]) @ total[2:4])

    net, inside = jax.random.split(key)
    network = Normalized(MLP(2, 1, width, depth, key=net), SQUARE, scale=0.1)
    points, known = SQUARE.interior(interior, key=inside, rule="sobol"), lambda p: walls.slopes(np.asarray(p.x))
    return LeastSquares(
        Flow(network, walls),
        pde=Residual(vorticity, points, data=known),
        exact=_reference.cavity(float(reynolds), lid),
        evaluation=as_points(GRID),
    )


def picture(options):
    exact = _reference.cavity(float(options.get("reynolds", 100.0)), options.get("lid", "parabola"))
    shown = {f"u{'₁₂'[i]}": (lambda flow, i=i: lambda x: flow(x)[i], lambda x, i=i: exact(x)[i]) for i in (0, 1)}
    return Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), shown)


steps, each, longer = (budget(ngd=n, quasi_newton=50 * n, adam=100 * n) for n in (80, 120, 250))
small = Preset({"width": 20, "depth": 2, "interior": 2_000}, steps, {"max_rank": 300}, error=1e-3)
record = Preset({}, longer)
record_1000 = Preset({"width": 48, "interior": 20_000, "reynolds": 1000.0}, each, via={"reynolds": (100.0, 400.0)})
title, equation = "Lid-driven cavity", "−ν∆u + (u·∇)u + ∇p = 0, ∇·u = 0 in (0,1)², lid u₁ = 4x(1 − x) or 1, ν = 1/Re"
presets = {"small": small, "record": record, "record_1000": record_1000}
benchmark = register(Benchmark("cavity", title, equation, build, presets, picture, norm="l2"))
