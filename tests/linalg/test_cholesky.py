import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrices import decaying, low_rank, orthogonal, orthogonality, with_spectrum

from natgrad.linalg.cholesky import orthonormalize, safe_cholesky, whiten

EPS = np.finfo(float).eps
cholesky = jax.jit(safe_cholesky)
orthonormal = jax.jit(orthonormalize)


def test_no_shift_where_none_is_needed():
    A = with_spectrum(np.linspace(1, 2, 20))
    L, shift = cholesky(A)
    assert shift == 0
    np.testing.assert_allclose(L @ L.T, A, atol=1e-14)


def test_given_shift_is_used():
    A = with_spectrum(np.linspace(1, 2, 20))
    L, shift = cholesky(A, 0.5)
    assert shift == 0.5
    np.testing.assert_allclose(L @ L.T, A + 0.5 * np.eye(20), atol=1e-14)


@pytest.mark.parametrize("A", [low_rank(30, 4), decaying(30, 30), -1e-12 * jnp.eye(5), jnp.ones((6, 6))])
def test_singular_matrix_gets_a_small_shift(A):
    L, shift = cholesky(A)
    assert jnp.all(jnp.isfinite(L))
    assert shift < 100 * max(EPS * jnp.max(jnp.abs(A)) * 10, -jnp.linalg.eigvalsh(A)[0])
    np.testing.assert_allclose(L @ L.T, A + shift * jnp.eye(len(A)), atol=1e-13 * jnp.max(jnp.abs(A)))


@pytest.mark.parametrize("shift", [0.0, 1e-30])
def test_zero_matrix(shift):
    L, used = cholesky(jnp.zeros((4, 4)), shift)
    assert jnp.all(jnp.isfinite(L))
    assert 0 < used <= EPS


def test_nonfinite_matrix_is_reported_by_nan():
    L, _ = cholesky(jnp.full((3, 3), jnp.nan))
    assert jnp.any(jnp.isnan(L))


CASES = {
    **{f"cond 1e{e}": (orthogonal(200, 40) * np.logspace(0, -e, 40)) @ orthogonal(40, 40).T for e in (0, 6, 11, 20)},
    "graded columns": orthogonal(200, 40) @ orthogonal(40, 40).T * np.logspace(0, -30, 40),
    "equal columns": np.eye(200)[:, [0] * 40],
    "rank 3": orthogonal(200, 3) @ orthogonal(40, 3).T,
    "zero columns": orthogonal(200, 40) * (np.arange(40) % 3 > 0),
    "zero": np.zeros((200, 40)),
    "wide": np.random.default_rng(0).standard_normal((200, 40)).T[:, :60],
}


@pytest.mark.parametrize("name", CASES)
def test_orthonormalize(name):
    B = CASES[name]
    Q, R = orthonormal(jnp.asarray(B))
    assert orthogonality(Q) < 1e-13
    np.testing.assert_allclose(Q @ R, B, atol=1e-13 * np.linalg.norm(B))


def test_zero_columns_stay_zero():
    Q, _ = orthonormal(jnp.asarray(CASES["zero columns"]))
    np.testing.assert_array_equal(np.any(np.asarray(Q) != 0, axis=0), np.arange(40) % 3 > 0)


def test_float32():
    Q, R = orthonormal(jnp.asarray(CASES["cond 1e6"], jnp.float32))
    assert Q.dtype == jnp.float32
    assert orthogonality(Q) < 1e-4
    np.testing.assert_allclose(Q @ R, CASES["cond 1e6"], atol=1e-4)


def test_whiten_keeps_the_digits_of_small_entries():
    """A = DBD with D over 40 decades: R and its inverse are right in every entry, where eps·‖A‖ would leave none."""
    B = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 3.0]])
    d = np.array([1.0, 1e-20, 1e-40])
    R, inverse, _ = map(np.asarray, whiten(jnp.asarray(B * d * d[:, None])))
    exact = np.linalg.cholesky(B).T
    np.testing.assert_allclose(R / d, exact, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(inverse * d, np.linalg.inv(exact).T, rtol=1e-14, atol=1e-15)


def test_whiten_leaves_zeros_alone_and_survives_singular_matrices():
    A = np.zeros((3, 3))
    A[:2, :2] = 1.0
    R, inverse, _ = map(np.asarray, whiten(jnp.asarray(A)))
    assert np.all(R[:, 2] == 0)
    assert np.all(inverse[:, 2] == 0)
    np.testing.assert_allclose(R.T @ R, A, atol=1e-14)
    assert np.all(np.isfinite(inverse))
