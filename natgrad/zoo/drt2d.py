"""Diffusion, reaction and transport in the unit square by finite elements (section 5.1.5 of the paper).

Least squares in the dual norm, since the form is not symmetric. Neumann data at the bottom and the top. The default
metric is that of the loss; the published recipe has the paper's, H¹.
"""

from typing import Literal

import jax
import jax.numpy as jnp

from natgrad.fem import Form, rectangle
from natgrad.fem.tensor import Degree
from natgrad.networks import MLP
from natgrad.options import Count, Whole
from natgrad.problem import FEINNLeastSquares
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar


def exact(x):
    first = jnp.sin(3.2 * x[0] * (x[0] - x[1])) * jnp.cos(4.3 * x[1] + x[0])
    return first + jnp.sin(4.6 * (x[0] + 2 * x[1])) * jnp.cos(2.6 * (x[1] - 2 * x[0]))


def diffusion(x):
    return 2 + jnp.sin(x[0] + 2 * x[1])


def advection(x):
    return jnp.sqrt(x - x[::-1] ** 2 + 5)


def reaction(x):
    return jnp.exp(x[0] / 2 - x[1] / 3) + 2


def flux(x):
    return diffusion(x) * jax.grad(exact)(x)


def f(x):
    return -jnp.trace(jax.jacfwd(flux)(x)) + advection(x) @ jax.grad(exact)(x) + reaction(x) * exact(x)


def build(
    key,
    *,
    width: Count = 64,
    depth: Whole = 3,
    cells: Count = 30,
    degree: Degree = 4,
    metric: Literal["least_squares", "h1", "energy"] = "least_squares",
):
    return FEINNLeastSquares(
        MLP(2, 1, width, depth, key=key),
        rectangle((cells, cells), degree),
        Form(diffusion, advection, reaction),
        load=f,
        dirichlet={("left", "right"): exact},
        neumann={("bottom", "top"): lambda x, n: flux(x) @ n},
        metric=metric,
        exact=exact,
    )


options, paper = (
    {"width": 24, "cells": 8},
    Preset({}, budget(ngd=1_000, quasi_newton=25_000, adam=75_000), as_published={"metric": "h1"}),
)
small = Preset(options, budget(ngd=150, quasi_newton=3_000, adam=10_000), {"max_rank": 300}, error=1.2e-3)
title, equation = "Diffusion, reaction, transport in 2D, finite elements", "−∇·(κ∇u) + β·∇u + σu = f in (0,1)²"
picture = lambda options: Picture((0.0, 0.0), (1.0, 1.0), ("x", "y"), scalar(exact))
benchmark = register(Benchmark("drt2d", title, equation, build, {"small": small, "paper": paper}, picture))
