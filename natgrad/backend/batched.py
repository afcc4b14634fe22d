"""Cholesky factors and solves of one matrix, or of several at once, as in steps of several problems (`jax.vmap`).

A GPU's libraries factor one matrix of order 1,000 in a millisecond, and ten of them at once in ten: what they have for
batches is made for orders below 100. Here a batch goes column block by column block, and all but the blocks on the
diagonal is products of matrices:

    C = A[:, J] − L L[J, :]ᵀ,      C[J] = L[J, J] L[J, J]ᵀ,      L[i, J] = C[i] L[J, J]⁻ᵀ  for the rows i below

On a processor, and for one matrix, both are LAPACK's.
"""

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from natgrad.backend import tuning
from natgrad.backend.products import inverse_by_blocks, matmul


def by_library(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The factor as JAX has it."""
    return jax.lax.linalg.cholesky(A, symmetrize_input=False)


@custom_vmap
def cholesky(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The lower factor of A, of which the lower triangle is read; NaN where A is not positive definite."""
    return by_library(A)


@cholesky.def_vmap
def _factors(size: int, batched: list[bool], A: Array) -> tuple[Array, bool]:
    return jax.vmap(by_blocks if _large(A) else by_library)(A), True


def by_blocks(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """The factor by columns of blocks."""
    m, size = A.shape[0], tuning.BATCH_COLUMNS
    full = -(-m // size) * size
    A = jnp.pad(A, (0, full - m)) + jnp.diag((jnp.arange(full) >= m).astype(A.dtype))

    def column(k: Array, L: Array) -> Array:
        rows = jax.lax.dynamic_slice(L, (k * size, 0), (size, full))
        C = jax.lax.dynamic_slice(A, (0, k * size), (full, size)) - matmul(L, rows.T)
        D = by_library(jax.lax.dynamic_slice(C, (k * size, 0), (size, size)))
        below = jnp.where((jnp.arange(full) >= (k + 1) * size)[:, None], matmul(C, inverse_by_blocks(D).T), 0.0)
        return jax.lax.dynamic_update_slice(L, jax.lax.dynamic_update_slice(below, D, (k * size, 0)), (0, k * size))

    return jax.lax.fori_loop(0, full // size, column, jnp.zeros_like(A))[:m, :m]


def by_substitution(L: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """(L Lᵀ)⁻¹ b as JAX has it."""
    return jax.scipy.linalg.cho_solve((L, True), b)


@custom_vmap
def cholesky_solve(L: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """(L Lᵀ)⁻¹ b."""
    return by_substitution(L, b)


@cholesky_solve.def_vmap
def _solves(size: int, batched: list[bool], L: Array, b: Array) -> tuple[Array, bool]:
    axes = tuple(0 if one else None for one in batched)
    return jax.vmap(by_inverse if _large(L) else by_substitution, in_axes=axes)(L, b), True


def by_inverse(L: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """(L Lᵀ)⁻¹ b by the inverse of L, which several solves with one factor share."""
    X = inverse_by_blocks(L)
    return (X @ b) @ X


def _large(A: Array) -> bool:
    """Whether blocks pay."""
    return tuning.BATCHES_BY_BLOCKS.here() and A.shape[-1] > tuning.BATCH_COLUMNS
