import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend import tuning
from natgrad.backend.products import cross, gram, gram_diagonal, gram_vector, inverse_by_blocks, row_gram
from natgrad.linalg import safe_cholesky

EPS = float(jnp.finfo(float).eps)


def matrix(q, p, seed=0, dtype=float):
    return jnp.asarray(np.random.default_rng(seed).standard_normal((q, p)), dtype)


def close(a, b, tol=1e-13):
    return np.linalg.norm(np.asarray(a) - np.asarray(b)) <= tol * np.linalg.norm(np.asarray(b))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of three rows of seven numbers, whatever the size of A."""
    monkeypatch.setattr(tuning, "CACHE_BYTES", 3 * 7 * 8)
    monkeypatch.setattr(tuning, "CACHE_ROWS", 1)


def loops(q, p):
    return "scan" in str(jax.make_jaxpr(lambda *args: gram_vector(*args))(matrix(q, p), jnp.ones(p)))


@pytest.mark.parametrize("q", [30, 31, 32, 100])
def test_one_pass_counts_every_row_once(small_blocks, q):
    A, v = matrix(q, 7), matrix(7, 1)[:, 0]
    assert loops(q, 7)
    assert close(gram_vector(A, v), A.T @ (A @ v))
    assert close(jax.jit(lambda A, v: gram_vector(A, v))(A, v), A.T @ (A @ v))


def test_one_pass_of_several_vectors_and_of_derivatives(small_blocks):
    A, V = matrix(50, 7), matrix(7, 4)
    assert close(jax.vmap(lambda v: gram_vector(A, v), 1, 1)(V), A.T @ (A @ V))
    out, tangent = jax.jvp(lambda v: gram_vector(A, v), (V[:, 0],), (V[:, 1],))
    assert close(out, A.T @ (A @ V[:, 0]))
    assert close(tangent, A.T @ (A @ V[:, 1]))


def test_one_pass_keeps_single_precision(small_blocks):
    A, v = matrix(61, 7, dtype="float32"), jnp.ones(7, "float32")
    out = gram_vector(A, v)
    assert out.dtype == jnp.float32
    assert close(out, A.T @ (A @ v), 1e-5)


def test_blocks_are_for_large_matrices_with_rows_that_fit(monkeypatch):
    assert not loops(30, 7)
    monkeypatch.setattr(tuning, "CACHE_BYTES", 3 * 7 * 8)
    assert not loops(100, 7)  # three rows a block
    monkeypatch.setattr(tuning, "CACHE_ROWS", 1)
    assert loops(100, 7)
    assert not loops(29, 7)


@pytest.mark.parametrize("large", [0.0, 1e9])
def test_products_by_numpy_and_by_xla(monkeypatch, large):
    monkeypatch.setattr(tuning, "NUMPY_FLOPS", large)
    monkeypatch.setattr(tuning, "NUMPY_NUMBERS", 64)
    A, B, C = matrix(100, 9), matrix(8, 9, 1), matrix(100, 4, 2)
    assert close(gram(A), A.T @ A)
    assert close(row_gram(A, B), A @ B.T)
    assert close(cross(A, C), C.T @ A)
    assert close(gram_diagonal(A), jnp.sum(A**2, 0))


@pytest.mark.parametrize("m", [1, 5, 31, 32, 33, 100, 300])
@pytest.mark.parametrize("decades", [0, 14])
def test_a_triangle_is_inverted_by_blocks(m, decades):
    """As well as by substitution, for a factor whose last pivots are at the round-off of the first."""
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((m, m)))
    L, _ = jax.jit(safe_cholesky)(jnp.asarray((Q * np.logspace(0, -decades, m)) @ Q.T), EPS)
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
