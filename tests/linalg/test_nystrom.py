from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrices import decaying, finite, low_rank, orthogonality, repeated_columns, with_spectrum

from natgrad.linalg import (
    from_factor,
    gaussian,
    nystrom,
    nystrom_from_columns,
    sample_diagonal,
    sample_uniform,
)

KEY = jax.random.key(0)
METHODS = ["cholesky", "svd"]
TESTS = ["gaussian", "uniform", "diagonal"]


P = 60  # one size and one width, with ranks traced: few compilations


@partial(jax.jit, static_argnames=("test", "method"))
def _approximate(G, key, rank, test, method):
    if test == "gaussian":
        return nystrom(lambda V: G @ V, gaussian(key, P, P), rank, method=method)
    indices = sample_uniform(key, P, P) if test == "uniform" else sample_diagonal(key, jnp.diagonal(G), P)
    return nystrom_from_columns(lambda i: G[:, i], indices, rank, method=method)


def approximate(G, test, rank, method="cholesky", key=KEY):
    return _approximate(G, key, rank, test, method)


def valid(result):
    lam = np.asarray(result.eigenvalues)
    return finite(result) and orthogonality(result.U) < 1e-12 and np.all(lam >= 0) and np.all(np.diff(lam) <= 0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("rank", [8, 30, 60])
def test_exact_on_low_rank(test, method, rank):
    G = low_rank(P, 8)
    result = approximate(G, test, rank, method)
    assert valid(result)
    np.testing.assert_allclose(result.as_matrix(), G, atol=1e-11 * jnp.linalg.norm(G, 2))


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("decades", [4, 16, 40])
def test_methods_agree(test, decades):
    G = decaying(P, decades)
    for rank in (15, 35, 60):
        a, b = (approximate(G, test, rank, method) for method in METHODS)
        assert valid(a)
        assert valid(b)
        np.testing.assert_allclose(a.as_matrix(), b.as_matrix(), atol=1e-13)
        np.testing.assert_allclose(a.eigenvalues, b.eigenvalues, atol=1e-13)
        assert np.linalg.eigvalsh(np.asarray(G - a.as_matrix()))[0] > -1e-13  # from below, up to round-off


def test_formula():
    G, omega = decaying(P, 3), np.asarray(gaussian(KEY, P, P))[:, :10]
    np.testing.assert_allclose(approximate(G, "gaussian", 10).as_matrix(), by_formula(G, omega), atol=1e-12)


@pytest.mark.parametrize("spectrum", [1 / np.arange(1, P + 1) ** 2.0, np.exp(-np.arange(P) / 4)])
def test_error_bound_of_martinsson_and_tropp(spectrum):
    """Theorem 14.1 of Randomized numerical linear algebra, in expectation over Gaussian test matrices."""
    G, m = with_spectrum(spectrum), 20
    errors = [
        np.linalg.norm(np.asarray(G - approximate(G, "gaussian", m, key=key).as_matrix()), 2)
        for key in jax.random.split(KEY, 30)
    ]
    bound = min(
        (1 + k / (m - k - 1)) * spectrum[k] + 2 * np.e**2 * m / ((m - k) ** 2 - 1) * spectrum[k:].sum()
        for k in range(1, m - 1)
    )
    assert np.mean(errors) <= bound
    assert np.min(errors) >= spectrum[m] * (1 - 1e-10)  # no approximation of rank m is better


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("rank", [0, 1, 7, 60])
def test_nothing_past_the_rank(test, method, rank):
    result = approximate(decaying(P, 10), test, rank, method)
    assert int(result.rank) == rank
    assert valid(result)
    assert np.all(np.asarray(result.U)[:, rank:] == 0)
    assert np.all(np.asarray(result.eigenvalues)[rank:] == 0)


@pytest.mark.parametrize(("test", "method"), [("gaussian", "cholesky"), ("gaussian", "svd"), ("uniform", "cholesky")])
def test_masked_rank_equals_narrow_width(test, method):
    G, rank = decaying(P, 10), 7
    wide = approximate(G, test, rank, method)

    @jax.jit
    def narrow(G):
        if test == "gaussian":
            return nystrom(lambda V: G @ V, gaussian(KEY, P, P)[:, :rank], method=method)
        return nystrom_from_columns(lambda i: G[:, i], sample_uniform(KEY, P, P)[:rank], method=method)

    np.testing.assert_allclose(wide.eigenvalues[:rank], narrow(G).eigenvalues, atol=1e-14)
    np.testing.assert_allclose(wide.as_matrix(), narrow(G).as_matrix(), atol=1e-13)


def test_one_trace_for_all_ranks():
    traces = []

    @jax.jit
    def run(G, rank):
        traces.append(rank)
        return nystrom_from_columns(lambda i: G[:, i], jnp.arange(10), rank).eigenvalues

    for rank in (0, 3, 10):
        assert np.count_nonzero(run(decaying(30, 5), rank)) == rank
    assert len(traces) == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("test", TESTS)
def test_degenerate_matrices(test, method):
    for G in (jnp.zeros((P, P)), repeated_columns(P), jnp.diag(jnp.arange(P) % 3 == 0).astype(float)):
        result = approximate(G, test, 40, method)
        assert valid(result)
        if not jnp.any(G):
            assert not jnp.any(result.eigenvalues)
    np.testing.assert_allclose(approximate(jnp.eye(P), test, P, method).as_matrix(), np.eye(P), atol=1e-13)


def by_formula(G, omega):
    Y = np.asarray(G) @ omega
    return Y @ np.linalg.solve(omega.T @ Y, Y.T)


def test_dependent_test_columns():
    """A reused basis has zero columns, and may repeat others: neither adds to the range."""
    G, omega = decaying(P, 3), np.asarray(gaussian(KEY, P, 10))
    spoiled = np.concatenate([omega[:, :5], np.zeros((P, 3)), omega[:, :2], omega[:, 5:]], axis=1)
    result = jax.jit(lambda G, omega: nystrom(lambda V: G @ V, omega))(G, spoiled)
    assert valid(result)
    np.testing.assert_allclose(result.as_matrix(), by_formula(G, omega), atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_repeated_indices(method):
    G = decaying(P, 3)
    run = jax.jit(lambda G, i: nystrom_from_columns(lambda i: G[:, i], i, method=method))
    result = run(G, jnp.array([3, 7, 3, 9, 7]))
    assert valid(result)
    np.testing.assert_allclose(result.as_matrix(), by_formula(G, np.eye(P)[:, [3, 7, 9]]), atol=1e-12)


def test_from_factor():
    B = jnp.asarray(np.random.default_rng(0).standard_normal((50, 12)) * np.logspace(0, -12, 12))
    decompose = jax.jit(from_factor)
    result = decompose(B)
    assert valid(result)
    np.testing.assert_allclose(result.as_matrix(), B @ B.T, atol=1e-13 * np.linalg.norm(B, 2) ** 2)
    assert finite(decompose(jnp.zeros((50, 12))))


def test_unknown_method():
    with pytest.raises(ValueError, match="method"):
        nystrom(lambda V: V, jnp.eye(3), method="qr")
