"""The heat equation in 3+1 dimensions (section 5.1.2 of the paper): u_t − Δu = f, points (t, x, y, z).

The paper has 1,000 boundary points and does not say how they are split: here half of them carry the initial condition.
"""

import jax
import jax.numpy as jnp

from natgrad.calculus import value_gradient_laplacian
from natgrad.domains import Box, Interval
from natgrad.networks import MLP
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

DOMAIN = Interval(0, 1) * Box([0, 0, 0], [1, 1, 1])
NAMES = ("t", "x", "y", "z")


def exact(x):
    return jnp.sum(jnp.cos(jnp.pi * x[1:])) * jnp.exp(-(jnp.pi**2) * x[0] / 4)


def heat(u, x):
    _, du, laplacian = value_gradient_laplacian(u, x, dims=(1, 2, 3))
    return du[0] - laplacian - 0.75 * jnp.pi**2 * exact(x)


def fixed(u, x):
    return u(x) - exact(x)


def build(
    key, *, width: int = 64, depth: int = 3, interior: int = 10_000, boundary: int = 500, initial: int = 500
) -> LeastSquares:
    net, inside, rim, start = jax.random.split(key, 4)
    return LeastSquares(
        MLP(in_size=4, out_size=1, width=width, depth=depth, key=net),
        pde=Residual(heat, DOMAIN.interior(interior, key=inside)),
        boundary=Residual(fixed, DOMAIN.boundary(boundary, key=rim)),
        initial=Residual(fixed, DOMAIN.initial(initial, key=start)),
        exact=exact,
    )


options = {"width": 32, "depth": 2, "interior": 1_500, "boundary": 400, "initial": 200}
steps = budget(ngd=60, quasi_newton=2_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, error=1.1e-4)  # measured 5.4e-5
paper = Preset({}, budget(ngd=1_000, quasi_newton=50_000, adam=150_000))
benchmark = register(
    Benchmark(
        name="heat3d",
        title="Heat equation in 3+1D",
        equation="u_t − Δu = f in (0,1)×(0,1)³, u = (cos πx + cos πy + cos πz) exp(−π²t/4)",
        build=build,
        presets={"small": small, "paper": paper},
        fields=lambda options: Picture((0,) * 4, (1,) * 4, NAMES, scalar(exact), at={"t": 0.5, "z": 0.5}),
    )
)
