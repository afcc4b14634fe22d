"""Randomized Nyström preconditioning (Algorithm "BuildPreconditioner: Nyström" of the paper).

Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ is kept as its eigenvectors and eigenvalues λ̂₁ ≥ … ≥ λ̂_ℓ, which say what rank is next: up by
`increase` while λ̂_ℓ > rμ, else down to the first i with λ̂ᵢ < rμ, plus one. Work follows the rank: a sketch of ℓ columns
is made in the narrowest of a few static widths that holds it.

Beyond the paper, by options: eigenvectors without an SVD of size p (`method`); the range found last as test matrix,
which is a step of subspace iteration for free (`reuse`); and one approximation for many steps (`staleness`), while a
probe finds G + μI no further than that from it and the last solve with it came to an end.
"""

import dataclasses
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from natgrad.backend import host
from natgrad.gramian import Gramian
from natgrad.linalg import (
    LowRank,
    gaussian,
    nystrom,
    nystrom_from_columns,
    nystrom_preconditioner,
    sparse_signs,
)
from natgrad.options import Count, Positive
from natgrad.precondition.base import Approximation, MuRule, Ranked
from natgrad.precondition.row_factor import Test, narrowest, sampled, widths

Method = Literal["svd", "cholesky"]


class Eigenpairs(Approximation):
    """U diag(λ̂) Uᵀ ≈ G of rank ≤ m, the rank to try next, whether it was `kept` from an earlier step, and whether the
    last step with it went well."""

    basis: Float[Array, "p m"]
    eigenvalues: Float[Array, " m"]
    largest: Float[Array, ""]
    rank: Int[Array, ""]
    next_rank: Int[Array, ""]
    kept: Bool[Array, ""]
    good: Bool[Array, ""]

    @property
    def rebuilt(self):
        return ~self.kept

    def inverse(self, mu):
        # λ̂_ℓ, the scale outside the range of U, is the smallest one above zero: a zero, where the rank asked for
        # exceeds the numerical one, says nothing about what lies outside.
        return nystrom_preconditioner(LowRank(self.basis, self.eigenvalues, jnp.sum(self.eigenvalues > 0)), mu)


