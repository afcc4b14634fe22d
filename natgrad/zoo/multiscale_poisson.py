"""Poisson's equation with four scales in a square: −Δu = f, u = Σ sin wπx sin wπy, w = n, 2n, 3n, 4n.

n is 4. The residual is divided by the size of its largest term, 2(4nπ)². With depth 1 the network is a sum of `width`
waves, which holds the solution exactly; their start covers the frequencies up to that of f, 4nπ, and a tenth more. With
more layers it is an MLP of sines.
"""

import math

import jax
import jax.numpy as jnp

from natgrad.calculus import laplacian
from natgrad.domains import Box
from natgrad.networks import MLP, Normalized, Waves
from natgrad.options import Count
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

SQUARE = Box([0, 0], [1, 1])


def solution(n: int):
    waves = n * jnp.pi * jnp.arange(1.0, 5.0)
    return lambda x: jnp.sum(jnp.sin(waves * x[0]) * jnp.sin(waves * x[1]))


def build(
    key, *, width: Count = 192, depth: Count = 1, interior: Count = 4_000, boundary: Count = 800, n: Count = 4
) -> LeastSquares:
    exact, waves = solution(n), n * jnp.pi * jnp.arange(1.0, 5.0)
    largest = float(2 * waves[-1] ** 2)

    def poisson(u, x):
        f = 2 * jnp.sum(waves**2 * jnp.sin(waves * x[0]) * jnp.sin(waves * x[1]))
        return (laplacian(u, x) + f) / largest

    net, inside, rim = jax.random.split(key, 3)
    flat = lambda: Normalized(Waves(2, 1, width, up_to=2.2 * n * math.pi, key=net), SQUARE)
    deep = lambda: MLP(2, 1, width, depth, activation=jnp.sin, frequency=4.0 * n, key=net)
    return LeastSquares(
        deep() if depth > 1 else flat(),
        pde=Residual(poisson, SQUARE.interior(interior, key=inside, rule="sobol")),
        boundary=Residual(lambda u, x: u(x), SQUARE.boundary(boundary, key=rim, rule="sobol"), weight=10),
        exact=exact,
    )


small = Preset(
    options={"width": 160, "interior": 1_600, "boundary": 320},
    steps=budget(ngd=40, quasi_newton=3_000, adam=10_000),
    error=1e-8,  # seeds 0, 1, 2: 3.1e-15, 2.9e-9, 3.0e-15
)
record = Preset(options={}, steps=budget(ngd=60, quasi_newton=20_000, adam=50_000))  # for `polish`
benchmark = register(
    Benchmark(
        name="multiscale_poisson",
        title="Poisson equation with four scales",
        equation="−Δu = f in (0,1)², u = Σ sin wπx · sin wπy, w = n, 2n, 3n, 4n, n = 4",
        build=build,
        presets={"small": small, "record": record},
        fields=lambda options: Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), scalar(solution(options.get("n", 4)))),
    )
)
