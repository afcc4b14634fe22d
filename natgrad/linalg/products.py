"""Large products with a tall matrix A (q × p): AᵀA, its diagonal, AᵀAv, BᵀA, A Bᵀ, at the speed of the machine's BLAS.

On a CPU, XLA is as fast as BLAS for row-major operands, but it folds transpositions into its products and is then two
to three times slower: the small operand is transposed first, behind a barrier that keeps it apart. And it does not know
that AᵀA is symmetric: above `LARGE` flops that one is NumPy's. On every other platform all are XLA's own.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from natgrad.parallel import inside

LARGE = 2e9  # flops; below, a call into NumPy costs more than it saves
PIECE = 2**23  # numbers that such a call is given at a time: it copies them
BLOCK = 6_000_000  # bytes of rows that a CPU's cache keeps between two products with them …
FEWEST = 64  # … if it has at least so many of them

matmul = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def gram(A: Float[Array, "q p"]) -> Float[Array, "p p"]:
    """AᵀA."""
    q, p = A.shape
    if q * p * p < LARGE or jax.default_backend() != "cpu" or inside():
        return matmul(A.T, A)

    def syrk(A: Array) -> np.ndarray:
        rows = np.asarray(A)
        return rows.T @ rows  # NumPy sees the symmetry

    def part(A: Array) -> Array:
        return jax.pure_callback(syrk, jax.ShapeDtypeStruct((p, p), A.dtype), A, vmap_method="sequential")

    rows = max(p, PIECE // p)
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
    most = BLOCK // (p * A.dtype.itemsize)
    if jax.default_backend() != "cpu" or most < FEWEST or A.nbytes < 10 * BLOCK:
        return (A @ v) @ A
    rounds = -(-q // most)
    size = -(-q // rounds)

    def add(k: Array, total: Array) -> Array:
        first = jnp.minimum(k * size, q - size)  # the last rows begin sooner, …
        rows = jax.lax.dynamic_slice_in_dim(A, first, size)
        values = jnp.where(first + jnp.arange(size) >= k * size, rows @ v, 0.0)  # … and count once
        return total + values @ rows

    return jax.lax.fori_loop(0, rounds, add, jnp.zeros_like(A[0]))


def row_gram(A: Float[Array, "q p"], B: Float[Array, "m p"]) -> Float[Array, "q m"]:
    """A Bᵀ, where q and m are small beside p."""
    if A.shape[0] * B.shape[0] * A.shape[1] < LARGE or jax.default_backend() != "cpu" or inside():
        return matmul(A, B.T)
    product = lambda A, B: np.asarray(A) @ np.asarray(B).T  # BLAS reads B as it lies
    out = jax.ShapeDtypeStruct((A.shape[0], B.shape[0]), A.dtype)
    return jax.pure_callback(product, out, A, B, vmap_method="sequential")


def cross(A: Float[Array, "q p"], B: Float[Array, "q m"]) -> Float[Array, "m p"]:
    """BᵀA, the transpose of AᵀB, without a transposed copy of A."""
    return _apart(matmul(transposed(B), A))


def transposed(B: Float[Array, "q m"]) -> Float[Array, "m q"]:
    """Bᵀ, on a CPU as a copy."""
    return _apart(_apart(B).T)


def gram_diagonal(A: Float[Array, "q p"]) -> Float[Array, " p"]:
    """diag AᵀA: the sums of squares of the columns (row by row on a CPU, which XLA's own reduction is not)."""
    if jax.default_backend() != "cpu":
        return jnp.sum(A**2, axis=0)
    return jax.lax.scan(lambda total, row: (total + row * row, None), jnp.zeros_like(A[0]), A)[0]


def _apart(x: Array) -> Array:
    return jax.lax.optimization_barrier(x) if jax.default_backend() == "cpu" else x
