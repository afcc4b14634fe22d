"""What is singular in the standard Allen–Cahn problem: its initial values x² cos πx have a kink at x = ±1, where they
are periodic, and diffusion rounds it.

Near it, with y = |x ∓ 1|, they are −1 + 2y + … − π²y³, and v = u + 1 follows v_t = D v_yy − 2Rv + …. Of initial values
|y| and |y|³ the heat equation makes, with s² = 2Dt, a = erf(y/(s√2)) and g = s √(2/π) exp(−y²/(2s²)),

    k₁ = y a + g,      k₃ = (y³ + 3ys²) a + (y² + 2s²) g

In place of y stands r = (2/π) cos(πx/2), which has the period and the kink, and is y − π²y³/24 + …
"""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array


def rounded(y: Array, s: Array) -> tuple[Array, Array]:
    """k₁ and k₃."""
    a, g = jax.scipy.special.erf(y / (s * math.sqrt(2))), s * math.sqrt(2 / math.pi) * jnp.exp(-(y**2) / (2 * s**2))
    return y * a + g, (y**3 + 3 * y * s**2) * a + (y**2 + 2 * s**2) * g


def kink(diffusion: float, reaction: float):
    """e^(−2Rt) (2k₁ − 11π²/12 k₃), which has the singular terms of u up to the third order."""

    def singular(z):
        t = jnp.maximum(z[0], jnp.finfo(z.dtype).tiny)
        first, third = rounded(2 / math.pi * jnp.cos(math.pi / 2 * z[1]), jnp.sqrt(2 * diffusion * t))
        return jnp.exp(-2 * reaction * z[0]) * (2 * first - 11 * math.pi**2 / 12 * third)

    return singular
