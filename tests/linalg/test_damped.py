"""Damped least squares from the rows, against truth of more digits than products have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.linalg import RowExchange, damped_rows


def matrix(q, p, smallest, seed=0):
    """(U, s, V) of a q×p matrix with singular values from 1 down to `smallest`."""
    rng = np.random.default_rng(seed)
    k = min(q, p)
    U, V = np.linalg.qr(rng.normal(size=(q, k)))[0], np.linalg.qr(rng.normal(size=(p, k)))[0]
    return U, np.geomspace(1.0, smallest, k), V


@pytest.mark.parametrize(("q", "p"), [(60, 20), (20, 20), (12, 20)])
@pytest.mark.parametrize("mu", [1e-2, 1e-12])
def test_the_solution_is_that_of_the_singular_values(q, p, mu):
    U, s, V = matrix(q, p, 1e-4)
    b = np.random.default_rng(1).normal(size=q)
    expected = V @ (s / (s**2 + mu) * (U.T @ b))
    found = damped_rows(jnp.asarray((U * s) @ V.T), jnp.asarray(mu)).solve(jnp.asarray(b))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.linalg.norm(expected))


def test_directions_far_below_the_round_off_of_products_are_resolved():
    """Singular values down to 1e-11: in AᵀA they are 1e-22, and lost."""
    U, s, V = matrix(60, 20, 1e-11)
    A, mu = (U * s) @ V.T, 1e-26
    b = U @ s  # x = V 1
    found = np.asarray(damped_rows(jnp.asarray(A), jnp.asarray(mu)).solve(jnp.asarray(b)))
    assert np.linalg.norm(found - V.sum(axis=1)) < 1e-3
    by_products = np.linalg.solve(A.T @ A + mu * np.eye(20), A.T @ b)
    assert np.linalg.norm(by_products - V.sum(axis=1)) > 0.1


def test_a_matrix_without_rank_leaves_what_it_does_not_see_alone():
    U, s, V = matrix(40, 20, 1e-2)
    s[5:] = 0.0
    found = damped_rows(jnp.asarray((U * s) @ V.T), jnp.asarray(1e-10)).solve(jnp.asarray(U @ np.ones(20)))
    np.testing.assert_allclose(V.T @ np.asarray(found), s / (s**2 + 1e-10), atol=1e-4)
    zero = damped_rows(jnp.zeros((40, 20)), jnp.asarray(1e-10)).solve(jnp.ones(40))
    np.testing.assert_array_equal(zero, np.zeros(20))


@pytest.mark.parametrize("rows", [25, 8])
def test_rows_of_several_devices_are_those_of_one(rows):
    """Four devices, by hand: with more rows than columns each, and with fewer."""
    U, s, V = matrix(4 * rows, 12, 1e-9)
    A, b, mu = jnp.asarray((U * s) @ V.T), jnp.asarray(U @ s), jnp.asarray(1e-20)

    def device(A, b):
        own = lambda x, rows: jax.lax.dynamic_slice_in_dim(x, jax.lax.axis_index("d") * rows, rows)
        gather = lambda x: jax.lax.all_gather(x, "d", tiled=True)
        return damped_rows(A, mu, RowExchange(gather, own, lambda x: jax.lax.psum(x, "d"))).solve(b)

    found = jax.vmap(device, axis_name="d")(A.reshape(4, rows, 12), b.reshape(4, rows))
    alone = damped_rows(A, mu).solve(b)
    np.testing.assert_allclose(found, np.broadcast_to(alone, (4, 12)), atol=1e-5)
