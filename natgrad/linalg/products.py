"""Large products with a tall matrix A (q × p): AᵀA and AᵀAV, at the speed of the machine's BLAS.

XLA's own matrix product on CPU reaches half of what NumPy's BLAS does in float64, and does not know that AᵀA is
symmetric; there, products above `LARGE` flops are handed to NumPy. On every other platform they are XLA's.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

LARGE = 2e9  # flops; below, the call costs more than it saves
SKINNY = 64  # columns; below, a product is bound by memory and XLA does as well

matmul = partial(jnp.matmul, precision=jax.lax.Precision.HIGHEST)


def gram(A: Float[Array, "q p"]) -> Float[Array, "p p"]:
    """AᵀA."""
    q, p = A.shape
    plain = lambda A: matmul(A.T, A)
    if 2 * q * p * p < LARGE:
        return plain(A)
    return _on_cpu(lambda A: A.T @ A, plain, (p, p), A)  # NumPy sees the symmetry and calls syrk


def gram_mm(A: Float[Array, "q p"], V: Float[Array, "p m"]) -> Float[Array, "p m"]:
    """Aᵀ(AV), without a transposed copy of A."""
    q, p = A.shape
    plain = lambda A, V: matmul(matmul(A, V).T, A).T
    if 4 * q * p * V.shape[1] < LARGE:
        return plain(A, V)
    return _on_cpu(lambda A, V: ((A @ V).T @ A).T, plain, V.shape, A, V)


def cross(A: Float[Array, "q p"], B: Float[Array, "q m"]) -> Float[Array, "p m"]:
    """AᵀB, without a transposed copy of A."""
    q, p = A.shape
    plain = lambda A, B: matmul(B.T, A).T
    if 2 * q * p * B.shape[1] < LARGE or B.shape[1] < SKINNY:
        return plain(A, B)
    return _on_cpu(lambda A, B: (B.T @ A).T, plain, (p, B.shape[1]), A, B)


def _on_cpu(host, device, shape: tuple[int, ...], *arrays: Array) -> Array:
    def callback(*arrays: Array) -> Array:
        out = jax.ShapeDtypeStruct(shape, arrays[0].dtype)
        call = lambda *a: np.ascontiguousarray(host(*(np.asarray(x) for x in a)))
        return jax.pure_callback(call, out, *arrays, vmap_method="sequential")

    dtype = jnp.result_type(*arrays)
    return jax.lax.platform_dependent(*(a.astype(dtype) for a in arrays), cpu=callback, default=device)
