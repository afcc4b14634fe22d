"""Damped least squares from the rows themselves: x = argmin ‖Ax − b‖² + μ‖x‖² for a μ far below eps·λ₁.

    [ A    ]   [ Q₁ ]
    [ √μ I ] = [ Q₂ ] R,        x = R⁻¹ Q₁ᵀ b

A solution by AᵀA + μI loses what lies below eps·λ₁, one by Q and R only what lies below eps²·λ₁. With √μ I below A, R
is regular whatever the rank and the shape of A. There are two ways to the factors.

Householder reflections, on one processor: LAPACK's.

Grams (shifted CholeskyQR, Fukaya et al., 2020), on other devices and on several of them. From Q = [A; √μ I] and R = I,
three times

    S = QᵀQ,      S + sI = LLᵀ,      Q ← Q L⁻ᵀ,      R ← LᵀR

with s at the round-off of S. Here, too, products of rows are round-off below eps·λ₁, but they only choose the basis: QR
is the matrix itself up to round-off, whatever L is. A pass brings the condition of Q from κ to about κ√eps, so that
three of them make Q orthonormal for κ up to 1/eps. All of it is matrix products, Cholesky factorizations and triangular
solves, and the only sum over rows is that in S. (An H200 multiplies matrices at 56 TFLOP/s, and reflects 8641×500 at
1.3.)
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.backend import tuning
from natgrad.backend.products import gram, matmul, triangular_inverse
from natgrad.linalg.cholesky import solve_right, whiten

PASSES = 3


class DampedRows(NamedTuple):
    """The factors: this device's rows of Q₁, R, and R⁻¹ where products are faster than substitution."""

    orthogonal: Float[Array, "q p"]
    triangle: Float[Array, "p p"]
    inverse: Float[Array, "p p"] | None
    total: Callable[[Array], Array]

    def solve(self, b: Float[Array, " q"]) -> Float[Array, " p"]:
        """argmin ‖Ax − b‖² + μ‖x‖²."""
        c = self.total(b @ self.orthogonal)
        if self.inverse is None:
            return jax.scipy.linalg.solve_triangular(self.triangle, c, lower=False)
        x = self.inverse @ c
        return x + self.inverse @ (c - self.triangle @ x)  # once more: as accurate as substitution


def damped_rows(
    A: Float[Array, "q p"], mu: Float[Array, ""], total: Callable[[Array], Array] | None = None
) -> DampedRows:
    """The factorization of A (q, p) with damping μ > 0; of the rows of all devices, with `total` their sum."""
    if total is None and tuning.REFLECTIONS.here():
        return by_reflections(A, mu)
    return by_grams(A, mu, total)


def by_reflections(A: Float[Array, "q p"], mu: Float[Array, ""]) -> DampedRows:
    """The factor by Householder reflections."""
    Q, R = jnp.linalg.qr(jnp.concatenate([A, _below(A, mu)]))
    return DampedRows(Q[: A.shape[0]], R, None, lambda x: x)


def by_grams(A: Float[Array, "q p"], mu: Float[Array, ""], total: Callable[[Array], Array] | None = None) -> DampedRows:
    """The factor by shifted CholeskyQR."""
    total = total or (lambda x: x)

    def one(_, factors: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        upper, lower, R = factors
        factor, _, _ = whiten(total(gram(upper)) + gram(lower))
        return solve_right(upper, factor.T), solve_right(lower, factor.T), matmul(factor, R)

    start = A, _below(A, mu), jnp.eye(A.shape[1], dtype=A.dtype)
    Q, _, R = jax.lax.fori_loop(0, PASSES, one, start)
    inverse = triangular_inverse(R.T).T if tuning.TRIANGLES_BY_BLOCKS.here() else None
    return DampedRows(Q, R, inverse, total)


def _below(A: Array, mu: Array) -> Float[Array, "p p"]:
    """√μ I."""
    return jnp.sqrt(mu) * jnp.eye(A.shape[1], dtype=A.dtype)
