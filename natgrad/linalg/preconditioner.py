"""Inverses of (low rank + multiple of the identity), as preconditioners for G + μI (paper, section 4.2).

    P⁻¹ = U (Λ + μ)⁻¹ Uᵀ + (I − UUᵀ) / tail.

The Nyström preconditioner has tail = λ_ℓ + μ (eq. nystrom_inverse), the one of RPCholesky tail = μ (eq.
rpchol_svdprecond). For the latter there is also Woodbury's form with FᵀF + μI = RᵀR (eq. rpchol_precond),

    P⁻¹ = (I − W Wᵀ) / μ,     W = F R⁻¹,

which needs no eigenvectors, but works with FᵀF, whose round-off eps·λ₁ is not far below μ. (The paper's
algorithm box has μ⁻² for the second μ⁻¹ of its equation; the equation is right.)

Products are written v @ U for Uᵀv, which XLA on CPUs runs without a transposed copy of U.
Assumed: μ ≥ 0. Where λ + μ vanishes, eps·λ₁ stands in for it, and 1 where that vanishes too.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.backend.products import gram, matmul
from natgrad.linalg.cholesky import safe_cholesky, solve_right, whiten
from natgrad.linalg.nystrom import LowRank, from_factor
from natgrad.linalg.rpcholesky import RPCholesky

Scalar = float | Float[Array, ""]


class LowRankPreconditioner(eqx.Module):
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


class WoodburyPreconditioner(eqx.Module):
    """v ↦ (v − W Wᵀv) / μ, for a vector or a matrix of columns v."""

    W: Float[Array, "p m"]
    mu: Float[Array, ""]

    def __call__(self, v: Float[Array, "p *k"]) -> Float[Array, "p *k"]:
        """P⁻¹v."""
        return (v - _apply(self.W, jnp.ones_like(self.W[0]), v)) / self.mu


class FactorPreconditioner(eqx.Module):
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


def factor_preconditioner(V: Float[Array, "m p"], H: Float[Array, "m m"], mu: Scalar) -> FactorPreconditioner:
    """P⁻¹ = Vᵀ(H + μI)⁻¹V + (I − VᵀV)/(λ_m + μ), λ_m the smallest eigenvalue of H: what it says about the rest."""
    eye = jnp.eye(H.shape[0], dtype=H.dtype)
    _, X, _ = whiten(H + mu * eye)
    tail = 1 / _dominant(lambda x: (X @ x) @ X, eye.sum(axis=0), 4)
    return FactorPreconditioner(V, matmul(X.T, X), tail)


def _dominant(product: Callable[[Array], Array], x: Array, iterations: int) -> Array:
    """The largest eigenvalue, from below."""
    norm = jnp.zeros((), x.dtype)
    for _ in range(iterations):
        size = jnp.linalg.norm(x)
        x = product(x / jnp.where(size > 0, size, 1.0))
        norm = jnp.linalg.norm(x)
    return norm


def nystrom_preconditioner(lowrank: LowRank, mu: Scalar) -> LowRankPreconditioner:
    """Preconditioner of G + μI from a Nyström approximation of G (eq. nystrom_inverse); v/μ at rank zero."""
    used = jnp.arange(lowrank.eigenvalues.shape[0]) < lowrank.rank
    smallest = jnp.min(jnp.where(used, lowrank.eigenvalues, jnp.inf), initial=jnp.inf)
    return _lowrank(lowrank, mu, jnp.where(lowrank.rank > 0, smallest, 0.0))


def rpcholesky_preconditioner(
    factor: RPCholesky | Float[Array, "p m"], mu: Scalar, *, method: str = "eigh"
) -> LowRankPreconditioner | WoodburyPreconditioner:
    """Inverse of F Fᵀ + μI (eqs. rpchol_svdprecond and rpchol_precond).

    "eigh" and "svd" give the same eigendecomposition of F Fᵀ, the first without an SVD of size p; "woodbury"
    is the cheapest. Where Woodbury's Cholesky fails, μ grows until it does not, and the grown one is used
    throughout.
    """
    F = factor.F if isinstance(factor, RPCholesky) else factor
    if method == "eigh":
        return _lowrank(from_factor(F), mu, 0.0)
    if method == "svd":
        U, sigma, _ = jnp.linalg.svd(F, full_matrices=False)
        U = jnp.where(sigma > 0, U, 0.0)
        return _lowrank(LowRank(U, sigma**2, jnp.asarray(sigma.shape[0], jnp.int32)), mu, 0.0)
    if method == "woodbury":
        L, used = safe_cholesky(gram(F), mu)
        return WoodburyPreconditioner(solve_right(F, L), used)
    raise ValueError(f'method is "eigh", "svd" or "woodbury", not {method!r}')


def _lowrank(lowrank: LowRank, mu: Scalar, smallest: Scalar) -> LowRankPreconditioner:
    dtype = lowrank.eigenvalues.dtype
    tail = smallest + jnp.asarray(mu, dtype)
    spare = jnp.finfo(dtype).eps * jnp.max(lowrank.eigenvalues, initial=0.0)
    tail = jnp.where(tail > 0, tail, jnp.where(spare > 0, spare, 1.0))
    return LowRankPreconditioner(lowrank.U, lowrank.eigenvalues, jnp.asarray(mu, dtype), tail)


def _apply(U, weight, v):
    """U diag(weight) Uᵀ v without a transposed copy of U."""
    if v.ndim == 1:
        return U @ (weight * (v @ U))
    return U @ (weight * (v.T @ U)).T
