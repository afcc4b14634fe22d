"""An inverse problem: the viscosity ν of Burgers' equation, from values of u at random points (t, x).

Nothing is known of u(0, x) and the ends. ν is positive, begins at `guess`, and is 0.01/π in truth. With `noise` σ > 0
each value has an independent normal error of standard deviation σ, and the block `data` is its likelihood. The equation
has half of its points where the shock is (`natgrad/zoo/_shock.py`), and has no windows of time: ν is the same in all.
The history has the relative error of ν as `nu.l2`. Errors of u are those on the grid of 101 × 257 points of
[0, 1] × [−1, 1], ends included.
"""

from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.calculus import value_gradient_laplacian
from natgrad.domains import Box, Interval
from natgrad.networks import Fields
from natgrad.options import Count, NonNegative, Positive, Range, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.unknowns import Unknown
from natgrad.zoo import _reference
from natgrad.zoo._grid import grid
from natgrad.zoo._shock import layered, network, shock_of
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register

DOMAIN = Interval(0, 1) * Box(-1, 1)
NU = 0.01 / float(jnp.pi)


def burgers(net, z):
    value, (u_t, u_x), u_xx = value_gradient_laplacian(net.u, z, dims=1)
    return u_t + value * u_x - net.nu.value * u_xx


def build(
    key,
    *,
    width: Count = 64,
    depth: Whole = 3,
    interior: Annotated[int, Range(at_least=4)] = 10_500,
    sensors: Count = 2_000,
    noise: NonNegative = 0.0,
    guess: Positive = 0.05,
) -> LeastSquares:
    net, inside, spots, errors = jax.random.split(key, 4)
    exact = _reference.burgers(NU)
    x = DOMAIN.interior(sensors, key=spots)
    measured = jax.vmap(exact)(x.x) + noise * jax.random.normal(errors, (sensors,))
    return LeastSquares(
        Fields(
            u=network(net, width, depth, shock_of(NU)),
            nu=Unknown(guess, positive=True),
        ),
        pde=Residual(burgers, layered(interior, inside), weight=1e4 if noise else 1),
        data=Residual(lambda net, z, u: net.u(z) - u, x, data=measured, noise=noise or None, weight=1 if noise else 10),
        exact={"u": exact, "nu": lambda z: jnp.asarray(NU, z.dtype)},
        evaluation=grid(DOMAIN, 101, 257),
    )


sizes = {"width": 20, "interior": 2_000, "sensors": 1_000}
small = Preset(
    sizes, budget(ngd=100, quasi_newton=3_000, adam=10_000), {"max_rank": 300}, error=5e-5
)  # measured 2.5e-6
record = Preset({}, budget(ngd=300, quasi_newton=10_000, adam=50_000))
benchmark = register(
    Benchmark(
        name="inverse_burgers",
        title="Inverse problem: viscosity",
        equation="u_t + u u_x = ν u_xx in (0,1)×(−1,1), u measured, ν = 0.01/π unknown",
        build=build,
        presets={"small": small, "record": record},
        fields=lambda options: Picture((0, -1), (1, 1), ("t", "x"), {"u": (lambda net: net.u, _reference.burgers(NU))}),
        norm="l2",
    )
)