class Nystrom(Ranked):
    """Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ as the paper builds it (section 4.2.1): `ng.PCG(ng.Nystrom(max_rank=500))`.

    Arguments:
        max_rank: ℓ_max, 1000 by default, 500 for finite elements.
        test: Ω "gaussian" or of sparse "signs"; "sampling" takes columns of G with probability proportional to its
            diagonal, "uniform" with equal probability.
        method: "svd", the published one, or "cholesky".
        increase: δℓ, by how much the rank grows, and the first one.
        ratio: r, the ratio λ̂/μ at which eigenvalues stop mattering.
        reuse: whether the last range is the next test matrix, `increase` columns aside.
        staleness: the root mean square eigenvalue of P⁻¹(G + μI), 1 for a perfect one, up to which an approximation is
            kept; None builds it anew at every step.
        levels: how many widths are compiled: max_rank, max_rank/2, …
    """

    max_rank: Count | None = eqx.field(static=True, default=None)
    test: Test = eqx.field(static=True, default="gaussian")
    method: Method = eqx.field(static=True, default="svd")
    increase: Count = eqx.field(static=True, default=20)
    ratio: Positive = eqx.field(static=True, default=10.0)
    reuse: bool = eqx.field(static=True, default=False)
    staleness: Positive | None = eqx.field(static=True, default=None)
    levels: Count = eqx.field(static=True, default=2)

    def __check_init__(self):
        super().__check_init__()
        if self.reuse and self.test in ("sampling", "uniform"):
            raise ValueError(f"reuse needs products with G, and test={self.test!r} takes columns: give up one")

    def init(self, size, dtype, key):
        width = self.widest(size)
        return Eigenpairs(
            basis=host.zeros((size, width), dtype),
            eigenvalues=host.zeros(width, dtype),
            largest=host.zeros((), dtype),
            rank=host.array(0, np.int32),
            next_rank=host.array(min(self.increase, width), np.int32),
            kept=host.array(False, np.bool_),
            good=host.array(False, np.bool_),
        )

    def build(self, gramian, mu, state, key):
        if self.staleness is None:
            found = self._anew(gramian, mu, state, key)
        else:
            key, probe = jax.random.split(key)
            kept = dataclasses.replace(state, kept=jnp.asarray(True))
            fresh = state.good & self._holds(gramian, mu, state, probe)
            found = jax.lax.cond(fresh, lambda: kept, lambda: self._anew(gramian, mu, state, key))
        return found, found

    def adapt(self, state, iterations, good):
        return dataclasses.replace(state, good=good)

    def _anew(self, gramian: Gramian, mu: MuRule, state: Eigenpairs, key: PRNGKeyArray) -> Eigenpairs:
        full = state.basis.shape[1]
        sizes = widths(full, self.levels)
        branches = [lambda w=w: self._sketch(gramian, state, key, w, full) for w in sizes]
        low = jax.lax.switch(narrowest(sizes, state.next_rank), branches) if len(branches) > 1 else branches[0]()
        largest = low.eigenvalues[0]
        threshold = self.ratio * mu(largest)
        # The rank asked for, not the one found: a spectrum that ends early must shrink ℓ, not grow it.
        tried = state.next_rank
        smallest = low.eigenvalues[tried - 1]
        enough = jnp.sum(low.eigenvalues >= threshold) + 2  # first i (from 1) with λ̂ᵢ < rμ, plus one
        next_rank = jnp.minimum(jnp.where(smallest > threshold, tried + self.increase, enough), full)
        kept, good = jnp.asarray(False), jnp.asarray(True)
        return Eigenpairs(low.U, low.eigenvalues, largest, low.rank, next_rank.astype(jnp.int32), kept, good)

    def _sketch(self, gramian: Gramian, state: Eigenpairs, key: PRNGKeyArray, width: int, full: int) -> LowRank:
        """The Nyström approximation from a test matrix of the given width, filled up to the full one."""
        size, dtype = state.basis.shape[0], state.basis.dtype
        if self.test in ("sampling", "uniform"):
            indices = sampled(self.test, gramian, key, width)
            low = nystrom_from_columns(gramian.columns, indices, state.next_rank, method=self.method)
        else:
            gauss = self.test == "gaussian"
            omega = gaussian(key, size, width, dtype) if gauss else sparse_signs(key, size, width, dtype).matrix()
            if self.reuse:
                fresh = jnp.maximum(self.increase, state.next_rank // 10)
                kept = jnp.clip(state.next_rank - fresh, 0, state.rank)
                omega = jnp.where(jnp.arange(width) < kept, state.basis[:, :width], omega)
            low = nystrom(gramian.mm, omega, state.next_rank, method=self.method)
        fill = full - width
        return LowRank(jnp.pad(low.U, ((0, 0), (0, fill))), jnp.pad(low.eigenvalues, (0, fill)), low.rank)

    def _holds(self, gramian: Gramian, mu: MuRule, state: Eigenpairs, key: PRNGKeyArray) -> Bool[Array, ""]:
        """Whether P⁻¹(G + μI) is near the identity on a random vector in the range of the approximation.

        With z = P^(-½) s for random signs s on that range, ‖P^(-½) (G + μI) z‖ / ‖s‖ is the root mean square
        eigenvalue; where the Gramian has turned away from an old basis it is large, often by ten orders of magnitude.
        """
        value, used = mu(state.largest), state.eigenvalues > 0
        U, scale = state.basis, jnp.where(used, 1 / jnp.sqrt(state.eigenvalues + value), 0.0)
        signs = jax.random.rademacher(key, scale.shape, scale.dtype)
        z = U @ (signs * scale)
        y = gramian.mv(z) + value * z
        inside = y @ U
        outside = y - U @ inside
        tail = value + jnp.min(jnp.where(used, state.eigenvalues, jnp.inf))
        square = jnp.sum((inside * scale) ** 2) + jnp.sum(outside**2) / tail
        return square <= (self.staleness or 0.0) ** 2 * jnp.sum(used)
