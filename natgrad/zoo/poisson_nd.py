"""The Poisson equation in any dimension d: −Δu = f in the unit cube, u given on the boundary.

u is Σ cos πxᵢ below ten dimensions, x₁x₂ + x₃x₄ + … for even d below 100, and |x|² otherwise. The presets 5d, 10d and
100d have the networks and numbers of points of Dangel, Müller and Zeinhofer (KFAC for PINNs, 2024) and of their paper
with others on Woodbury's identity, momentum and randomization (2025). The boundary has weight 100 by default, about the
square of π², the scale of the Laplacian. With depth 1 the network is a sum of `width` waves, whose first frequencies go
up to that of cos πxᵢ and a tenth more; with more layers it is an MLP with tanh.
"""

import math
from typing import Annotated

import jax
import jax.numpy as jnp

from natgrad.backend import host
from natgrad.calculus import laplacian
from natgrad.domains import Box
from natgrad.networks import MLP, Normalized, Waves
from natgrad.optim.damping import Guarded, Spectral
from natgrad.options import Count, Positive, Range, Whole
from natgrad.problem import LeastSquares, Residual
from natgrad.zoo.registry import Benchmark, Picture, Preset, budget, register, scalar


def solution(dim: int):
    if dim < 10:
        return lambda x: jnp.sum(jnp.cos(jnp.pi * x))
    return (lambda x: jnp.sum(x[0::2] * x[1::2])) if dim < 100 and dim % 2 == 0 else (lambda x: x @ x)


def build(
    key,
    *,
    dim: Annotated[int, Range(at_least=2, at_most=1000)] = 5,
    width: Count | tuple[Count, ...] = 64,
    depth: Whole | None = 3,
    interior: Count = 10_000,
    boundary: Count = 2_000,
    weight: Positive = 100.0,
    fresh: bool = False,
) -> LeastSquares:
    exact, cube = solution(dim), Box([0] * dim, [1] * dim)
    net, inside, rim = jax.random.split(key, 3)
    waves = lambda: Waves(dim, 1, width, up_to=1.1 * math.pi / 2, key=net)  # type: ignore[arg-type]
    deep = lambda: MLP(dim, 1, width, None if isinstance(width, tuple) else depth, key=net)
    return LeastSquares(
        Normalized(waves(), cube) if depth == 1 and isinstance(width, int) else deep(),
        pde=Residual(
            lambda u, x, f: -laplacian(u, x) - f,
            cube.interior(interior, key=inside, fresh=fresh),
            data=lambda points: jax.vmap(lambda x: -laplacian(exact, x))(points.x),
        ),
        boundary=Residual(lambda u, x: u(x) - exact(x), cube.boundary(boundary, key=rim, fresh=fresh), weight=weight),
        exact=exact,
        evaluation=cube.interior(max(10 * interior, 10_000), key=host.key(host.EVALUATION)),
    )


def picture(options):
    dim = options.get("dim", 5)
    names = tuple(f"x{i}" for i in range(1, dim + 1))
    return Picture((0,) * dim, (1,) * dim, names, scalar(solution(dim)), at=dict.fromkeys(names[2:], 0.5))


options = {"dim": 5, "width": 24, "depth": 2, "interior": 1_500, "boundary": 600}
steps = budget(ngd=80, quasi_newton=2_000, adam=10_000)
small = Preset(options, steps, {"max_rank": 300}, error=1e-3)  # measured 9.3e-6 to 3.5e-4, by round-off
steps = budget(ngd=40, quasi_newton=10_000, adam=50_000)
record = Preset({"dim": 5, "width": 64, "depth": 1, "interior": 1_500, "boundary": 600}, steps)  # for `polish`


def fresh(dim: int, width: tuple[int, ...], interior: int, boundary: int, weight: float, mu: float) -> Preset:
    """The networks of Dangel, Müller and Zeinhofer, with fresh points at every step and μ = `mu`·λ̂₁.

    A weight of dπ⁴/2, (dπ²)² over the measure 2d of the boundary, makes an error there count as the same error inside.
    """
    options = {"dim": dim, "width": width, "interior": interior, "boundary": boundary, "weight": weight, "fresh": True}
    still = lambda gamma: Guarded(Spectral(gamma), short=2.0**-8, up=10.0, down=10.0)
    solver = {"gamma": mu / float(jnp.finfo(jnp.float64).eps), "damping": still}  # but after a rejected step
    return Preset(options, budget(ngd=200, quasi_newton=2_000, adam=20_000), solver)


benchmark = register(
    Benchmark(
        name="poisson_nd",
        title="Poisson equation in d dimensions",
        equation="−Δu = f in (0,1)ᵈ, u = Σ cos πxᵢ for d = 5",
        build=build,
        presets={
            "small": small,
            "record": record,
            "5d": fresh(5, (64, 64, 48, 48), 20_000, 4_000, weight=5 * math.pi**4 / 2, mu=2e-17),
            "10d": fresh(10, (256, 256, 128, 128), 7_000, 2_000, weight=10 * math.pi**4 / 2, mu=1e-12),
            "100d": fresh(100, (768, 768, 512, 512), 300, 2_500, weight=50.0, mu=1e-8),
        },
        fields=picture,
    )
)
