"""Large products with a tall matrix A (q × p), AᵀA, its diagonal, AᵀAv, BᵀA, A Bᵀ, and inverses of triangles.

On a CPU, XLA is as fast as BLAS for row-major operands, but it folds transpositions into its products and is then two
to three times slower: the small operand is transposed first, behind a barrier that keeps it apart. And it does not know
that AᵀA is symmetric: where that is large it is NumPy's. On every other platform all products are XLA's own, and the
inverse of a triangle is made of products.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from natgrad.backend import tuning
from natgrad.backend.chunks import cover, even
from natgrad.backend.parallel import inside
from natgrad.backend.xla import apart, call, on_cpu

matmul = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def gram(A: Float[Array, "q p"]) -> Float[Array, "p p"]:
    """AᵀA."""
    q, p = A.shape
    if not _by_numpy(q * p * p):
        return matmul(A.T, A)

    def syrk(A: Array) -> np.ndarray:
        rows = np.asarray(A)
        return rows.T @ rows  # NumPy sees the symmetry

    part = lambda A: call(syrk, (p, p), A.dtype, A)
    rows = max(p, tuning.NUMPY_NUMBERS // p)
    if q <= rows:
        return part(A)
    add = lambda k, total: total + part(jax.lax.dynamic_slice_in_dim(A, k * rows, rows))
    return jax.lax.fori_loop(0, q // rows, add, part(A[q // rows * rows :]))


def gram_vector(A: Float[Array, "q p"], v: Float[Array, " p"]) -> Float[Array, " p"]:
    """Aᵀ(Av); on a CPU in one pass over a large A, some rows at a time. The second product finds them in the cache: two
    thirds of the time of two passes.

    (Av)A and not Aᵀ(Av): XLA on a CPU would write the transpose of A to memory first.
    """
    q, p = A.shape
    most = tuning.CACHE_BYTES // (p * A.dtype.itemsize)
    if not on_cpu() or most < tuning.CACHE_ROWS or A.nbytes < 10 * tuning.CACHE_BYTES:
        return (A @ v) @ A
    size = even(q, most)

    def add(first: Array, repeated: Array, total: Array) -> Array:
        rows = jax.lax.dynamic_slice_in_dim(A, first, size)
        return total + jnp.where(jnp.arange(size) >= repeated, rows @ v, 0.0) @ rows

    return cover(q, size, add, jnp.zeros_like(A[0]))


def row_gram(A: Float[Array, "q p"], B: Float[Array, "m p"]) -> Float[Array, "q m"]:
    """A Bᵀ, where q and m are small beside p."""
    if not _by_numpy(A.shape[0] * B.shape[0] * A.shape[1]):
        return matmul(A, B.T)
    product = lambda A, B: np.asarray(A) @ np.asarray(B).T  # BLAS reads B as it lies
    return call(product, (A.shape[0], B.shape[0]), A.dtype, A, B)


def cross(A: Float[Array, "q p"], B: Float[Array, "q m"]) -> Float[Array, "m p"]:
    """BᵀA, the transpose of AᵀB, without a transposed copy of A."""
    return apart(matmul(transposed(B), A))


def transposed(B: Float[Array, "q m"]) -> Float[Array, "m q"]:
    """Bᵀ, on a CPU as a copy."""
    return apart(apart(B).T)


def gram_diagonal(A: Float[Array, "q p"]) -> Float[Array, " p"]:
    """diag AᵀA: the sums of squares of the columns (row by row on a CPU, which XLA's own reduction is not)."""
    if not on_cpu():
        return jnp.sum(A**2, axis=0)
    return jax.lax.scan(lambda total, row: (total + row * row, None), jnp.zeros_like(A[0]), A)[0]


def _by_numpy(flops: int) -> bool:
    """Whether a product is worth a call into NumPy, which one device alone makes."""
    return on_cpu() and flops >= tuning.NUMPY_FLOPS and not inside()


def triangular_inverse(L: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """L⁻¹. On a GPU a product with it is several times faster than a triangular solve, and here as accurate."""
    return inverse_by_blocks(L) if tuning.TRIANGLES_BY_BLOCKS.here() else _substitute(L)


def inverse_by_blocks(L: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """L⁻¹ from the inverses of blocks on the diagonal, in pairs: [A 0; B C]⁻¹ = [A⁻¹ 0; −C⁻¹BA⁻¹ C⁻¹].

    Substitution is a chain of m steps; here all blocks take theirs together, and the rest is matrix products. (On a CPU
    it gains nothing, and substitution in several blocks at a time next to other work can hang: jaxlib 0.10.2 with two
    threads.)
    """
    m, full = L.shape[0], tuning.TRIANGLE_ROWS
    while full < m:
        full *= 2
    L = jnp.pad(L, (0, full - m)) + jnp.diag((jnp.arange(full) >= m).astype(L.dtype))

    def blocks(size: int, below: int) -> Float[Array, "k s s"]:
        """Those on the diagonal (0), or below every second of them (1)."""
        columns = jnp.arange(0, full // size, 1 + below)
        return L.reshape(full // size, size, full // size, size)[columns + below, :, columns]

    X = _substitute(blocks(tuning.TRIANGLE_ROWS, 0))
    while (size := X.shape[1]) < full:
        A, C = X[0::2], X[1::2]
        B = -matmul(C, matmul(blocks(size, 1), A))
        X = jnp.concatenate([jnp.pad(A, ((0, 0), (0, 0), (0, size))), jnp.concatenate([B, C], axis=2)], axis=1)
    return X[0, :m, :m]


def _substitute(L: Float[Array, "*k m m"]) -> Float[Array, "*k m m"]:
    """L⁻¹ by forward substitution."""
    eye = jnp.broadcast_to(jnp.eye(L.shape[-1], dtype=L.dtype), L.shape)
    return jax.lax.linalg.triangular_solve(L, eye, left_side=True, lower=True)
