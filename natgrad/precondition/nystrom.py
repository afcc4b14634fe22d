"""Randomized Nyström preconditioning (Algorithm "BuildPreconditioner: Nyström" of the paper).

    method      what is kept of Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ     the next rank ℓ
    "svd"       its eigenvectors, the published form       up by `increase` while λ̂_ℓ > rμ, else down to the first
    "cholesky"  the same without an SVD of size p          λ̂ᵢ < rμ plus one
    "factor"    F with FᵀF = Ĝ, see `Gramian.factor`       one of a few widths, by the iterations of the inner solve

The last is the default: no eigenproblem (on a GPU that of 500×500 takes as long as the sketch), and with Ω of sparse
signs half a sketch. What a wider sketch costs is then less than the inner iterations it saves, whence the larger ranks.

With "cholesky" the range found last time may serve as test matrix (`reuse`): one step of subspace iteration for free.
Work follows the rank: a sketch of ℓ columns is made in the narrowest of a few static widths that holds it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from natgrad import host
from natgrad.linalg import (
    DenseTest,
    LowRank,
    TestMatrix,
    factor_preconditioner,
    gaussian,
    nystrom,
    nystrom_from_columns,
    nystrom_preconditioner,
    pick,
    sample_diagonal,
    sample_uniform,
    sparse_signs,
)
from natgrad.precondition.base import Approximation, Factored, Ranked, check_counts, empty, factored

TESTS = ("signs", "gaussian", "sampling", "uniform")
METHODS = ("factor", "cholesky", "svd")
FEW, MANY = 4, 12  # inner iterations below and above which a factored preconditioner gets narrower and wider


class Width(eqx.Module):
    """Which of the widths of a factor is next.

    `least`: one that was too narrow once is not tried again; G has more directions as training goes on. `ample`: the
    last factor had more columns than G has directions above round-off, and a wider one would have no more of these.
    """

    index: Int[Array, ""]
    least: Int[Array, ""]
    ample: Bool[Array, ""]


class Nystrom(Ranked):
    """Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ.

    Arguments:
        test: Ω of sparse "signs" or "gaussian"; "sampling" takes columns of G with probability proportional to its
            diagonal, "uniform" with equal probability.
        max_rank: ℓ_max, 1000 by default, 500 for finite elements; a "factor" of more than 256 columns has at most half
            as many as there are parameters.
        method: "factor", "cholesky" or "svd", see the module's header; the others are for the last two:
        increase: δℓ, by how much the rank grows.
        ratio: r, the ratio λ̂/μ at which eigenvalues stop mattering.
        reuse: whether the last range is the next test matrix (not when columns are sampled).
        levels: how many widths are compiled: max_rank, max_rank/2, …
    """

    test: str = eqx.field(static=True, default="signs")
    max_rank: int | None = eqx.field(static=True, default=None)
    method: str = eqx.field(static=True, default="factor")
    increase: int = eqx.field(static=True, default=100)
    ratio: float = eqx.field(static=True, default=1.0)
    reuse: bool = eqx.field(static=True, default=True)
    levels: int = eqx.field(static=True, default=2)

    def __check_init__(self):
        if self.test not in TESTS:
            raise ValueError(f"unknown test matrix {self.test!r}: choose one of {', '.join(TESTS)}")
        if self.method not in METHODS:
            raise ValueError(f"unknown Nyström method {self.method!r}: choose one of {', '.join(METHODS)}")
        check_counts(self, "max_rank", "increase", "levels")

    @property
    def lasting(self):
        return self.method != "factor"

    def init(self, size, dtype, key):
        if self.method == "factor":
            narrowest = host.array(0, np.int32)  # far from the minimum μ is large, and few directions matter
            return Width(narrowest, narrowest, host.array(False, np.bool_))
        return empty(size, min(self.most, size), self.increase, dtype)

    def build(self, gramian, mu, state, key):
        if self.method == "factor":
            return self._factored(gramian, state, key)
        return self._decomposed(gramian, mu, state, key)

    def inverse(self, approximation, mu):
        if isinstance(approximation, Factored):
            return factor_preconditioner(approximation.V, approximation.H, mu)
        return nystrom_preconditioner(approximation.found(), mu)

    def keep(self, approximation, state):
        if not isinstance(approximation, Factored):
            return approximation
        widths = self._widths(approximation.V.shape[1])
        index = _narrowest(widths, approximation.rank)
        return Width(index, state.least, approximation.rank < jnp.asarray(widths)[index])

    def adapt(self, state, iterations):
        if self.method != "factor":
            return state
        wider, narrower = (iterations > MANY) & ~state.ample, iterations < FEW
        least = jnp.where(wider, jnp.minimum(state.index + 1, self.levels - 1), state.least).astype(jnp.int32)
        down = jnp.where(narrower, jnp.maximum(state.index - 1, jnp.minimum(state.index, least)), state.index)
        return Width(jnp.where(wider, least, down).astype(jnp.int32), least, state.ample)

    def _widths(self, size: int) -> list[int]:
        half = max(size // 2, 256) if self.method == "factor" else size  # beyond, pCG would cost less
        full = min(self.most, half, size)
        return sorted({max(1, -(-full // 2**level)) for level in range(self.levels)})

    def _indices(self, gramian, key, width):
        if self.test == "uniform":
            return sample_uniform(key, gramian.size, width)
        return sample_diagonal(key, gramian.diagonal(), width)

    def _factored(self, gramian, state, key) -> Factored:
        widths = self._widths(gramian.size)

        def branch(width: int) -> Factored:
            if self.test in ("sampling", "uniform"):
                omega: TestMatrix = pick(self._indices(gramian, key, width), gramian.size, gramian.dtype)
            elif self.test == "gaussian":
                omega = DenseTest(gaussian(key, gramian.size, width, gramian.dtype))
            else:
                omega = sparse_signs(key, gramian.size, width, gramian.dtype)
            return factored(gramian.factor(omega), widths[-1])

        if len(widths) == 1:
            return branch(widths[0])
        index = jnp.minimum(state.index, len(widths) - 1)
        return jax.lax.switch(index, [lambda w=w: branch(w) for w in widths])

    def _decomposed(self, gramian, mu, state, key) -> Approximation:
        width = state.basis.shape[1]
        widths = self._widths(state.basis.shape[0])
        branches = [lambda w=w: self._sketch(gramian, state, key, w, width) for w in widths]
        low = jax.lax.switch(_narrowest(widths, state.next_rank), branches) if len(branches) > 1 else branches[0]()
        largest = low.eigenvalues[0]
        threshold = self.ratio * mu(largest)
        # The rank asked for, not the one found: a spectrum that ends early must shrink ℓ, not grow it.
        tried = state.next_rank
        smallest = low.eigenvalues[tried - 1]
        enough = jnp.sum(low.eigenvalues >= threshold) + 2  # first i (from 1) with λ̂ᵢ < rμ, plus one
        next_rank = jnp.minimum(jnp.where(smallest > threshold, tried + self.increase, enough), width)
        return Approximation(low.U, low.eigenvalues, largest, low.rank, next_rank.astype(jnp.int32))

    def _sketch(self, gramian, state, key, width, full) -> LowRank:
        """The Nyström approximation from a test matrix of the given width, filled up to the full one."""
        size, dtype = state.basis.shape[0], state.basis.dtype
        if self.test in ("sampling", "uniform"):
            indices = self._indices(gramian, key, width)
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


def _narrowest(widths: list[int], rank: Int[Array, ""]) -> Int[Array, ""]:
    """The index of the narrowest width that holds a rank; a search would be a loop."""
    return jnp.sum(jnp.asarray(widths) < rank, dtype=jnp.int32)
