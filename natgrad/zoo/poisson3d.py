"""The Poisson equation in the unit cube (section 5.1.1 of the paper): −Δu = f, u = 0 on the boundary."""

import jax
import jax.numpy as jnp

from natgrad.calculus import laplacian
from natgrad.domains import Box
from natgrad.networks import MLP
from natgrad.options import Count, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

CUBE = Box([0, 0, 0], [1, 1, 1])


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def poisson(u, x):
    return -laplacian(u, x) - 3 * jnp.pi**2 * exact(x)


def dirichlet(u, x):
    return u(x) - exact(x)


def build(
    key, *, width: Count = 64, depth: Whole = 3, interior: Count = 10_000, boundary: Count = 1_000
) -> LeastSquares:
    net, inside, rim = jax.random.split(key, 3)
    return LeastSquares(
        MLP(in_size=3, out_size=1, width=width, depth=depth, key=net),
        pde=Residual(poisson, CUBE.interior(interior, key=inside)),
        boundary=Residual(dirichlet, CUBE.boundary(boundary, key=rim)),
        exact=exact,
    )


small = Preset(
    options={"width": 32, "depth": 2, "interior": 1_500, "boundary": 600},
    steps=budget(ngd=60, quasi_newton=2_000, adam=10_000),
    solver={"max_rank": 300},
    error=1.3e-5,  # measured 6.2e-6
)
paper = Preset(options={}, steps=budget(ngd=1_000, quasi_newton=50_000, adam=150_000))
benchmark = register(
    Benchmark(
        name="poisson3d",
        title="Poisson equation in 3D",
        equation="−Δu = f in (0,1)³, u = sin πx · sin πy · sin πz",
        build=build,
        presets={"small": small, "paper": paper},
        fields=lambda options: Picture(CUBE.lower, CUBE.upper, ("x", "y", "z"), scalar(exact), at={"z": 0.5}),
    )
)
