"""Damped least squares from the rows, against truth of more digits than products have."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.linalg import damped_rows
from natgrad.linalg.damped import by_grams, by_reflections

BOTH = pytest.mark.parametrize("factored", [by_reflections, by_grams], ids=["reflections", "grams"])


def matrix(q, p, smallest, seed=0):
    """(U, s, V) of a q×p matrix with singular values from 1 down to `smallest`."""
    rng = np.random.default_rng(seed)
    k = min(q, p)
    U, V = np.linalg.qr(rng.normal(size=(q, k)))[0], np.linalg.qr(rng.normal(size=(p, k)))[0]
    return U, np.geomspace(1.0, smallest, k), V


@BOTH
@pytest.mark.parametrize(("q", "p"), [(60, 20), (20, 20), (12, 20)])
@pytest.mark.parametrize("mu", [1e-2, 1e-12])
def test_the_solution_is_that_of_the_singular_values(factored, q, p, mu):
    U, s, V = matrix(q, p, 1e-4)
    b = np.random.default_rng(1).normal(size=q)
    expected = V @ (s / (s**2 + mu) * (U.T @ b))
    found = factored(jnp.asarray((U * s) @ V.T), jnp.asarray(mu)).solve(jnp.asarray(b))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.linalg.norm(expected))


@BOTH
def test_directions_far_below_the_round_off_of_products_are_resolved(factored):
    """Singular values down to 1e-11: in AᵀA they are 1e-22, and lost."""
    U, s, V = matrix(60, 20, 1e-11)
    A, mu = (U * s) @ V.T, 1e-26
    b = U @ s  # x = V 1
    found = np.asarray(factored(jnp.asarray(A), jnp.asarray(mu)).solve(jnp.asarray(b)))
    assert np.linalg.norm(found - V.sum(axis=1)) < 1e-3
    by_products = np.linalg.solve(A.T @ A + mu * np.eye(20), A.T @ b)
    assert np.linalg.norm(by_products - V.sum(axis=1)) > 0.1


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize(("q", "p", "smallest"), [(300, 100, 1e-16), (40, 100, 1e-3), (300, 100, 1.0)])
def test_grams_make_rows_orthonormal_at_the_edge_of_float64(q, p, smallest, scale):
    """μ = 1e3 eps² λ₁, the least that `Polish` takes: Q is orthonormal, and QR is the matrix, to round-off."""
    U, s, V = matrix(q, p, smallest)
    A = jnp.asarray(scale * (U * s) @ V.T)
    mu = jnp.asarray(1e3 * (np.finfo(float).eps * scale) ** 2)
    factors = by_grams(A, mu)
    Q, R = np.asarray(factors.orthogonal), np.asarray(factors.triangle)
    lower = np.sqrt(float(mu)) * np.linalg.inv(R)
    np.testing.assert_allclose(Q @ R, A, rtol=0, atol=1e-14 * scale)
    np.testing.assert_allclose(Q.T @ Q + lower.T @ lower, np.eye(p), rtol=0, atol=1e-10)
    assert np.all(np.tril(R, -1) == 0)


def test_the_inverse_of_the_triangle_solves_as_substitution_does(monkeypatch):
    """What other devices than processors do, here on one."""
    from natgrad.backend import tuning

    U, s, V = matrix(200, 60, 1e-12)
    A, b, mu = jnp.asarray((U * s) @ V.T), jnp.asarray(U @ s), jnp.asarray(1e-27)
    monkeypatch.setattr(tuning, "TRIANGLES_BY_BLOCKS", tuning.ByDevice(True, True))
    factors = by_grams(A, mu)
    assert factors.inverse is not None
    x, y = factors.solve(b), factors._replace(inverse=None).solve(b)
    exact = V @ (s**2 / (s**2 + float(mu)))
    assert np.linalg.norm(x - exact) < 2 * np.linalg.norm(y - exact) + 1e-12
    assert np.linalg.norm(y - exact) < 1e-2 * np.linalg.norm(exact)


@BOTH
def test_a_matrix_without_rank_leaves_what_it_does_not_see_alone(factored):
    U, s, V = matrix(40, 20, 1e-2)
    s[5:] = 0.0
    found = factored(jnp.asarray((U * s) @ V.T), jnp.asarray(1e-10)).solve(jnp.asarray(U @ np.ones(20)))
    np.testing.assert_allclose(V.T @ np.asarray(found), s / (s**2 + 1e-10), atol=1e-4)
    zero = factored(jnp.zeros((40, 20)), jnp.asarray(1e-10)).solve(jnp.ones(40))
    np.testing.assert_array_equal(zero, np.zeros(20))


@pytest.mark.parametrize("rows", [25, 8])
def test_rows_of_several_devices_are_those_of_one(rows):
    """Four devices, by hand: with more rows than columns each, and with fewer."""
    U, s, V = matrix(4 * rows, 12, 1e-9)
    A, b, mu = jnp.asarray((U * s) @ V.T), jnp.asarray(U @ s), jnp.asarray(1e-20)
    device = lambda A, b: damped_rows(A, mu, lambda x: jax.lax.psum(x, "d")).solve(b)
    found = jax.vmap(device, axis_name="d")(A.reshape(4, rows, 12), b.reshape(4, rows))
    alone = damped_rows(A, mu).solve(b)
    np.testing.assert_allclose(found, np.broadcast_to(alone, (4, 12)), atol=1e-5)
