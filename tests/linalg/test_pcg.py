import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrices import decaying, finite, with_spectrum

from natgrad.linalg import pcg

RNG = np.random.default_rng(0)
A = with_spectrum(np.linspace(1, 50, 40))
B = jnp.asarray(RNG.standard_normal(40))


@jax.jit
def _solve(A, b, x0, tol, maxiter):
    return pcg(lambda v: A @ v, b, x0=x0, tol=tol, maxiter=maxiter)


def solve(A, b, x0=None, tol=1e-8, maxiter=100):
    return _solve(A, b, x0, tol, maxiter)


def textbook(A, b, P, n):
    x, r = np.zeros_like(b), b.copy()
    z = P @ r
    d, rz = z.copy(), r @ z
    for _ in range(n):
        q = A @ d
        alpha = rz / (d @ q)
        x, r = x + alpha * d, r - alpha * q
        z = P @ r
        d, rz = z + (r @ z) / rz * d, r @ z
    return x


@pytest.mark.parametrize("n", [1, 7])
def test_iterates_are_the_textbook_ones(n):
    P = np.diag(1 / np.diagonal(A))
    result = pcg(lambda v: A @ v, B, preconditioner=lambda v: P @ v, tol=0.0, maxiter=n)
    assert int(result.iterations) == n
    np.testing.assert_allclose(result.x, textbook(np.asarray(A), np.asarray(B), P, n), rtol=1e-8, atol=1e-12)


def test_residual_is_true_and_within_the_tolerance():
    for tol in (1e-2, 1e-6, 1e-10):
        result = solve(A, B, tol=tol)
        assert result.converged
        assert not result.breakdown
        true = jnp.linalg.norm(B - A @ result.x) / jnp.linalg.norm(B)
        np.testing.assert_allclose(result.residual, true, rtol=1e-10)
        assert true <= 1.01 * tol
        assert solve(A, B, tol=tol, maxiter=int(result.iterations) - 1).residual > tol


@pytest.mark.parametrize(
    ("x0", "true_residual", "extra"), [(None, False, 0), (None, True, 1), (B, False, 1), (B, True, 2)]
)
def test_one_product_an_iteration(x0, true_residual, extra):
    calls = {"mv": 0, "P": 0}

    def count(name, f):
        def counted(v):
            jax.debug.callback(lambda _: calls.__setitem__(name, calls[name] + 1), v[0])
            return f(v)

        return counted

    mv, P = count("mv", lambda v: A @ v), count("P", lambda v: v)
    result = pcg(mv, B, preconditioner=P, x0=x0, tol=0.0, maxiter=9, true_residual=true_residual)
    jax.block_until_ready(result)
    jax.effects_barrier()
    assert calls == {"mv": 9 + extra, "P": 9}


def test_warm_start():
    x = jnp.linalg.solve(A, B)
    cold = solve(A, B)
    warm = solve(A, B, x0=x * (1 + 1e-5))
    assert warm.converged
    assert warm.iterations < cold.iterations
    assert solve(A, B, x0=x).iterations == 0


@pytest.mark.parametrize("x0", [-100 * B, jnp.full(40, jnp.nan), jnp.full(40, jnp.inf)])
def test_bad_start_is_not_used(x0):
    cold = solve(A, B, maxiter=10)
    result = solve(A, B, x0=x0, maxiter=10)
    np.testing.assert_array_equal(result.x, cold.x)


@pytest.mark.parametrize("x0", [None, B])
def test_zero_right_hand_side(x0):
    result = solve(A, jnp.zeros(40), x0=x0)
    assert not jnp.any(result.x)
    assert result.residual == 0
    assert result.converged
    assert result.iterations == 0


def test_breakdown_keeps_the_last_good_iterate():
    indefinite = jnp.diag(jnp.array([1.0, 2.0, 3.0, -1.0]))
    b = jnp.array([1.0, 1.0, 1.0, 0.1])
    result = solve(indefinite, b, tol=0.0)
    assert result.breakdown
    assert not result.converged
    assert finite(result)
    good = solve(indefinite, b, tol=0.0, maxiter=int(result.iterations))
    np.testing.assert_array_equal(result.x, good.x)

    for mv in (lambda v: -v, lambda v: 0 * v, lambda v: jnp.nan * v):
        result = pcg(mv, b, true_residual=False)
        assert result.breakdown
        assert not jnp.any(result.x)


def test_bad_preconditioner_and_right_hand_side():
    assert pcg(lambda v: A @ v, B, preconditioner=lambda v: -v).breakdown
    assert solve(A, B.at[0].set(jnp.nan)).breakdown


def test_energy_norm_error_falls_on_ill_conditioned_systems():
    G = decaying(100, 12) + 1e-12 * jnp.eye(100)
    x = jnp.asarray(RNG.standard_normal(100))
    error = [solve(G, G @ x, tol=0.0, maxiter=n).x - x for n in (5, 10, 20, 40)]
    energy = [float(e @ G @ e) for e in error]
    assert energy == sorted(energy, reverse=True)


def test_traced_maxiter_and_tolerance_do_not_retrace():
    traces = []

    @jax.jit
    def run(maxiter, tol):
        traces.append(maxiter)
        return pcg(lambda v: A @ v, B, maxiter=maxiter, tol=tol).iterations

    assert [int(run(n, 1e-14)) for n in (0, 3, 5)] == [0, 3, 5]
    assert len(traces) == 1


def test_float32():
    result = solve(A.astype(jnp.float32), B.astype(jnp.float32), tol=1e-5)
    assert result.x.dtype == jnp.float32
    assert result.residual < 2e-5
