"""Cholesky factors that do not fail, and orthonormal bases built from them.

`safe_cholesky` factors A + sI = L Lᵀ for a symmetric A that is positive semidefinite only up to round-off:
where the factorization breaks down, s grows until it does not. The shift in use is returned, so that the
caller can account for it (the Nyström approximation subtracts it again).

`orthonormalize` writes a tall B as QR by repeated Gram passes. One pass scales the columns of Q to length
one, forms the m×m Gram matrix QᵀQ and replaces Q by Q L⁻ᵀ (CholeskyQR) where its Cholesky factor is
trustworthy, and by Q V max(D, floor)^(-1/2) with QᵀQ = V D Vᵀ where it is not. Every pass leaves the product
QR unchanged up to round-off; passes go on while QᵀQ differs from the identity, one for a well-conditioned B,
two to four for a singular one. All work of size p is in matrix products and triangular solves, none in
Householder reflections.

Assumed: A symmetric; B with p ≥ m or fewer than p independent columns. Non-finite input gives non-finite
output.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.backend.products import gram, matmul, triangular_inverse


def solve_right(Y: Float[Array, "p m"], L: Float[Array, "m m"]) -> Float[Array, "p m"]:
    """Y L⁻ᵀ for a lower triangular L."""
    return jax.lax.linalg.triangular_solve(L, Y, left_side=False, lower=True, transpose_a=True)


def whiten(
    A: Float[Array, "m m"], noise: float = 0.0
) -> tuple[Float[Array, "m m"], Float[Array, "m m"], Float[Array, " m"]]:
    """(R, R⁻ᵀ, left) with A = RᵀR, R upper triangular, by the Cholesky factorization of A scaled to a unit diagonal.

    Where A = DBD with D graded over many decades and B well conditioned, small entries come out to as many digits as
    large ones; B is shifted at its round-off. Zero rows and columns of A give zeros, and so do rows of R⁻ᵀ whose pivot
    in B is below `noise` times the shift: what is left there of a column, less those before it, is round-off. `left` is
    what the shift has left of the diagonal of R⁻ᵀAR⁻¹ in the others, of 1.
    """
    scale = jnp.sqrt(jnp.maximum(jnp.diagonal(A), 0.0))
    live = scale > 0
    inverse = jnp.where(live, 1 / jnp.where(live, scale, 1.0), 0.0)
    unit = A * inverse * inverse[:, None]
    unit = (unit + unit.T) / 2 + jnp.diag(jnp.where(live, 0.0, 1.0).astype(A.dtype))
    L, shift = safe_cholesky(unit, A.shape[0] ** 0.5 * jnp.finfo(A.dtype).eps, growth=3.0)
    signal = jnp.diagonal(L) ** 2 >= noise * shift
    rows = jnp.where(signal[:, None], triangular_inverse(L), 0.0)
    return L.T * scale, rows * inverse, 1 - shift * jnp.sum(rows**2, axis=1)


def safe_cholesky(
    A: Float[Array, "m m"],
    shift: float | Float[Array, ""] = 0.0,
    *,
    metric: Float[Array, "m m"] | None = None,
    growth: float = 10.0,
    tries: int = 24,
) -> tuple[Float[Array, "m m"], Float[Array, ""]]:
    """Lower Cholesky factor of A + sI and the s used, the smallest of shift, growth·shift, … that factors.

    With a positive definite `metric` M it is A + sM that is factored. A shift of zero grows from eps·max|A| (eps for
    the zero matrix). A with a non-finite entry gives a factor of NaN at once, with no further tries.
    """
    eye = jnp.eye(A.shape[0], dtype=A.dtype) if metric is None else metric
    scale = jnp.max(jnp.abs(A))
    smallest = jnp.finfo(A.dtype).eps * jnp.where(scale > 0, scale, 1.0)

    def failed(carry):
        _, ok, _, n = carry
        return ~ok & (n <= tries) & ((n == 0) | jnp.isfinite(scale))

    def factor(carry):  # the first one in the loop, too: XLA compiles it once
        _, _, s, n = carry
        s = jnp.where(n == 0, s, jnp.maximum(growth * s, smallest))
        L = jax.lax.linalg.cholesky(A + s * eye, symmetrize_input=False)
        pivots = jnp.diagonal(L)
        return L, jnp.all(jnp.isfinite(pivots) & (pivots > 0)), s, n + 1

    start = jnp.zeros_like(A), jnp.asarray(False), jnp.asarray(shift, A.dtype), jnp.asarray(0)
    L, _, used, _ = jax.lax.while_loop(failed, factor, start)
    return L, used


def orthonormalize(B: Float[Array, "p m"], *, passes: int = 6) -> tuple[Float[Array, "p m"], Float[Array, "m m"]]:
    """Thin factorization B = QR with orthonormal columns of Q, by adaptive CholeskyQR (module header).

    Directions of B below round-off, zero columns among them, become zero columns of Q. R is triangular unless
    B is numerically singular. `passes` bounds the number of passes.
    """
    m = B.shape[1]
    eps = jnp.finfo(B.dtype).eps
    trusted, floor = 1e3 * eps, 1e2 * eps
    # What remains in Q of a direction that B has only as round-off, after division by √floor.
    noise = 8 * m**0.5 * eps / floor**0.5

    def by_cholesky(Q, R, G, norms, L):
        return solve_right(Q, L), matmul(L.T, norms[:, None] * R)

    def by_eigh(Q, R, G, norms, L):
        D, V = jnp.linalg.eigh(G)
        E = jnp.sqrt(jnp.maximum(D, floor))
        Q = matmul(Q, V / E)
        Q = jnp.where((floor >= D) & (jnp.sum(Q**2, axis=0) < noise**2), 0.0, Q)
        return Q, matmul(E[:, None] * V.T, norms[:, None] * R)

    def unfinished(carry):
        _, _, G, n = carry
        defect = G - jnp.diag((jnp.diagonal(G) > 0).astype(G.dtype))
        return (jnp.max(jnp.abs(defect), initial=0.0) > 50 * eps) & (n < passes)

    def one_pass(carry):
        Q, R, G, n = carry
        norms = jnp.sqrt(jnp.diagonal(G))
        inverse = jnp.where(norms > 0, 1 / jnp.where(norms > 0, norms, 1.0), 0.0)
        Q, G = Q * inverse, G * inverse * inverse[:, None]
        L = jnp.linalg.cholesky(G + jnp.diag((norms == 0).astype(G.dtype)))
        fine = jnp.min(jnp.diagonal(L), initial=1.0) ** 2 > trusted  # false for a factor of NaN
        Q, R = jax.lax.cond(fine, by_cholesky, by_eigh, Q, R, G, norms, L)
        return Q, R, gram(Q), n + 1

    Q, R, _, _ = jax.lax.while_loop(unfinished, one_pass, (B, jnp.eye(m, dtype=B.dtype), gram(B), 0))
    return Q, R
