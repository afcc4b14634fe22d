"""Large products with a tall matrix A (q × p): AᵀA, its diagonal, AᵀAv, BᵀA, A Bᵀ, at the speed of the machine's BLAS.

On a CPU, XLA is as fast as BLAS for row-major operands, but it folds transpositions into its products and is then two
to three times slower: the small operand is transposed first, behind a barrier that keeps it apart. And it does not know
that AᵀA is symmetric: where that is large it is NumPy's. On every other platform all are XLA's own.
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
    """Aᵀ(Av); on a CPU in one pass over a large A, some rows at a time, of which the second product finds a copy in the
    cache: two thirds of the time of two passes.

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
