"""Randomized Nyström approximation, as an eigendecomposition (paper, section 4.2.1 and appendix A.1).

    Ĝ = (GΩ) (Ωᵀ G Ω)⁺ (GΩ)ᵀ,     Ω a p×m test matrix of which the first `rank` columns are used.

It is computed for G + νI with ν at round-off, and ν is subtracted from the eigenvalues at the end: with Y = GΩ,
Yν = Y + νΩ, the Cholesky factorization ΩᵀYν = L Lᵀ and B = Yν L⁻ᵀ, the approximation is B Bᵀ. Where the factorization
fails, ν grows; as it grows in Yν too, the result stays the Nyström approximation of G + νI.

`method="svd"` orthonormalizes Ω first and goes on with the SVD of B, as the appendix does. `method="cholesky"`
(default) takes the eigenvectors V of the m×m matrix BᵀB = V D Vᵀ instead, and U = B V D^(-1/2). These are orthogonal
only up to eps·λ₁/D, which spoils the preconditioner near round-off (p×m with m above the numerical rank is the rule,
not the exception). So directions with D ≤ 10·eps·λ₁, the usual μ, become zero columns, and one pass of CholeskyQR makes
the others, by then well conditioned, orthonormal to round-off. No QR, no SVD of size p.

For G = AᵀA there is Ĝ = FᵀF by way of the rows of A, without GΩ and eigenvectors: `natgrad.linalg.row_factor`.

Widths are static, ranks may be traced: columns from `rank` on are masked, and exactly zero in the result.
Assumed: G symmetric positive semidefinite up to round-off.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from natgrad.backend.products import cross, gram, matmul
from natgrad.linalg.cholesky import orthonormalize, safe_cholesky, solve_right

Rank = int | Int[Array, ""] | None


class LowRank(eqx.Module):
    """U diag(eigenvalues) Uᵀ: orthonormal or zero columns of U, eigenvalues in descending order.

    `rank` counts the columns that were asked for. Of these some may be zero, where the matrix had no more to
    give; their eigenvalues are zero. From `rank` on all are.
    """

    U: Float[Array, "p m"]
    eigenvalues: Float[Array, " m"]
    rank: Int[Array, ""]

    def as_matrix(self) -> Float[Array, "p p"]:
        """The dense p×p matrix."""
        return matmul(self.U * self.eigenvalues, self.U.T)


def nystrom(
    mm: Callable[[Float[Array, "p m"]], Float[Array, "p m"]],
    omega: Float[Array, "p m"],
    rank: Rank = None,
    *,
    method: str = "cholesky",
) -> LowRank:
    """Nyström approximation of G = mm from the first `rank` columns of omega (paper, algorithm A.1)."""
    _check_method(method)
    p, m = omega.shape
    live = jnp.arange(m) < _as_rank(rank, m)
    omega = jnp.where(live, omega, 0.0)
    if method == "svd" or m > p:
        omega = jnp.where(live, jnp.linalg.qr(omega)[0], 0.0) if m <= p else orthonormalize(omega)[0]
    live = live & jnp.any(omega != 0, axis=0)
    Y = mm(omega)
    # The 0.1 is for columns that repeat others, and below the round-off that ν stands for.
    metric = None if method == "svd" else gram(omega) + 0.1 * jnp.eye(m, dtype=omega.dtype)
    L, shift = _factor(cross(Y, omega), Y, live, metric)
    return _decompose(Y + shift * omega, L, shift, _as_rank(rank, m), method)


def nystrom_from_columns(
    columns: Callable[[Int[Array, " m"]], Float[Array, "p m"]],
    indices: Int[Array, " m"],
    rank: Rank = None,
    *,
    method: str = "cholesky",
) -> LowRank:
    """Nyström approximation with the sampling matrix Ω = I[:, indices], so that GΩ = columns(indices).

    An index that comes twice counts once.
    """
    _check_method(method)
    (m,) = indices.shape
    repeated = jnp.any(jnp.tril(indices[:, None] == indices[None, :], -1), axis=1)
    live = (jnp.arange(m) < _as_rank(rank, m)) & ~repeated
    Y = jnp.where(live, columns(indices), 0.0)
    L, shift = _factor(Y[indices, :], Y, live)
    Y_shifted = Y.at[indices, jnp.arange(m)].add(jnp.where(live, shift, 0.0))
    return _decompose(Y_shifted, L, shift, _as_rank(rank, m), method)


def from_factor(B: Float[Array, "p m"], shift: float | Float[Array, ""] = 0.0, rank: Rank = None) -> LowRank:
    """Eigendecomposition of max(B Bᵀ − shift, 0) on the range of B, without an SVD of size p.

    Eigenvalues are accurate to eps·λ₁, eigenvectors orthonormal to round-off; those below 10·eps·λ₁ are left out.
    """
    D, V = jnp.linalg.eigh(gram(B))
    D, V = D[::-1], V[:, ::-1]
    kept = jnp.maximum(10 * jnp.finfo(B.dtype).eps * D[:1], 0.0) < D
    D = jnp.where(kept, D, 0.0)
    U = matmul(B, V * jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, D, 1.0)), 0.0))
    L, _ = safe_cholesky(gram(U) + jnp.diag(jnp.where(kept, 0.0, 1.0).astype(D.dtype)))
    # A difference at the round-off of what it is taken from (the zero matrix has D = ν) is zero.
    eigenvalues = jnp.where(D - shift > 64 * jnp.finfo(B.dtype).eps * D, D - shift, 0.0)
    return LowRank(solve_right(U, L), eigenvalues, _as_rank(rank, B.shape[1]))


def _factor(
    core: Float[Array, "m m"],
    Y: Float[Array, "p m"],
    live: Bool[Array, " m"],
    metric: Float[Array, "m m"] | None = None,
) -> tuple[Float[Array, "m m"], Float[Array, ""]]:
    """Cholesky factor of ΩᵀGΩ + νΩᵀΩ, with the identity in place of masked rows and columns, and ν."""
    core = jnp.where(live & live[:, None], (core + core.T) / 2, 0.0)
    scale = jnp.max(jnp.diagonal(core), initial=0.0)
    core = core + jnp.diag(jnp.where(live, 0.0, jnp.where(scale > 0, scale, 1.0)))
    return safe_cholesky(core, jnp.finfo(Y.dtype).eps * jnp.linalg.norm(Y), metric=metric)


def _decompose(Y: Float[Array, "p m"], L: Float[Array, "m m"], shift, rank, method: str) -> LowRank:
    B = solve_right(Y, L)
    if method == "cholesky":
        return from_factor(B, shift, rank)
    U, sigma, _ = jnp.linalg.svd(B, full_matrices=False)
    m, k = B.shape[1], sigma.shape[0]
    U, sigma = jnp.pad(U, ((0, 0), (0, m - k))), jnp.pad(sigma, (0, m - k))
    U = jnp.where((jnp.arange(m) < rank) & (sigma > 0), U, 0.0)
    return LowRank(U, _remove_shift(sigma**2, shift), rank)


def _remove_shift(eigenvalues: Float[Array, " m"], shift) -> Float[Array, " m"]:
    """max(0, λ − ν), and zero where λ is ν but for round-off: the zero matrix has no eigenvalue but zero."""
    excess = eigenvalues - shift
    return jnp.where(excess > 1e3 * jnp.finfo(eigenvalues.dtype).eps * shift, excess, 0.0)


def _as_rank(rank: Rank, m: int) -> Int[Array, ""]:
    return jnp.asarray(m if rank is None else jnp.clip(rank, 0, m), jnp.int32)


def _check_method(method: str) -> None:
    if method not in ("cholesky", "svd"):
        raise ValueError(f'method is "cholesky" or "svd", not {method!r}')
