from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matrices import decaying, finite, low_rank, repeated_columns, with_spectrum

from natgrad.linalg import rpcholesky

BLOCKS = [1, 7, 20]


@partial(jax.jit, static_argnames=("max_rank", "block"))
def _factor(G, key, tol, max_rank, block):
    return rpcholesky(lambda i: G[:, i], jnp.diagonal(G), key, max_rank=max_rank, block=block, tol=tol)


def factor(G, max_rank, block=1, seed=0, tol=0.0):
    return _factor(G, jax.random.key(seed), tol, max_rank, block)


def valid(result, G):
    """Pivots distinct, nothing past the rank, below G, and the trace error that of the residual."""
    rank, pivots, scale = int(result.rank), np.asarray(result.pivots), max(float(jnp.max(jnp.abs(G))), 1e-300)
    residual = np.asarray(G - result.as_matrix())
    return (
        finite(result)
        and len(set(pivots[:rank])) == rank
        and np.all(pivots[:rank] >= 0)
        and np.all(pivots[rank:] == -1)
        and np.all(np.asarray(result.F)[:, rank:] == 0)
        and np.linalg.eigvalsh(residual)[0] > -1e-13 * len(G) * scale
        and abs(np.trace(residual) - float(result.trace_error)) < 1e-12 * len(G) * scale
    )


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("max_rank", [33, 75])  # the second is above p, and no multiple of 7 or 20
def test_exact_on_low_rank(block, max_rank):
    """The shift of a block leaves a residual near round-off, for which later rounds may take more pivots."""
    G = low_rank(60, 12)
    for seed in range(3):
        result = factor(G, max_rank, block, seed)
        assert valid(result, G)
        assert 12 <= int(result.rank) <= (12 if block == 1 else 24)
        np.testing.assert_allclose(result.as_matrix(), G, atol=1e-13 * np.linalg.norm(G, 2))


@pytest.mark.parametrize("block", BLOCKS)
def test_capacity_is_used_exactly(block):
    G = decaying(60, 6)
    result = factor(G, 33, block)
    assert valid(result, G)
    assert int(result.rank) == 33


@pytest.mark.parametrize("block", BLOCKS)
def test_equals_nystrom_on_its_pivots(block):
    """Property 2.1 of Chen et al."""
    G = decaying(60, 4)
    result = factor(G, 33, block)
    Y = np.asarray(G)[:, result.pivots]
    reference = Y @ np.linalg.solve(Y[np.asarray(result.pivots)], Y.T)
    np.testing.assert_allclose(result.as_matrix(), reference, atol=1e-11)


@pytest.mark.parametrize("block", [1, 7])
def test_trace_error_bound_of_chen_et_al(block):
    """Theorem 5.1 there, for plain RPCholesky; rounds of a block of 7 stay within a factor of two here."""
    spectrum = 1 / np.arange(1, 61) ** 3.0
    G, r, eps = with_spectrum(spectrum), 5, 0.5
    tail = spectrum[r:].sum()
    k = int(np.ceil(r / eps + r * np.log(spectrum.sum() / (eps * tail))))
    assert k < 40
    errors = [float(factor(G, k, block, seed).trace_error) for seed in range(20)]
    assert np.mean(errors) <= (1 + eps) * tail * (1 if block == 1 else 2)
    assert np.min(errors) >= spectrum[k:].sum()


def test_stops_at_the_tolerance():
    G = decaying(60, 8)
    result = factor(G, 75, 1, tol=1e-3)
    assert result.trace_error < 1e-3
    np.testing.assert_allclose(jnp.trace(G - result.as_matrix()), result.trace_error, rtol=1e-6)
    before = result.F[:, : int(result.rank) - 1]
    assert jnp.trace(G - before @ before.T) >= 1e-3


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("decades", [16, 60])
def test_spectra_down_to_round_off(block, decades):
    """Blocks of a matrix like this have singular C[S, :], which an unshifted Cholesky does not factor."""
    G = decaying(60, decades)
    result = factor(G, 75, block)
    assert valid(result, G)
    np.testing.assert_allclose(result.as_matrix(), G, atol=1e-13)


@pytest.mark.parametrize("block", BLOCKS)
def test_degenerate_matrices(block):
    zero = factor(jnp.zeros((60, 60)), 75, block)
    assert valid(zero, jnp.zeros((60, 60)))
    assert int(zero.rank) == 0
    assert zero.trace_error == 0

    G = repeated_columns(60)
    result = factor(G, 75, block)
    assert valid(result, G)
    assert int(result.rank) <= 20

    G = jnp.zeros((60, 60)).at[:6, :6].set(low_rank(6, 6))  # most pivots have probability zero
    result = factor(G, 75, block)
    assert valid(result, G)
    assert set(np.asarray(result.pivots)) == {-1, 0, 1, 2, 3, 4, 5}

    G = jnp.ones((60, 60))
    assert int(factor(G, 75, block).rank) == 1


def test_columns_are_asked_for_once_a_round():
    asked = []
    G = decaying(60, 4)

    def columns(i):
        jax.debug.callback(lambda i: asked.append(len(i)), i)
        return G[:, i]

    result = rpcholesky(columns, jnp.diagonal(G), jax.random.key(0), max_rank=20, block=5)
    jax.effects_barrier()
    assert int(result.rank) == 20
    assert set(asked) == {5}
    assert 4 <= len(asked) <= 6


def test_bad_sizes():
    with pytest.raises(ValueError, match="max_rank"):
        factor(jnp.eye(3), 0)
