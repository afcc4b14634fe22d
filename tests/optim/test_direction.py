"""Direction solvers against dense solves."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from tests.helpers import FAST, Dense, relative


def decaying(p=40, decay=0.5, seed=0):
    """A matrix with eigenvalues decay^i."""
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, p)))
    return (Q * decay ** np.arange(p)) @ Q.T


def solve(direction, G, b, mu, x0=None):
    """(x, μ in use, residual, iterations) of (G + μI) x = b."""

    direction = dataclasses.replace(direction, scaling=1.0)

    def run(G, b, x0):
        key = jax.random.key(1)
        state = direction.init(b.shape[0], b.dtype, key)
        system, _ = direction.prepare(Dense(G), lambda largest: jnp.asarray(mu, b.dtype), state, key)
        result = system.solve(b, x0)
        return result.x, system.mu, result.residual, result.iterations

    x0 = jnp.zeros_like(b) if x0 is None else x0
    return jax.jit(run, compiler_options=FAST)(jnp.asarray(G), jnp.asarray(b), x0)


B = np.random.default_rng(5).normal(size=40)


def test_direct_is_the_dense_solve():
    G = decaying()
    x, mu, residual, _ = solve(ng.Direct(), G, B, 1e-4)
    assert float(mu) == 1e-4
    assert relative(x, np.linalg.solve(G + 1e-4 * np.eye(40), B)) < 1e-10
    assert float(residual) < 1e-12


@pytest.mark.parametrize(
    "G",
    [
        decaying(decay=0.1) - 1e-9 * np.eye(40),  # indefinite by round-off
        np.ones((40, 40)),  # rank one
        np.zeros((40, 40)),
    ],
    ids=["indefinite", "rank one", "zero"],
)
def test_direct_damps_more_where_cholesky_fails(G):
    """Finite and descending, and the μ it says it used is the μ of the system it solved."""
    x, mu, residual, _ = solve(ng.Direct(), G, B, 1e-30)
    assert np.all(np.isfinite(x))
    assert float(mu) >= 1e-30
    round_off = len(G) * np.finfo(float).eps * np.linalg.norm(G, 2)  # of the eigenvalues that NumPy finds
    assert np.linalg.eigvalsh(G)[0] + float(mu) >= -round_off
    assert float(x @ B) > 0  # a descent direction
    if np.linalg.cond(G + float(mu) * np.eye(40)) < 1e12:
        assert relative(x, np.linalg.solve(G + float(mu) * np.eye(40), B)) < 1e-3
        assert float(residual) < 1e-6


@pytest.mark.parametrize(
    "preconditioner",
    [ng.RowFactor(max_rank=20, levels=1), ng.PivotedRowFactor(max_rank=20, block=5), ng.Identity()],
    ids=["nystrom", "rpcholesky", "identity"],
)
def test_pcg_agrees_with_direct(preconditioner):
    G = decaying()
    exact, *_ = solve(ng.Direct(), G, B, 1e-4)
    x, mu, residual, iterations = solve(ng.PCG(preconditioner, maxiter=200, tol=1e-12, min_decrease=0.0), G, B, 1e-4)
    assert float(mu) == 1e-4
    assert relative(x, exact) < 1e-8
    assert float(residual) < 1e-10
    assert 0 < int(iterations) < 200


def test_a_warm_start_at_the_solution_takes_no_iterations():
    G = decaying()
    exact = np.linalg.solve(G + 1e-2 * np.eye(40), B)
    options = {"maxiter": 50, "tol": 1e-8, "min_decrease": 0.0}
    warm = solve(ng.PCG(ng.Identity(), **options), G, B, 1e-2, 3 * exact)  # scaled to fit
    cold = solve(ng.PCG(ng.Identity(), warm_start=False, **options), G, B, 1e-2, 3 * exact)
    assert int(warm[3]) == 0
    assert int(cold[3]) > 3
    assert relative(warm[0], exact) < 1e-8


def test_a_stale_preconditioner_is_seen_and_rebuilt():
    """The first build is kept while the matrix stays, and made anew when the matrix turns or the solve failed."""
    direction = ng.PCG(ng.Nystrom(20, method="cholesky", increase=20, staleness=3.0, levels=1), scaling=1.0)

    def prepare(G, state, key):
        system, state = direction.prepare(Dense(G), lambda largest: 1e-8 * largest, state, key)
        return system.rebuilt, state

    prepare = jax.jit(prepare, compiler_options=FAST)
    G, other = jnp.asarray(decaying()), jnp.asarray(decaying(seed=9))
    state = direction.init(40, G.dtype, jax.random.key(0))
    rebuilt, state = prepare(G, state, jax.random.key(1))
    assert bool(rebuilt)
    failed = eqx.tree_at(lambda s: s.preconditioner.good, state, jnp.asarray(False))
    assert not bool(prepare(1.01 * G, state, jax.random.key(2))[0])
    assert bool(prepare(other, state, jax.random.key(2))[0])
    assert bool(prepare(G, failed, jax.random.key(2))[0])


def test_the_diagonal_that_scales_the_damping_is_that_of_the_last_step():
    """It comes for free with the factor. Before the first step D = I, and a factor of NaN leaves it as it was."""
    direction = ng.PCG(ng.RowFactor(40, levels=1), maxiter=200, tol=1e-12, min_decrease=0.0, scaling=1e-3)

    def step(G, state, iteration):
        system, state = direction.prepare(Dense(G), lambda largest: 1e-4, state, jax.random.key(1), iteration)
        return system.solve(jnp.asarray(B)).x, state

    step = jax.jit(step, compiler_options=FAST)
    grade = np.logspace(0, -3, 40)
    first, second = (grade[:, None] * decaying(decay=0.7, seed=s) * grade for s in (0, 1))
    x, state = step(first, direction.init(40, jnp.float64, jax.random.key(0)), 0)
    assert relative(x, np.linalg.solve(first + 1e-4 * np.eye(40), B)) < 1e-8
    assert relative(state.diagonal, np.diag(first)) < 1e-8
    x, later = step(second, state, 100)
    D = np.diag(np.maximum(np.diag(first) / np.diag(first).max(), 1e-3))
    assert relative(x, np.linalg.solve(second + 1e-4 * D, B)) < 1e-8
    assert relative(later.diagonal, np.diag(second)) < 1e-8
    _, broken = step(np.nan * second, later, 101)
    np.testing.assert_array_equal(broken.diagonal, later.diagonal)


def test_a_correction_has_fewer_digits_for_fewer_iterations():
    G = decaying(decay=0.7)
    direction = ng.PCG(ng.RowFactor(max_rank=15, levels=1), maxiter=200, scaling=1.0)

    def run(G, b):
        state = direction.init(40, b.dtype, jax.random.key(0))
        system, _ = direction.prepare(Dense(G), lambda largest: jnp.asarray(1e-6), state, jax.random.key(1))
        return system.solve(b), system.correct(b)

    whole, part = jax.jit(run, compiler_options=FAST)(jnp.asarray(G), jnp.asarray(B))
    assert int(part.iterations) < int(whole.iterations)
    M = G + 1e-6 * np.eye(40)
    exact = np.linalg.solve(M, B)
    energy = lambda e: np.sqrt(e @ M @ e)
    assert energy(part.x - exact) < 3e-3 * energy(exact)
    assert energy(whole.x - exact) < 1e-5 * energy(exact)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxiter": 0}, "maxiter must be a positive integer, got 0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        ng.PCG(**options)
