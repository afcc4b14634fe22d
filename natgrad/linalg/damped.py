"""Damped least squares from the rows themselves: x = argmin ‖Ax − b‖² + μ‖x‖² for a μ far below eps·λ₁.

    [ A   ]   [ Q₁ ]
    [ √μ I ] = [ Q₂ ] R,        x = R⁻¹ Q₁ᵀ b

The rows are never multiplied with each other: products AᵀA lose what lies below eps·λ₁, a Householder QR of A only what
lies below eps²·λ₁. With √μ I below A, R is regular whatever the rank and the shape of A.

Where rows are spread over devices (`exchange`), each factors its own, and the triangles are factored once more together
(TSQR, Demmel et al., 2012). A device that has fewer rows than columns gives them as they are.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


class RowExchange(NamedTuple):
    """How devices that have some rows each put them together; by default one device has all rows.

    `gather` stacks what the devices have, `own_rows` gives back this device's part of so many rows, `total` adds up.
    """

    gather: Callable[[Array], Array] = lambda x: x
    own_rows: Callable[[Array, int], Array] = lambda x, rows: x[:rows]
    total: Callable[[Array], Array] = lambda x: x


class DampedRows(NamedTuple):
    """The factors: of this device's rows Q₁ = `left` `middle` (the identity where it is None), and R = `triangle`."""

    left: Float[Array, "q k"]
    middle: Float[Array, "k p"] | None
    triangle: Float[Array, "p p"]
    exchange: RowExchange

    def solve(self, b: Float[Array, " q"]) -> Float[Array, " p"]:
        """argmin ‖Ax − b‖² + μ‖x‖²."""
        c = b @ self.left
        c = self.exchange.total(c if self.middle is None else c @ self.middle)
        return jax.scipy.linalg.solve_triangular(self.triangle, c, lower=False)


def damped_rows(A: Float[Array, "q p"], mu: Float[Array, ""], exchange: RowExchange | None = None) -> DampedRows:
    """The factorization of A (q, p) with damping μ > 0; with `exchange`, of the rows of all devices."""
    p = A.shape[1]
    below = jnp.sqrt(mu) * jnp.eye(p, dtype=A.dtype)
    if exchange is None:
        Q, R = jnp.linalg.qr(jnp.concatenate([A, below]))
        return DampedRows(Q[: A.shape[0]], None, R, RowExchange())
    left, T = jnp.linalg.qr(A)
    triangles = exchange.gather(T)
    Q, R = jnp.linalg.qr(jnp.concatenate([triangles, below]))
    return DampedRows(left, exchange.own_rows(Q[: triangles.shape[0]], T.shape[0]), R, exchange)
