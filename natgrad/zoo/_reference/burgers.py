"""Burgers' equation by the transform of Cole and Hopf."""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import hermite

from natgrad.zoo._reference.expansions import finite


@cache
def burgers(nu: float, nodes: int = 100) -> Callable:
    """u(t, x) of u_t + u u_x = ν u_xx, u(0, x) = −sin πx, by Cole and Hopf's transform and Gauss–Hermite quadrature.

    With y = x − 2√(νt) s and F(y) = exp(−cos(πy) / (2πν)), u = −∫ sin(πy) F(y) e^{−s²} ds / ∫ F(y) e^{−s²} ds.
    """
    finite("burgers", nu=nu)
    if not nu > 0:
        raise ValueError(f"the reference solution of burgers needs a positive nu, got {nu}")
    s, weights = hermite.hermgauss(nodes)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    s, log_weights = s[log_weights > -300], log_weights[log_weights > -300]

    def u(z):
        y = z[1] - 2 * jnp.sqrt(nu * jnp.maximum(z[0], 1e-10)) * jnp.asarray(s, z.dtype)
        share = jax.nn.softmax(jnp.asarray(log_weights, z.dtype) - jnp.cos(jnp.pi * y) / (2 * jnp.pi * nu))
        return -share @ jnp.sin(jnp.pi * y)

    return u
