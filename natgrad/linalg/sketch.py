"""Test matrices for the Nyström approximation: Gaussian ones, and columns of the identity.

A sampling matrix Ω = I[:, indices] is never formed: GΩ is a set of columns of G. Indices come without
repeats, as a repeated column of Ω adds nothing to its range.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray


def gaussian(key: PRNGKeyArray, p: int, m: int, dtype=None) -> Float[Array, "p m"]:
    """Gaussian p×m test matrix with columns of length one on average (paper, section 4.2.1)."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    return jax.random.normal(key, (p, m), dtype) / jnp.asarray(p, dtype) ** 0.5


def sample_uniform(key: PRNGKeyArray, p: int, m: int) -> Int[Array, " m"]:
    """m distinct indices below p, uniformly."""
    _check_size(p, m)
    return jax.random.choice(key, p, (m,), replace=False)


def sample_diagonal(key: PRNGKeyArray, diagonal: Float[Array, " p"], m: int) -> Int[Array, " m"]:
    """m distinct indices, drawn one after the other with probability proportional to the diagonal.

    Sampling without replacement is the top m of log d plus Gumbel noise. Entries that are zero, negative or
    not finite have probability zero: they come, uniformly, only after all others have been drawn.
    """
    _check_size(diagonal.shape[0], m)
    possible = (diagonal > 0) & jnp.isfinite(diagonal)
    last = jnp.asarray(-1e4, diagonal.dtype)  # below every logarithm of a positive number
    score = jnp.where(possible, jnp.log(jnp.where(possible, diagonal, 1.0)), last)
    return jax.lax.top_k(score + jax.random.gumbel(key, diagonal.shape, diagonal.dtype), m)[1]


def _check_size(p: int, m: int) -> None:
    if m > p:
        raise ValueError(f"cannot draw m = {m} distinct indices out of {p}: take m ≤ {p}")
