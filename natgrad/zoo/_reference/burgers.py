"""Burgers' equation by the transform of Cole and Hopf."""

import math
from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from natgrad.zoo._reference.expansions import finite

TAIL = 6.5  # exp(−6.5²) is 4e-19
START = 1e-12  # before it √t has no derivative worth its name: the start is taken there


@cache
def burgers(nu: float, step: float | None = None) -> Callable:
    """u(t, x) of u_t + u u_x = ν u_xx, u(0, x) = −sin πx, for 0 ≤ t ≤ 1, by Cole and Hopf's transform.

    With y = x − 2√(νt) s and F(y) = exp(−cos(πy) / (2πν)), u = −∫ sin(πy) F(y) e^{−s²} ds / ∫ F(y) e^{−s²} ds.

    By the trapezoidal rule, whose error is exp(−π² / (1 + πt) h²) for a small ν, wherever the integrand has its peaks:
    they lie at |s| ≤ ½ √(t/ν), characteristics being no faster than 1. Gauss's nodes would be dense at s = 0 alone.
    """
    finite("burgers", nu=nu)
    if not nu > 0:
        raise ValueError(f"the reference solution of burgers needs a positive nu, got {nu}")
    step = step or (0.2 if nu < 0.05 else 0.12)
    half = math.ceil((TAIL + 0.5 / math.sqrt(nu)) / step)
    s = step * np.arange(-half, half + 1)

    def u(z):
        t, nodes = jnp.where(z[0] < START, START + z[0], z[0]), jnp.asarray(s, z.dtype)
        y = z[1] - 2 * jnp.sqrt(nu * t) * nodes
        share = jax.nn.softmax(-(nodes**2) - jnp.cos(jnp.pi * y) / (2 * jnp.pi * nu))
        return -share @ jnp.sin(jnp.pi * y)

    return u
