"""Inverses of triangles, by substitution and by blocks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend.triangular import inverse_by_blocks
from natgrad.linalg import safe_cholesky

EPS = float(jnp.finfo(float).eps)
cholesky = jax.jit(safe_cholesky)


@pytest.mark.parametrize("m", [1, 5, 31, 32, 33, 100, 300])
@pytest.mark.parametrize("decades", [0, 14])
def test_a_triangle_is_inverted_by_blocks(m, decades):
    """As well as by substitution, for a factor whose last pivots are at the round-off of the first."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((m, m)))
    L, _ = cholesky(jnp.asarray((Q * np.logspace(0, -decades, m)) @ Q.T), EPS)
    exact = jax.scipy.linalg.solve_triangular(L, jnp.eye(m), lower=True)
    X = inverse_by_blocks(L)
    assert X.shape == (m, m)
    assert jnp.all(jnp.triu(X, 1) == 0)
    # Rows of both are wrong by the condition of L; what counts is that XL is the identity.
    bound = jnp.max(jnp.abs(X) @ jnp.abs(L))
    assert jnp.max(jnp.abs(X @ L - jnp.eye(m))) < 10 * EPS * bound
    assert jnp.max(jnp.abs(exact @ L - jnp.eye(m))) < 10 * EPS * bound


def test_a_triangle_that_is_not_finite_has_an_inverse_that_is_not():
    assert jnp.any(jnp.isnan(inverse_by_blocks(jnp.full((40, 40), jnp.nan))))
