"""Solves with a Cholesky factor, alone and for several problems that step together (`jax.vmap`).

A GPU's library substitutes with several factors at once slowly, 1.7 ms for ten of order 941 on an H200: it has no
parallelism but that of the batch. Products with their inverses take 0.4 ms, those of finding the inverses among them
(`products.inverse_by_blocks`). The factors themselves are the library's: 1.7 ms there, and 2.3 by column blocks whose
updates are products.
"""

import jax
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

from natgrad.backend import tuning
from natgrad.backend.products import inverse_by_blocks


def by_substitution(L: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """(L Lᵀ)⁻¹ b as JAX has it."""
    return jax.scipy.linalg.cho_solve((L, True), b)


def by_inverse(L: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """(L Lᵀ)⁻¹ b by the inverse of L, which several solves with one factor share."""
    X = inverse_by_blocks(L)
    return (X @ b) @ X


@custom_vmap
def cholesky_solve(L: Float[Array, "m m"], b: Float[Array, " m"]) -> Float[Array, " m"]:
    """(L Lᵀ)⁻¹ b."""
    return by_substitution(L, b)


@cholesky_solve.def_vmap
def _several(size: int, batched: list[bool], L: Array, b: Array) -> tuple[Array, bool]:
    axes = tuple(0 if one else None for one in batched)
    return jax.vmap(by_inverse if tuning.SOLVES_BY_INVERSE.here() else by_substitution, in_axes=axes)(L, b), True
