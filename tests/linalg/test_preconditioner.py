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


@jax.jit
def nystrom_at(G, rank, mu):
    low = nystrom(lambda V: G @ V, gaussian(KEY, 40, 10), rank)
    return low, nystrom_preconditioner(low, mu)


@pytest.mark.parametrize("mu", [1e-6, 1.0])
@pytest.mark.parametrize("rank", [10, 6, 0])
def test_nystrom_is_its_formula(mu, rank):
    low, P = nystrom_at(decaying(40, 5), rank, mu)
    U, lam = np.asarray(low.U)[:, :rank], np.asarray(low.eigenvalues)[:rank]
    tail = (lam[-1] if rank else 0) + mu
    expected = U @ np.diag(1 / (lam + mu)) @ U.T + (np.eye(40) - U @ U.T) / tail
    np.testing.assert_allclose(dense(P, 40), expected, atol=1e-12 / tail)


def test_nystrom_above_the_rank_of_the_matrix():
    """λ_ℓ is then zero, so that the complement is scaled by μ: P is G + μI itself."""
    G = low_rank(40, 5)
    _, P = nystrom_at(G, 10, 1e-3)
    np.testing.assert_allclose(dense(P, 40) @ (G + 1e-3 * np.eye(40)), np.eye(40), atol=1e-7)


@jax.jit
def rpcholesky_at(G, mu):
    result = rpcholesky(lambda i: G[:, i], jnp.diagonal(G), KEY, max_rank=12, block=4)
    methods = ("eigh", "svd", "woodbury")
    return result, {
        (name, f is result): rpcholesky_preconditioner(f, mu, method=name)
        for name in methods
        for f in (result, result.F)
    }


@pytest.mark.parametrize("mu", [1e-6, 1.0])
def test_rpcholesky_is_its_formula(mu):
    result, every = rpcholesky_at(decaying(40, 5), mu)
    expected = np.linalg.inv(np.asarray(result.as_matrix()) + mu * np.eye(40))
    for P in every.values():
        np.testing.assert_allclose(dense(P, 40), expected, atol=1e-9 / mu)


@jax.jit
def every(G, rank, tol, mu):
    """Every preconditioner: Nyström ones of the rank, RPCholesky ones up to the tolerance."""
    p, diagonal = len(G), jnp.diagonal(G)
    chol = rpcholesky(lambda i: G[:, i], diagonal, KEY, max_rank=p, block=10, tol=tol)
    test, indices = gaussian(KEY, p, p), sample_diagonal(KEY, diagonal, p)
    return {
        "gaussian": nystrom_preconditioner(nystrom(lambda V: G @ V, test, rank), mu),
        "sampling": nystrom_preconditioner(nystrom_from_columns(lambda i: G[:, i], indices, rank), mu),
        "rpcholesky with tail": nystrom_preconditioner(from_factor(chol.F, rank=chol.rank), mu),
        **{name: rpcholesky_preconditioner(chol, mu, method=name) for name in ("eigh", "svd", "woodbury")},
    }


@jax.jit
def iterate(G, x, mu, preconditioner):
    def mv(v):
        return G @ v + mu * v

    return pcg(mv, mv(x), preconditioner=preconditioner, tol=1e-7, maxiter=300)


def test_vanishing_mu():
    p = 120
    v = jnp.ones(p)
    for G in (jnp.zeros((p, p)), low_rank(p, 3), decaying(p, 40)):
        for rank in (0, 20):
            for name, P in every(G, rank, 0.0, 0.0).items():
                assert finite(P), name
                assert finite(P(v)), name
                assert jnp.vdot(v, P(v)) > 0, name


def test_unknown_method():
    with pytest.raises(ValueError, match="woodbury"):
        rpcholesky_preconditioner(jnp.eye(3), 1.0, method="qr")


@pytest.mark.parametrize(("rank", "tol"), [(40, 1e-4), (120, 0.0)])
def test_preconditioning_cuts_the_iterations(rank, tol):
    """16 decades, damped at 10·eps·λ₁; a rank above the numerical rank must not hurt."""
    p, mu = 120, 10 * EPS
    G = decaying(p, 16)
    x = jnp.asarray(np.random.default_rng(0).standard_normal(p))
    plain = iterate(G, x, mu, None)
    for name, P in every(G, rank, tol, mu).items():
        result = iterate(G, x, mu, P)
        assert finite(result), name
        # With the complement scaled by μ, a rank that leaves out eigenvalues far above μ does not help.
        if tol == 0 or name in ("gaussian", "sampling", "rpcholesky with tail"):
            assert result.converged, name
            assert result.residual < 1e-6, name
            assert 5 * result.iterations <= plain.iterations, (name, result.iterations)
