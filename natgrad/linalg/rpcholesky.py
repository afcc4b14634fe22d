"""Randomly pivoted partial Cholesky, G ≈ F Fᵀ (paper, section 4.2.2 and appendix A.2).

A round draws `block` pivots independently with probability proportional to the diagonal d of the residual G −
F Fᵀ, drops repeats, and eliminates them: with S the pivots, C = G[:, S] − F F[S, :]ᵀ and the Cholesky
factorization C[S, :] = L Lᵀ, the new columns are C L⁻ᵀ and d loses their squared row norms. New columns are
written where the last ones ended, so that dropped pivots cost no capacity.

C carries round-off s of the size of G, a few eps·max d⁽⁰⁾, however small the residual has become, so C[S, :]
is factored with the shift s and F Fᵀ stays below G. A pivot whose residual is not well above that, after
those before it in its round are eliminated, would be divided by noise: it is left out, and may be drawn
again later.

Rounds end when the residual's trace is below `tol`, the capacity is used, or nothing above the floor is left.
Assumed: G symmetric positive semidefinite up to round-off, `diagonal` its diagonal.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad.backend.products import matmul
from natgrad.linalg.cholesky import safe_cholesky, solve_right

SIGNAL = 4  # a pivot is used if its residual is this many times its noise


class PivotedCholesky(eqx.Module):
    """F Fᵀ ≈ G; columns of F from `rank` on are zero and their pivots −1; trace_error is tr(G − F Fᵀ)."""

    F: Float[Array, "p m"]
    pivots: Int[Array, " m"]
    rank: Int[Array, ""]
    trace_error: Float[Array, ""]

    def as_matrix(self) -> Float[Array, "p p"]:
        """The dense p×p matrix."""
        return matmul(self.F, self.F.T)


def rpcholesky(
    columns: Callable[[Int[Array, " b"]], Float[Array, "p b"]],
    diagonal: Float[Array, " p"],
    key: PRNGKeyArray,
    *,
    max_rank: int,
    block: int = 1,
    tol: float | Float[Array, ""] = 0.0,
) -> PivotedCholesky:
    """Partial Cholesky factor of at most max_rank columns, by random pivots (paper, algorithms A.2 and A.3).

    `columns` is called once a round, with `block` indices.
    """
    if max_rank < 1 or block < 1:
        raise ValueError(f"max_rank and block are at least 1, not {max_rank} and {block}")
    block = min(block, max_rank)
    (p,) = diagonal.shape
    dtype = diagonal.dtype
    diagonal = jnp.where(jnp.isfinite(diagonal), jnp.maximum(diagonal, 0.0), 0.0)
    noise = (4 + block**0.5) * jnp.finfo(dtype).eps * jnp.max(diagonal)
    floor = SIGNAL * noise

    def more(carry):
        _, _, d, rank, _, growing = carry
        return growing & (rank < max_rank) & jnp.any(d > floor) & (jnp.sum(d) >= tol)

    def one_round(carry):
        F, pivots, d, rank, key, _ = carry
        key, subkey = jax.random.split(key)
        weights = jnp.where(d > floor, d, 0.0)
        S, drawn = _draw(subkey, weights, block, max_rank - rank)
        C = jnp.where(drawn, columns(S) - matmul(F, F[S, :].T), 0.0)
        new, useful = _eliminate(C, S, drawn, noise)
        order = jnp.argsort(~useful, stable=True)
        new, useful, S = new[:, order], useful[order], S[order]
        d = jnp.maximum(d - jnp.sum(new**2, axis=1), 0.0)
        d = d.at[jnp.where(useful, S, p)].set(0.0, mode="drop")
        F = jax.lax.dynamic_update_slice(F, new, (jnp.zeros_like(rank), rank))
        pivots = jax.lax.dynamic_update_slice(pivots, jnp.where(useful, S, -1), (rank,))
        added = jnp.sum(useful, dtype=rank.dtype)
        return F, pivots, d, rank + added, key, added > 0

    # One block wider than the result, so that the last round's write never slides back over earlier columns.
    F = jnp.zeros((p, max_rank + block), dtype)
    pivots = jnp.full(max_rank + block, -1, jnp.int32)
    start = (F, pivots, diagonal, jnp.asarray(0, jnp.int32), key, jnp.asarray(True))
    F, pivots, d, rank, _, _ = jax.lax.while_loop(more, one_round, start)
    return PivotedCholesky(F[:, :max_rank], pivots[:max_rank], rank, jnp.sum(d))


def _draw(key, weights, block: int, capacity):
    """`block` independent indices, distinct ones first, and which to use: no repeats, at most `capacity`."""
    share = weights / jnp.max(weights)  # of which the logarithm has no units: a scaled matrix has the same pivots
    logits = jnp.where(weights > 0, jnp.log(jnp.where(weights > 0, share, 1.0)), -jnp.inf)
    S = jax.random.categorical(key, logits, shape=(block,)).astype(jnp.int32)
    repeated = jnp.any(jnp.tril(S[:, None] == S[None, :], -1), axis=1)
    order = jnp.argsort(repeated, stable=True)
    S = S[order]
    return S, ~repeated[order] & (jnp.arange(block) < capacity) & (weights[S] > 0)


def _eliminate(C, S, drawn, noise):
    """Columns C L⁻ᵀ with L Lᵀ = H + sI, H = C[S, :], s the noise, and which of their pivots are no noise.

    Row j of L⁻¹ is v/L_jj with v the combination of pivots that eliminates those before j, and
    L_jj² = vᵀHv + s‖v‖²: residual and noise of the pivot.
    """
    H = C[S, :]
    if C.shape[1] == 1:
        useful = drawn & (H[0] > SIGNAL * noise)
        return jnp.where(useful, C / jnp.sqrt(jnp.where(useful, H[0], 1.0)), 0.0), useful
    eye = jnp.eye(C.shape[1], dtype=C.dtype)
    H = jnp.where(drawn & drawn[:, None], (H + H.T) / 2, 0.0) + jnp.where(drawn, 0.0, 1.0) * eye
    L, shift = safe_cholesky(H, noise)
    inverse = jax.lax.linalg.triangular_solve(L, eye, left_side=True, lower=True)
    noise_share = shift * jnp.sum(inverse**2, axis=1)
    useful = drawn & (noise_share * (1 + SIGNAL) < 1)
    return jnp.where(useful, solve_right(C, L), 0.0), useful
