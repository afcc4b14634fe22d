"""Diffusion, reaction and transport in the unit square by finite elements (section 5.1.5 of the paper).

Least squares in the dual norm: the form is not symmetric. Dirichlet data left and right, Neumann data top and bottom.
"""

import jax
import jax.numpy as jnp

from natgrad.fem import Form, rectangle
from natgrad.networks import MLP
from natgrad.problem import FEINNLeastSquares
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar


def exact(x):
    a, b = x
    first = jnp.sin(3.2 * a * (a - b)) * jnp.cos(4.3 * b + a)
    return first + jnp.sin(4.6 * (a + 2 * b)) * jnp.cos(2.6 * (b - 2 * a))


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
    key, *, width: int = 64, depth: int = 3, cells: int = 30, degree: int = 4, metric: str = "h1", riesz: str = "fast"
) -> FEINNLeastSquares:
    form, psi = Form(diffusion, advection, reaction), lambda x, n: flux(x) @ n
    dirichlet, neumann = {("left", "right"): exact}, {"bottom": psi, "top": psi}
    space, options = rectangle((cells, cells), degree), {"metric": metric, "riesz": riesz, "exact": exact}
    net = MLP(2, 1, width, depth, key=key)
    return FEINNLeastSquares(net, space, form, load=f, dirichlet=dirichlet, neumann=neumann, **options)


budgets = budget(ngd=1_000, quasi_newton=25_000, adam=75_000)
small = Preset({"width": 24, "cells": 8}, budget(ngd=150, quasi_newton=3_000, adam=10_000), {"max_rank": 300})
picture = Picture((0.0, 0.0), (1.0, 1.0), ("x", "y"), scalar(exact))
title, equation = "Diffusion, reaction, transport in 2D, finite elements", "−∇·(κ∇u) + β·∇u + σu = f in (0,1)²"
presets = {"small": small, "paper": Preset({}, budgets)}
benchmark = register(Benchmark("drt2d", title, equation, build, presets, lambda options: picture))
