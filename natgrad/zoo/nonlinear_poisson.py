"""A semilinear equation as an energy, in Newton's metric: −Δu + u³ = f, u = 0 on the boundary, built into the network.

E(u) = ∫ ½|∇u|² + ¼u⁴ − fu, E''(u)(v, w) = ∫ ∇v·∇w + 3u²vw.
"""

import jax.numpy as jnp

from natgrad.calculus import gradient
from natgrad.domains import Box
from natgrad.networks import MLP, HardBoundary
from natgrad.options import Count, Whole
from natgrad.problem import Energy, EnergyMinimization
from natgrad.problem.metrics import NewtonCubic
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar

SQUARE = Box([0, 0], [1, 1])


def exact(x):
    return 2 * jnp.prod(jnp.sin(jnp.pi * x))


def f(x):
    return 2 * jnp.pi**2 * exact(x) + exact(x) ** 3


def energy(u, x):
    return 0.5 * jnp.sum(gradient(u, x) ** 2) + 0.25 * u(x) ** 4 - f(x) * u(x)


def change(u, new, x):
    """energy(new, x) − energy(u, x) in powers of the difference, so that nothing cancels near the minimum."""
    a, d = u(x), new(x) - u(x)
    g, h = gradient(u, x), gradient(new, x) - gradient(u, x)
    return g @ h + 0.5 * h @ h + d * (a**3 + 1.5 * a**2 * d + a * d**2 + 0.25 * d**3) - f(x) * d


def build(key, *, width: Count = 64, depth: Whole = 3, interior: Count = 4_900) -> EnergyMinimization:
    network = HardBoundary(MLP(2, 1, width, depth, key=key), distance=lambda x: jnp.prod(x * (1 - x)))
    block = Energy(energy, SQUARE.interior(interior, rule="gauss"), metric=NewtonCubic(), difference=change)
    return EnergyMinimization(network, interior=block, exact=exact)


options = {"width": 16, "depth": 2, "interior": 900}
steps = budget(ngd=80, quasi_newton=2_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 200}, error=1.5e-5)  # measured 2.6e-8
benchmark = register(
    Benchmark(
        name="nonlinear_poisson",
        title="Semilinear Poisson equation, energy form",
        equation="−Δu + u³ = f in (0,1)², u = 2 sin πx · sin πy",
        build=build,
        presets={"small": small},
        fields=lambda options: Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), scalar(exact)),
    )
)
