"""Kovasznay's flow (section 5.1.3 of the paper): the stationary Navier–Stokes equations at Re = 40, networks u and p.

The pressure is determined up to a constant; errors are those of the velocity.
"""

import jax
import jax.numpy as jnp
import numpy as np

from natgrad.calculus import gradient, value_gradient_laplacian
from natgrad.domains import Box
from natgrad.networks import MLP, Fields
from natgrad.optim.damping import LevenbergMarquardt
from natgrad.options import Count, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo._pressure import flow_fields
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register

BOX = Box([-0.5, -0.5], [1, 1.5])
NU = 1 / 40
LAMBDA = 1 / (2 * NU) - np.sqrt(1 / (4 * NU**2) + 4 * np.pi**2)


def velocity(x):
    wave, angle = jnp.exp(LAMBDA * x[0]), 2 * jnp.pi * x[1]
    return jnp.array([1 - wave * jnp.cos(angle), LAMBDA / (2 * jnp.pi) * wave * jnp.sin(angle)])


def pressure(x):
    return (1 - jnp.exp(2 * LAMBDA * x[0])) / 2


def navier_stokes(flow, x):
    u, du, laplacian = value_gradient_laplacian(flow.u, x)
    return jnp.append(-NU * laplacian + du @ u + gradient(flow.p, x), jnp.trace(du))


def build(
    key, *, width: Count = 45, depth: Whole = 3, interior: Count = 10_000, boundary: Count = 1_000
) -> LeastSquares:
    u, p, inside, rim = jax.random.split(key, 4)
    return LeastSquares(
        Fields(u=MLP(2, 2, width, depth, key=u), p=MLP(2, 1, width, depth, key=p)),
        pde=Residual(navier_stokes, BOX.interior(interior, key=inside)),
        boundary=Residual(lambda flow, x: flow.u(x) - velocity(x), BOX.boundary(boundary, key=rim)),
        exact={"u": velocity},
    )


published = {"damping": LevenbergMarquardt}
options = {"width": 20, "depth": 2, "interior": 800, "boundary": 300}
small = Preset(options, budget(ngd=60, quasi_newton=3_000, adam=10_000), {"max_rank": 300}, published, 1.4e-5)
paper = Preset({}, budget(ngd=2_000, quasi_newton=25_000, adam=75_000), published=published)
benchmark = register(
    Benchmark(
        name="kovasznay",
        title="Kovasznay flow",
        equation="−ν∆u + (u·∇)u + ∇p = 0, ∇·u = 0, ν = 1/40",
        build=build,
        presets={"small": small, "paper": paper},
        fields=lambda options: Picture(BOX.lower, BOX.upper, ("x", "y"), flow_fields(velocity, pressure, BOX)),
    )
)
