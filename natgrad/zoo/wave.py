"""The wave equation u_tt = 4 u_xx, points (t, x): the fast mode swings four times, the slow one once.

A standing wave is two that run, sin πx cos 2πt = ½ (sin π(x + 2t) + sin π(x − 2t)), so a sum of eight waves is the
solution. The network is a sum of `width` waves, whose first frequencies go a tenth beyond those of the initial values
and of what the equation makes of them. Initial values and ends are residuals; that of the equation is divided by
(8π)², so that all have the size of u. Errors are those on the grid of 101 × 101 points of [0, 1]², ends included; each
window has as many.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp

from natgrad.calculus import partial as derivative
from natgrad.domains import Interval
from natgrad.networks import Normalized, Waves
from natgrad.options import Count
from natgrad.problem import Evolution
from natgrad.zoo._grid import grid
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar, whole

STRING = Interval(0, 1)
MODES = ((1, 1.0), (4, 0.5))  # number and amplitude
FASTEST = 8 * math.pi
UP_TO = (1.1 * FASTEST / 2, 1.1 * 4 * math.pi / 2)  # of (t, x), in coordinates from −1 to 1


def exact(z):
    return sum(a * jnp.sin(k * jnp.pi * z[1]) * jnp.cos(2 * k * jnp.pi * z[0]) for k, a in MODES)


def displacement(x):
    return exact(jnp.stack([jnp.zeros_like(x[0]), x[0]]))


def wave(u, z):
    return (derivative(u, z, 0, 0) - 4 * derivative(u, z, 1, 1)) / FASTEST**2


def evolution(
    key,
    *,
    width: Count = 48,
    interior: Count = 1_000,
    initial: Count = 100,
    boundary: Count = 100,
) -> Evolution:
    net, points = jax.random.split(key)
    return Evolution(
        Normalized(Waves(2, 1, width, up_to=UP_TO, key=net), Interval(0, 1) * STRING),
        STRING,
        pde=wave,
        initial=(displacement, lambda x: jnp.zeros_like(x[0])),
        ends=lambda u, z: u(z),
        points={"pde": interior, "initial": initial, "ends": boundary},
        weights={"initial": 1},
        exact=exact,
        evaluation=partial(grid, times=101, positions=101),
        key=points,
    )


steps = budget(ngd=40, quasi_newton=1_000, adam=10_000)
small = Preset({"interior": 500}, steps, error=1e-8)  # 20 seeds: 6e-16 to 1.9e-9
record = Preset({}, budget(ngd=60, quasi_newton=5_000, adam=20_000))  # for `polish`
benchmark = register(
    Benchmark(
        name="wave",
        title="Wave equation, two modes",
        equation="u_tt = 4 u_xx in (0,1)×(0,1), u = 0 at x = 0, 1, u(0, x) = sin πx + ½ sin 4πx, u_t(0, x) = 0",
        build=whole(evolution),
        evolution=evolution,
        presets={"small": small, "record": record},
        fields=lambda options: Picture((0, 0), (1, 1), ("t", "x"), scalar(exact)),
        norm="l2",
    )
)
