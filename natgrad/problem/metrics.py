"""Metrics g_u(v, w) = ∫ F_u v · F_u w φ_u dx (Assumption 1 of the paper), given by the linear operator F_u and φ_u.

`Metric(features, density)`: `features(u, v, x)` is F_u v at x, linear in v; `density(u, x)` is φ_u(x) ≥ 0. The u handed
to both is frozen: the library differentiates v alone, as Theorem 1 requires.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.calculus import gradient
from natgrad.options import NonNegative, checked


class Metric:
    """A metric by its linear operator F_u and, optionally, its weight φ_u.

    ng.Metric(lambda u, v, x: ng.gradient(v, x), density=lambda u, x: 1 + u(x) ** 2)
    """

    def __init__(self, features: Callable, density: Callable | None = None, name: str = "custom"):
        if not callable(features):
            raise ValueError(f"a metric's features are a function of (u, v, x), got {type(features).__name__}")
        if density is not None and not callable(density):
            raise ValueError(f"a metric's density is a function of (u, x), got {type(density).__name__}")
        self.features, self.density, self.name = features, density, name

    def __repr__(self) -> str:
        return f"Metric({self.name})"


def L2() -> Metric:
    """∫ v w, the metric of function values: `ng.Energy(density, points, metric=ng.metrics.L2())`."""
    return Metric(lambda u, v, x: v(x), name="L2")


def H1() -> Metric:
    """∫ ∇v·∇w + v w, the metric of values and slopes: `ng.Energy(density, points, metric=ng.metrics.H1())`."""
    return Metric(lambda u, v, x: _join(gradient(v, x), v(x)), name="H1")


@checked
def EnergyNorm(diffusion: Callable | NonNegative = 1.0, reaction: Callable | NonNegative = 0.0) -> Metric:
    """∫ κ ∇v·∇w + σ v w, the inner product of −∇·(κ∇u) + σu; κ, σ ≥ 0 are numbers or functions of one point (d,).

    ng.metrics.EnergyNorm(diffusion=lambda x: 1 + x[0], reaction=2.0)
    """
    kappa, sigma = _coefficient(diffusion), _coefficient(reaction)
    if reaction == 0.0:
        return Metric(lambda u, v, x: jnp.sqrt(kappa(x)) * gradient(v, x), name="energy")
    return Metric(lambda u, v, x: _join(jnp.sqrt(kappa(x)) * gradient(v, x), jnp.sqrt(sigma(x)) * v(x)), name="energy")


def NewtonCubic() -> Metric:
    """∫ ∇v·∇w + 3u² v w, the second derivative of ∫ ½|∇u|² + ¼u⁴ − fu, whose minimizer solves −Δu + u³ = f.

    ng.Energy(lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) + u(x) ** 4 / 4 - f(x) * u(x), points,
              metric=ng.metrics.NewtonCubic())
    """
    return Metric(lambda u, v, x: _join(gradient(v, x), jnp.sqrt(3.0) * u(x) * v(x)), name="newton-cubic")


@checked
def GrossPitaevskii(potential: Callable | NonNegative, beta: NonNegative) -> Metric:
    """∫ ∇v·∇w + V v w + β|u|² v w, the energy inner product of the Gross–Pitaevskii equation (V, β ≥ 0).

    V is a number or a function of one point (d,), such as the trap of

        ng.metrics.GrossPitaevskii(lambda x: jnp.sum(x**2), beta=100.0)
    """
    V = _coefficient(potential)
    return Metric(
        lambda u, v, x: _join(gradient(v, x), jnp.sqrt(V(x) + beta * u(x) ** 2) * v(x)), name="gross-pitaevskii"
    )


def _coefficient(value: Callable | float) -> Callable[[Array], Array]:
    if callable(value):
        return value
    return lambda x: jnp.asarray(value, x.dtype)


def _join(*parts: Array) -> Float[Array, " k"]:
    return jnp.concatenate([jnp.atleast_1d(part) for part in parts])
