"""An inverse problem: the conductivity κ(x) in −∇·(κ∇u) = f, from u at sensors and κ = 1 on the boundary.

Two networks, u and the logarithm k = log κ, so that κ stays positive: −κ (Δu + ∇k·∇u) = f.
"""

import jax
import jax.numpy as jnp

from natgrad.calculus import gradient, value_gradient_laplacian
from natgrad.domains import Box
from natgrad.networks import MLP, Fields
from natgrad.options import Count, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register

SQUARE = Box([0, 0], [1, 1])


def temperature(x):
    return x[0] + 0.3 * jnp.sin(jnp.pi * x[0]) * jnp.cos(jnp.pi * x[1])  # no critical point, where κ would be free


def log_kappa(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def flux(net, x):
    """∇·(κ∇u)."""
    _, du, laplacian = value_gradient_laplacian(net.u, x)
    return jnp.exp(net.k(x)) * (laplacian + gradient(net.k, x) @ du)


def build(
    key, *, width: Count = 40, depth: Whole = 3, interior: Count = 10_000, boundary: Count = 1_000, sensors: Count = 400
) -> LeastSquares:
    u, k, inside, rim, spots = jax.random.split(key, 5)
    x = SQUARE.interior(interior, key=inside, rule="sobol")
    source = jax.vmap(lambda x: flux(Fields(u=temperature, k=log_kappa), x))(x.x)
    return LeastSquares(
        Fields(u=MLP(2, 1, width, depth, key=u), k=MLP(2, 1, width, depth, key=k)),
        pde=Residual(lambda net, x, f: flux(net, x) - f, x, data=source),
        boundary=Residual(lambda net, x: net.k(x), SQUARE.boundary(boundary, key=rim, rule="sobol")),
        data=Residual(lambda net, x: net.u(x) - temperature(x), SQUARE.interior(sensors, key=spots, rule="sobol")),
        exact={"u": temperature, "k": log_kappa},
    )


fields = {"u": (lambda net: net.u, temperature), "log κ": (lambda net: net.k, log_kappa)}
options = {"width": 16, "depth": 2, "interior": 800, "boundary": 200, "sensors": 200}
steps = budget(ngd=100, quasi_newton=3_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, error=2.4e-4)  # measured 1.9e-5
benchmark = register(
    Benchmark(
        name="inverse_poisson",
        title="Inverse problem: conductivity",
        equation="−∇·(κ∇u) = f in (0,1)², u measured, κ unknown",
        build=build,
        presets={"small": small},
        fields=lambda options: Picture(SQUARE.lower, SQUARE.upper, ("x", "y"), fields),
    )
)
