"""Randomized Nyström preconditioning (Algorithm "BuildPreconditioner: Nyström" of the paper).

The rank follows the spectrum: up by `increase` while λ̂_ℓ > r μ, else down to the first λ̂ᵢ < r μ plus one. Beyond the
paper, the range found last time serves as test matrix (`reuse`): one step of subspace iteration for free, since the
Gramian changes little between steps. Some columns are always fresh, so that new directions are found.

Work follows the rank too: a sketch of ℓ columns is made in the narrowest of a few static widths that holds it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from natgrad.linalg import (
    LowRank,
    gaussian,
    nystrom,
    nystrom_from_columns,
    nystrom_preconditioner,
    sample_diagonal,
    sample_uniform,
)
from natgrad.precondition.base import Approximation, Preconditioner, empty

TESTS = ("gaussian", "sampling", "uniform")


class Nystrom(Preconditioner):
    """Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ.

    Arguments:
        test: Ω "gaussian"; "sampling" takes columns of G with probability proportional to its diagonal, "uniform"
            with equal probability.
        max_rank: ℓ_max.
        increase: δℓ, by how much the rank grows.
        ratio: r, the ratio λ̂/μ at which eigenvalues stop mattering.
        reuse: whether the last range is the next test matrix (Gaussian tests only).
        method: "cholesky", or "svd" for the published form.
        levels: how many widths are compiled: max_rank, max_rank/2, max_rank/4, …
    """

    test: str = eqx.field(static=True, default="gaussian")
    max_rank: int = eqx.field(static=True, default=500)
    increase: int = eqx.field(static=True, default=100)
    ratio: float = eqx.field(static=True, default=1.0)
    reuse: bool = eqx.field(static=True, default=True)
    method: str = eqx.field(static=True, default="cholesky")
    levels: int = eqx.field(static=True, default=3)

    def __check_init__(self):
        if self.test not in TESTS:
            raise ValueError(f"unknown test matrix {self.test!r}: choose one of {', '.join(TESTS)}")
        if self.method not in ("cholesky", "svd"):
            raise ValueError(f"unknown Nyström method {self.method!r}: choose cholesky or svd")
        for name in ("max_rank", "increase", "levels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def init(self, size, dtype, key):
        return empty(size, min(self.max_rank, size), self.increase, dtype)

    def build(self, gramian, mu, state, key):
        width = state.basis.shape[1]
        widths = sorted({max(1, -(-width // 2**level)) for level in range(self.levels)})
        diagonal = gramian.diagonal() if self.test == "sampling" else None
        branches = [lambda w=w: self._sketch(gramian, diagonal, state, key, w, width) for w in widths]
        index = jnp.searchsorted(jnp.asarray(widths), state.next_rank)
        low = jax.lax.switch(index, branches) if len(branches) > 1 else branches[0]()
        largest = low.eigenvalues[0]
        threshold = self.ratio * mu(largest)
        # The rank asked for, not the one found: a spectrum that ends early must shrink ℓ, not grow it.
        tried = state.next_rank
        smallest = low.eigenvalues[tried - 1]
        enough = jnp.sum(low.eigenvalues >= threshold) + 2  # first i (from 1) with λ̂ᵢ < rμ, plus one
        next_rank = jnp.minimum(jnp.where(smallest > threshold, tried + self.increase, enough), width)
        return Approximation(low.U, low.eigenvalues, largest, low.rank, next_rank.astype(jnp.int32))

    def _sketch(self, gramian, diagonal, state, key, width, full) -> LowRank:
        """The Nyström approximation from a test matrix of the given width, filled up to the full one."""
        size, dtype = state.basis.shape[0], state.basis.dtype
        if self.test == "gaussian":
            omega = gaussian(key, size, width, dtype)
            if self.reuse:
                fresh = jnp.maximum(self.increase, state.next_rank // 10)
                kept = jnp.clip(state.next_rank - fresh, 0, state.rank)
                omega = jnp.where(jnp.arange(width) < kept, state.basis[:, :width], omega)
            low = nystrom(gramian.mm, omega, state.next_rank, method=self.method)
        else:
            if diagonal is None:
                indices = sample_uniform(key, size, width)
            else:
                indices = sample_diagonal(key, diagonal, width)
            low = nystrom_from_columns(gramian.columns, indices, state.next_rank, method=self.method)
        fill = full - width
        return LowRank(jnp.pad(low.U, ((0, 0), (0, fill))), jnp.pad(low.eigenvalues, (0, fill)), low.rank)

    def inverse(self, state, mu):
        return nystrom_preconditioner(state.found(), mu)
