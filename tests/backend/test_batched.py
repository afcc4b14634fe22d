"""Cholesky factors of several matrices at once: by column blocks they are what LAPACK finds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend import batched, tuning


def matrices(order, count=3, seed=0):
    """Positive definite, of condition 1e8."""
    rng = np.random.default_rng(seed)
    bases = np.linalg.qr(rng.normal(size=(count, order, order)))[0]
    return (bases * np.geomspace(1, 1e-8, order)) @ np.swapaxes(bases, 1, 2)


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(tuning, "BATCHES_BY_BLOCKS", tuning.ByDevice(cpu=True, other=True))
    monkeypatch.setattr(tuning, "BATCH_COLUMNS", 32)


@pytest.mark.parametrize("order", [33, 64, 100])
def test_blocks_find_the_factor_of_each_matrix(as_on_a_gpu, order):
    A = matrices(order)
    found = jax.jit(jax.vmap(batched.cholesky))(A)
    np.testing.assert_allclose(found @ np.swapaxes(found, 1, 2), A, atol=1e-15 * order)
    np.testing.assert_array_equal(np.triu(found, 1), 0)
    np.testing.assert_allclose(found[:, :32, :32], np.linalg.cholesky(A)[:, :32, :32], atol=1e-12)


def test_blocks_read_the_lower_triangle_alone(as_on_a_gpu):
    A = matrices(50)
    other = np.tril(A) + np.triu(np.full_like(A, 7.0), 1)
    np.testing.assert_array_equal(jax.vmap(batched.cholesky)(other), jax.vmap(batched.cholesky)(np.tril(A)))


def test_one_matrix_that_has_no_factor_does_not_spoil_the_others(as_on_a_gpu):
    A = matrices(50)
    A[1, 40, 40] = -1
    found = np.asarray(jax.vmap(batched.cholesky)(A))
    assert not np.isfinite(np.diagonal(found[1])).all()
    np.testing.assert_allclose(found[[0, 2]] @ np.swapaxes(found[[0, 2]], 1, 2), A[[0, 2]], atol=1e-13)


def test_solves_are_as_good_as_those_by_substitution(as_on_a_gpu):
    A, b = matrices(100), np.random.default_rng(1).normal(size=(3, 100))
    A, b, L = jnp.asarray(A), jnp.asarray(b), jnp.linalg.cholesky(A)
    for solve in (jax.vmap(batched.cholesky_solve), jax.vmap(batched.by_substitution)):
        residual = jnp.einsum("kij,kj->ki", A, solve(L, b)) - b
        assert np.linalg.norm(residual) < 1e-7 * np.linalg.norm(b)
    shared = jax.vmap(batched.cholesky_solve, in_axes=(None, 0))(L[0], b)
    np.testing.assert_allclose(shared, jax.vmap(batched.by_substitution, in_axes=(None, 0))(L[0], b), rtol=1e-6)


def test_alone_and_on_a_processor_they_are_those_of_jax():
    A = jnp.asarray(matrices(40))
    np.testing.assert_array_equal(batched.cholesky(A[0]), jnp.linalg.cholesky(A[0], symmetrize_input=False))
    np.testing.assert_array_equal(jax.vmap(batched.cholesky)(A), jnp.linalg.cholesky(A, symmetrize_input=False))
