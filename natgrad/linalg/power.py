"""The power method: an estimate, from below, of the largest eigenvalue of a positive semidefinite matrix.

It sets the scale of the damping, μ = γ·eps·λ̂₁, for which two to four iterations do (paper, section 4.3).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray


def power_method(
    mv: Callable[[Float[Array, " p"]], Float[Array, " p"]],
    start: Float[Array, " p"] | PRNGKeyArray,
    p: int | None = None,
    *,
    iterations: int = 4,
    dtype=None,
) -> Float[Array, ""]:
    """Rayleigh quotient after `iterations` products, from a starting vector or, with p given, from a key."""
    if jnp.issubdtype(start.dtype, jnp.floating):
        v = start
    elif p is None:
        raise ValueError("power_method needs p, the size of the matrix, to start from a key")
    else:
        v = jax.random.normal(start, (p,), jnp.result_type(float) if dtype is None else dtype)

    def one(_, carry):
        v, _ = carry
        w = mv(v)
        return _normalize(w), jnp.vdot(v, w)

    return jax.lax.fori_loop(0, iterations, one, (_normalize(v), jnp.zeros((), v.dtype)))[1]


def _normalize(v):
    norm = jnp.linalg.norm(v)
    return v / jnp.where(norm > 0, norm, 1.0)
