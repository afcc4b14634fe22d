"""The row factor: Ĝ = FᵀF, the Nyström approximation of G = AᵀA, by way of the rows of A, and the inverse of Ĝ + μI.

With a test matrix Ω, C = AΩ and CᵀC = RᵀR, it is F = R⁻ᵀCᵀA (`nystrom_factor`): GΩ itself, whose round-off eps·λ₁ is
the same in all directions, is never formed, and there are no eigenvectors. With F = RᵀV and H = RRᵀ, Ĝ is VᵀHV
(`orthogonal_factor`), and

    P⁻¹ = Vᵀ(H + μI)⁻¹V + (I − VᵀV)/(λ_m + μ)          (`factor_preconditioner`)

with λ_m the smallest eigenvalue of H: what it says about the rest. All of it is products and Cholesky factorizations.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.backend import tuning
from natgrad.backend.products import matmul
from natgrad.backend.xla import jointly
from natgrad.linalg.cholesky import whiten

Scalar = float | Float[Array, ""]


class Sums(NamedTuple):
    """How sums are made over columns of which several devices have some each, by what knows of devices."""

    total: Callable[[Array], Array]  # what all of them have together
    not_before: Callable[[Array, Array], Array]  # its first argument, not before the second is known
    several: bool  # then sums come one at a time, and none in a branch


ALONE = Sums(lambda K: K, lambda E, known: E, several=False)
NOISE = 6.0  # times the round-off: pivots below are noise, and as many iterations are lost with 3 as with 20


def nystrom_factor(
    C: Float[Array, "m q"],
    D: Float[Array, "m q"],
    times: Callable[[Array], Array],
    sums: Sums = ALONE,
) -> Float[Array, "m p"]:
    """F = R⁻ᵀDA for CDᵀ = RᵀR and `times(E)` = EA; zeros where CDᵀ has no more than round-off.

    In E = R⁻ᵀD, from one Cholesky factorization, the rows of directions near its shift are too short, by up to a
    thousand times, and not orthogonal: a preconditioner made of them takes two to five times the iterations. Where a
    row has lost half of its square, a second factorization, of what R⁻ᵀCEᵀ is in place of the identity, mends that, if
    its flops are few beside the iterations (`_worth_mending`). Where each device has some of the columns of C and D, so
    has it of E; several devices mend always.
    """
    _, first, left = whiten(sums.total(matmul(C, D.T)), NOISE)
    E = matmul(first, D)
    identity = lambda: sums.total(matmul(E if C is D else matmul(first, C), E.T))
    if sums.several:
        found = identity()
        return matmul(whiten(found)[1], times(sums.not_before(E, found[0, 0])))
    F = times(E)
    if not _worth_mending(F.shape[0], E.shape[1], F.shape[1]):
        return F
    return jax.lax.cond(jointly(jnp.min(left) < 0.5), lambda: matmul(whiten(identity())[1], F), lambda: F)


def _worth_mending(m: int, q: int, p: int) -> bool:
    """Whether 2m²(p + q) flops take no longer than some iterations' passes over A."""
    return m**2 * (p + q) <= tuning.MENDING.here() * p * q


class FactorInverse(eqx.Module):
    """v ↦ VᵀZ V v + (I − VᵀV)v / tail, with orthonormal rows of V."""

    V: Float[Array, "m p"]
    Z: Float[Array, "m m"]
    tail: Float[Array, ""]

    def __call__(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        """P⁻¹v."""
        inside = self.V @ v
        outside = v - inside @ self.V
        left = self.V @ outside  # once more: the tail may be below the round-off of v
        return (self.Z @ inside - left / self.tail) @ self.V + outside / self.tail


def orthogonal_factor(F: Float[Array, "m p"]) -> tuple[Float[Array, "m p"], Float[Array, "m m"], Float[Array, ""]]:
    """V, H and λ₁(H) with FᵀF = VᵀHV, orthonormal rows of V: F = RᵀV, H = RRᵀ; by one Cholesky factorization.

    The rows of a Nyström factor made by way of A (`Gramian.factor`) fall off like the singular values of A, and
    products and factorizations keep the digits of the small ones: H is good far below eps·λ₁.
    """
    R, inverse, _ = whiten(matmul(F, F.T))
    H = matmul(R, R.T)
    start = jnp.ones(H.shape[0], H.dtype)
    return matmul(inverse, F), H, _dominant(lambda x: H @ x, H @ start, 8)


def factor_preconditioner(V: Float[Array, "m p"], H: Float[Array, "m m"], mu: Scalar) -> FactorInverse:
    """P⁻¹ = Vᵀ(H + μI)⁻¹V + (I − VᵀV)/(λ_m + μ), λ_m the smallest eigenvalue of H: what it says about the rest."""
    eye = jnp.eye(H.shape[0], dtype=H.dtype)
    _, X, _ = whiten(H + mu * eye)
    tail = 1 / _dominant(lambda x: (X @ x) @ X, eye.sum(axis=0), 4)
    return FactorInverse(V, matmul(X.T, X), tail)


def _dominant(product: Callable[[Array], Array], x: Array, iterations: int) -> Array:
    """The largest eigenvalue, from below."""

    def one(_, carry):
        x, size = carry
        x = product(x / jnp.where(size > 0, size, 1.0))
        return x, jnp.linalg.norm(x)

    return jax.lax.fori_loop(0, iterations, one, (x, jnp.linalg.norm(x)), unroll=tuning.WRITTEN_OUT.here())[1]
