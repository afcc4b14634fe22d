import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrices import decaying, finite, low_rank

from natgrad.linalg import (
    from_factor,
    gaussian,
    nystrom,
    nystrom_from_columns,
    nystrom_preconditioner,
    pcg,
    rpcholesky,
    rpcholesky_preconditioner,
    sample_diagonal,
)

EPS = np.finfo(float).eps
KEY = jax.random.key(0)


def dense(preconditioner, p):
    columns = np.asarray(preconditioner(jnp.eye(p)))
    np.testing.assert_allclose(
        preconditioner(jnp.eye(p)[:, 3]), columns[:, 3], rtol=1e-12, atol=1e-14 * abs(columns).max()
    )
    return columns


@pytest.mark.parametrize("mu", [1e-6, 1.0])
@pytest.mark.parametrize("rank", [10, 6, 0])
def test_nystrom_is_its_formula(mu, rank):
    G = decaying(40, 5)
    low = nystrom(lambda V: G @ V, gaussian(KEY, 40, 10), rank)
    U, lam = np.asarray(low.U)[:, :rank], np.asarray(low.eigenvalues)[:rank]
    tail = (lam[-1] if rank else 0) + mu
    expected = U @ np.diag(1 / (lam + mu)) @ U.T + (np.eye(40) - U @ U.T) / tail
    np.testing.assert_allclose(dense(nystrom_preconditioner(low, mu), 40), expected, atol=1e-12 / tail)


def test_nystrom_above_the_rank_of_the_matrix():
    """λ_ℓ is then zero, so that the complement is scaled by μ: P is G + μI itself."""
    G = low_rank(40, 5)
    P = nystrom_preconditioner(nystrom(lambda V: G @ V, gaussian(KEY, 40, 10)), 1e-3)
    np.testing.assert_allclose(dense(P, 40) @ (G + 1e-3 * np.eye(40)), np.eye(40), atol=1e-7)


@pytest.mark.parametrize("method", ["eigh", "svd", "woodbury"])
@pytest.mark.parametrize("mu", [1e-6, 1.0])
def test_rpcholesky_is_its_formula(method, mu):
    G = decaying(40, 5)
    result = rpcholesky(lambda i: G[:, i], jnp.diagonal(G), KEY, max_rank=12, block=4)
    expected = np.linalg.inv(np.asarray(result.as_matrix()) + mu * np.eye(40))
    for given in (result, result.F):
        np.testing.assert_allclose(
            dense(rpcholesky_preconditioner(given, mu, method=method), 40), expected, atol=1e-9 / mu
        )


def _all(G, m, mu):
    """Every preconditioner at rank m."""
    p, diagonal = len(G), jnp.diagonal(G)
    chol = rpcholesky(lambda i: G[:, i], diagonal, KEY, max_rank=m, block=10)
    test = gaussian(KEY, p, m)
    return {
        "gaussian": nystrom_preconditioner(nystrom(lambda V: G @ V, test), mu),
        "gaussian svd": nystrom_preconditioner(nystrom(lambda V: G @ V, test, method="svd"), mu),
        "sampling": nystrom_preconditioner(
            nystrom_from_columns(lambda i: G[:, i], sample_diagonal(KEY, diagonal, m)), mu
        ),
        **{name: rpcholesky_preconditioner(chol, mu, method=name) for name in ("eigh", "svd", "woodbury")},
    }


def test_vanishing_mu():
    build = jax.jit(lambda G: _all(G, 12, 0.0))
    v = jnp.ones(20)
    for G in (jnp.zeros((20, 20)), low_rank(20, 3), decaying(20, 40)):
        for name, P in build(G).items():
            assert finite(P), name
            assert finite(P(v)), name
            assert jnp.vdot(v, P(v)) > 0, name
    P = nystrom_preconditioner(from_factor(jnp.zeros((20, 4)), rank=0), 0.0)
    np.testing.assert_array_equal(P(v), v)


def test_unknown_method():
    with pytest.raises(ValueError, match="woodbury"):
        rpcholesky_preconditioner(jnp.eye(3), 1.0, method="qr")


@pytest.mark.parametrize("m", [60, 200])
def test_preconditioning_cuts_the_iterations(m):
    """16 decades, damped at 10·eps·λ₁; a rank above the numerical rank must not hurt."""
    G, mu = decaying(200, 16), 10 * EPS

    @jax.jit
    def solve(G, x):
        def mv(v):
            return G @ v + mu * v

        every = {"none": None, **_all(G, m, mu)}
        return {k: pcg(mv, mv(x), preconditioner=P, tol=1e-7, maxiter=500) for k, P in every.items()}

    results = solve(G, G @ jnp.asarray(np.random.default_rng(0).standard_normal(200)))
    plain = results.pop("none")
    for name, result in results.items():
        assert finite(result), name
        assert result.converged, name
        assert result.residual < 1e-6, name
        assert 3 * result.iterations <= plain.iterations, (name, result.iterations, plain.iterations)
