"""Inverses of (low rank + multiple of the identity), as preconditioners for G + μI (paper, section 4.2).

    P⁻¹ = U (Λ + μ)⁻¹ Uᵀ + (I − UUᵀ) / tail.

The Nyström preconditioner has tail = λ_ℓ + μ (eq. nystrom_inverse), the one of RPCholesky tail = μ (eq.
rpchol_svdprecond). For RPCholesky there is also Woodbury's form with FᵀF + μI = RᵀR (eq. rpchol_precond),

    P⁻¹ = (I − W Wᵀ) / μ,     W = F R⁻¹,

which needs no eigenvectors, but works with FᵀF, whose round-off eps·λ₁ is not far below μ. (The paper's
algorithm box has μ⁻² for the second μ⁻¹ of its equation; the equation is right.)

Products are written v @ U for Uᵀv, which XLA on CPUs runs without a transposed copy of U.
Assumed: μ ≥ 0. Where λ + μ vanishes, eps·λ₁ stands in for it, and 1 where that vanishes too.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.backend.products import gram
from natgrad.linalg.cholesky import safe_cholesky, solve_right
from natgrad.linalg.nystrom import LowRank, from_factor
from natgrad.linalg.rpcholesky import PivotedCholesky

Scalar = float | Float[Array, ""]


class LowRankInverse(eqx.Module):
    """v ↦ U (Λ + μ)⁻¹ Uᵀ v + (v − UUᵀv) / tail, for a vector or a matrix of columns v."""

    U: Float[Array, "p m"]
    eigenvalues: Float[Array, " m"]
    mu: Float[Array, ""]
    tail: Float[Array, ""]

    def __call__(self, v: Float[Array, "p *k"]) -> Float[Array, "p *k"]:
        """P⁻¹v."""
        shifted = self.eigenvalues + self.mu
        weight = 1 / jnp.where(shifted > 0, shifted, self.tail) - 1 / self.tail
        return v / self.tail + _apply(self.U, weight, v)


class WoodburyInverse(eqx.Module):
    """v ↦ (v − W Wᵀv) / μ, for a vector or a matrix of columns v."""

    W: Float[Array, "p m"]
    mu: Float[Array, ""]

    def __call__(self, v: Float[Array, "p *k"]) -> Float[Array, "p *k"]:
        """P⁻¹v."""
        return (v - _apply(self.W, jnp.ones_like(self.W[0]), v)) / self.mu


def nystrom_preconditioner(lowrank: LowRank, mu: Scalar) -> LowRankInverse:
    """Preconditioner of G + μI from a Nyström approximation of G (eq. nystrom_inverse); v/μ at rank zero."""
    used = jnp.arange(lowrank.eigenvalues.shape[0]) < lowrank.rank
    smallest = jnp.min(jnp.where(used, lowrank.eigenvalues, jnp.inf), initial=jnp.inf)
    return _lowrank(lowrank, mu, jnp.where(lowrank.rank > 0, smallest, 0.0))


def rpcholesky_preconditioner(
    factor: PivotedCholesky | Float[Array, "p m"], mu: Scalar, *, method: str = "eigh"
) -> LowRankInverse | WoodburyInverse:
    """Inverse of F Fᵀ + μI (eqs. rpchol_svdprecond and rpchol_precond).

    "eigh" and "svd" give the same eigendecomposition of F Fᵀ, the first without an SVD of size p; "woodbury"
    is the cheapest. Where Woodbury's Cholesky fails, μ grows until it does not, and the grown one is used
    throughout.
    """
    F = factor.F if isinstance(factor, PivotedCholesky) else factor
    if method == "eigh":
        return _lowrank(from_factor(F), mu, 0.0)
    if method == "svd":
        U, sigma, _ = jnp.linalg.svd(F, full_matrices=False)
        U = jnp.where(sigma > 0, U, 0.0)
        return _lowrank(LowRank(U, sigma**2, jnp.asarray(sigma.shape[0], jnp.int32)), mu, 0.0)
    if method == "woodbury":
        L, used = safe_cholesky(gram(F), mu)
        return WoodburyInverse(solve_right(F, L), used)
    raise ValueError(f'method is "eigh", "svd" or "woodbury", not {method!r}')


def _lowrank(lowrank: LowRank, mu: Scalar, smallest: Scalar) -> LowRankInverse:
    dtype = lowrank.eigenvalues.dtype
    tail = smallest + jnp.asarray(mu, dtype)
    spare = jnp.finfo(dtype).eps * jnp.max(lowrank.eigenvalues, initial=0.0)
    tail = jnp.where(tail > 0, tail, jnp.where(spare > 0, spare, 1.0))
    return LowRankInverse(lowrank.U, lowrank.eigenvalues, jnp.asarray(mu, dtype), tail)


def _apply(U, weight, v):
    """U diag(weight) Uᵀ v without a transposed copy of U."""
    if v.ndim == 1:
        return U @ (weight * (v @ U))
    return U @ (weight * (v.T @ U)).T
