"""A shock at x = 0 in (0, 1) × (−1, 1): points there, and networks that know of it."""

import itertools
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from natgrad.domains import Box, Interval, Points
from natgrad.networks import MLP
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


class Odd(eqx.Module):
    """(N(t, x) − N(t, −x)) / 2."""

    network: Function

    def __call__(self, z):
        return (self.network(z) - self.network(z.at[1].multiply(-1))) / 2


def network(key, width: int, depth: int, shock: float, graded: bool = True, odd: bool = False) -> Function:
    u: Function = MLP(in_size=2 + graded, out_size=1, width=width, depth=depth, key=key)
    u = Graded(u, shock) if graded else u
    return Odd(u) if odd else u


def layered(n: int, key, rule: str = "sobol", shock: float = 0.1, start: bool = False, odd: bool = False) -> Points:
    """Half of the points where the shock is, half elsewhere, in layers up to ten times as far out.

    With `start` they are at t = 0, and with `odd` all of them where x > 0.
    """
    edges = np.geomspace(shock, 1, 1 + max(1, math.ceil(math.log10(1 / shock) - 0.01)))
    count = max(1, n // ((2 if odd else 4) * (len(edges) - 1)))
    sides = [(a, b, count) for a, b in itertools.pairwise(edges.tolist())]
    strips = [(0 if odd else -shock, shock, n // 2), *([] if odd else [(-b, -a, m) for a, b, m in sides]), *sides]
    keys = jax.random.split(key, len(strips))
    domains = [(TIME * Box(a, b), m, k) for (a, b, m), k in zip(strips, keys, strict=True)]
    return Points.concatenate(*((d.initial if start else d.interior)(m, key=k, rule=rule) for d, m, k in domains))
