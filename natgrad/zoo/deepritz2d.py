"""The Poisson equation in the unit square by finite elements and energy minimization (section 5.1.4 of the paper).

A FEINN of degree 4. Its error cannot fall below that of the mesh, which is reported beside it.
"""

import jax.numpy as jnp

from natgrad.fem import Form, rectangle
from natgrad.fem.tensor import Degree
from natgrad.networks import MLP
from natgrad.options import Count, Whole
from natgrad.problem import FEINNEnergy
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def f(x):
    return 2 * jnp.pi**2 * exact(x)


def build(key, *, width: Count = 64, depth: Whole = 3, cells: Count = 30, degree: Degree = 4) -> FEINNEnergy:
    return FEINNEnergy(
        MLP(2, 1, width, depth, key=key),
        rectangle((cells, cells), degree),
        Form(),  # a(u, v) = ∫ ∇u·∇v, which is also the metric
        load=f,
        dirichlet=0.0,
        exact=exact,
    )


small = Preset(
    options={"width": 16, "cells": 8},
    steps=budget(ngd=100, quasi_newton=3_000, adam=10_000),
    solver={"max_rank": 300},
    error=9.2e-6,  # twice the interpolant's 4.6e-6; measured 4.6e-6
)
paper = Preset(options={}, steps=budget(ngd=1_000, quasi_newton=25_000, adam=75_000))
benchmark = register(
    Benchmark(
        name="deepritz2d",
        title="Poisson equation in 2D, finite elements, energy",
        equation="−Δu = f in (0,1)², u = sin πx · sin πy",
        build=build,
        presets={"small": small, "paper": paper},
        fields=lambda options: Picture((0.0, 0.0), (1.0, 1.0), ("x", "y"), scalar(exact)),
    )
)
