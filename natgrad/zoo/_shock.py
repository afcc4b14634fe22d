"""A shock at x = 0 in (0, 1) × (−1, 1): points there, and a coordinate in which it is wide."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from natgrad.domains import Box, Interval, Points
from natgrad.networks.base import Function

TIME = Interval(0, 1)


def shock_of(nu: float) -> float:
    """The half-width of the layer around x = 0."""
    return min(10 * math.pi * nu, 0.5)


class Graded(eqx.Module):
    """N(t, x, asinh(x/w) / asinh(1/w))."""

    network: Function
    shock: float = eqx.field(static=True)

    def __call__(self, z):
        return self.network(jnp.append(z, jnp.arcsinh(z[1] / self.shock) / np.arcsinh(1 / self.shock)))


def layered(n: int, key, rule: str = "sobol", shock: float = 0.1, start: bool = False):
    """Half of the points where the shock is, half elsewhere, in layers up to ten times as far out; or at t = 0."""
    edges = np.geomspace(shock, 1, 1 + max(1, math.ceil(math.log10(1 / shock) - 0.01)))
    sides = [(a, b, max(1, n // (4 * len(edges) - 4))) for a, b in itertools.pairwise(edges.tolist())]
    strips = [(-shock, shock, n // 2), *((-b, -a, m) for a, b, m in sides), *sides]
    keys = jax.random.split(key, len(strips))
    domains = [(TIME * Box(a, b), m, k) for (a, b, m), k in zip(strips, keys, strict=True)]
    return Points.concatenate(*((d.initial if start else d.interior)(m, key=k, rule=rule) for d, m, k in domains))
