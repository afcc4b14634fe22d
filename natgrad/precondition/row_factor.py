"""The row factor, the default: F with FᵀF = Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ, the Nyström approximation, by way of the rows of A.

With G = AᵀA and C = AΩ, F is R⁻ᵀCᵀA for CᵀC = RᵀR (`Gramian.factor`): GΩ, whose round-off eps·λ₁ is the same in all
directions, is never formed, and there is no eigenproblem (on a GPU that of 500×500 takes as long as the sketch). It is
made anew at every step, with Ω of sparse signs for half the cost of a Gaussian sketch. What a wider one costs is then
less than the inner iterations it saves: F has one of a few static widths, and the iterations of the last inner solve
say which.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from natgrad.backend import host
from natgrad.backend.xla import jointly
from natgrad.linalg import (
    DenseTest,
    TestMatrix,
    factor_preconditioner,
    gaussian,
    orthogonal_factor,
    pick,
    sample_diagonal,
    sample_uniform,
    sparse_signs,
)
from natgrad.options import Count
from natgrad.precondition.base import Approximation, Ranked

Test = Literal["signs", "gaussian", "sampling", "uniform"]
FEW, MANY = 4, 12  # inner iterations below and above which a factor gets narrower and wider
LEAST = 256  # columns that a factor may have however few parameters there are


class Factored(Approximation):
    """Ĝ = VᵀHV with orthonormal rows of V, and how many there are; the others are zero. And the diagonal of Ĝ."""

    V: Float[Array, "m p"]
    H: Float[Array, "m m"]
    largest: Float[Array, ""]
    rank: Int[Array, ""]
    diagonal: Float[Array, " p"]

    def inverse(self, mu):
        return factor_preconditioner(self.V, self.H, mu)


def factored(F: Float[Array, "m p"], width: int) -> Factored:
    """From Ĝ = FᵀF, filled up to a given width."""
    V, H, largest = orthogonal_factor(F)
    fill = width - F.shape[0]
    H = jnp.pad(H, (0, fill))
    # A row of zeros is no direction, and must not be the smallest eigenvalue of H.
    none = jnp.diagonal(H) == 0
    rank = jnp.sum(~none).astype(jnp.int32)
    H = H + jnp.diag(jnp.where(none, largest, 0.0))
    return Factored(jnp.pad(V, ((0, fill), (0, 0))), H, largest, rank, jnp.sum(F**2, axis=0))


class Width(eqx.Module):
    """Which of the widths of a factor is next.

    `least`: one that was too narrow once is not tried again; G has more directions as training goes on. `saturated`:
    the last factor had more columns than G has directions above round-off, and a wider one would have no more of them.
    """

    index: Int[Array, ""]
    least: Int[Array, ""]
    saturated: Bool[Array, ""]


class RowFactor(Ranked):
    """Ĝ = FᵀF with F from a sketch of the rows of A, see the module's header:
    `ng.PCG(ng.RowFactor(max_rank=300, test="sampling"))`.

    Arguments:
        max_rank: ℓ_max, 1000 by default, 500 for finite elements; beyond 256 at most half as many as there are
            parameters.
        test: Ω of sparse "signs" or "gaussian"; "sampling" takes columns of the identity with probability proportional
            to the diagonal of G, "uniform" with equal probability.
        levels: how many widths are compiled: max_rank, max_rank/2, …
    """

    max_rank: Count | None = eqx.field(static=True, default=None)
    test: Test = eqx.field(static=True, default="signs")
    levels: Count = eqx.field(static=True, default=2)

    has_diagonal = True
    copies = 4

    def init(self, size, dtype, key):
        narrowest = host.array(0, np.int32)  # far from the minimum μ is large, and few directions matter
        return Width(narrowest, narrowest, host.array(False, np.bool_))

    def build(self, gramian, mu, state, key):
        widths = self._widths(gramian.size)
        sketch = lambda width: factored(gramian.factor(self._test(gramian, key, width)), widths[-1])
        if len(widths) == 1:
            found = sketch(widths[0])
        else:
            index = jointly(jnp.minimum(state.index, len(widths) - 1))
            found = jax.lax.switch(index, [lambda w=w: sketch(w) for w in widths])
        index = narrowest(widths, found.rank)
        return found, Width(index, state.least, found.rank < jnp.asarray(widths)[index])

    def adapt(self, state, iterations, good):
        wider, narrower = (iterations > MANY) & ~state.saturated, iterations < FEW
        least = jnp.where(wider, jnp.minimum(state.index + 1, self.levels - 1), state.least).astype(jnp.int32)
        down = jnp.where(narrower, jnp.maximum(state.index - 1, jnp.minimum(state.index, least)), state.index)
        return Width(jnp.where(wider, least, down).astype(jnp.int32), least, state.saturated)

    def _widths(self, size: int) -> list[int]:
        half = max(size // 2, LEAST)  # beyond, conjugate gradients alone would cost less
        return widths(min(self.widest(size), half), self.levels)

    def _test(self, gramian, key, width: int) -> TestMatrix:
        if self.test in ("sampling", "uniform"):
            return pick(sampled(self.test, gramian, key, width), gramian.size, gramian.dtype)
        if self.test == "gaussian":
            return DenseTest(gaussian(key, gramian.size, width, gramian.dtype))
        return sparse_signs(key, gramian.size, width, gramian.dtype)


def widths(full: int, levels: int) -> list[int]:
    """full, full/2, …, in ascending order."""
    return sorted({max(1, -(-full // 2**level)) for level in range(levels)})


def narrowest(widths: list[int], rank: Int[Array, ""]) -> Int[Array, ""]:
    """The index of the narrowest width that holds a rank; a search would be a loop."""
    return jnp.sum(jnp.asarray(widths) < rank, dtype=jnp.int32)


def sampled(test: str, gramian, key, width: int) -> Int[Array, " m"]:
    """Which columns a sampling test matrix takes: "sampling" by the diagonal, "uniform" by nothing."""
    if test == "uniform":
        return sample_uniform(key, gramian.size, width)
    return sample_diagonal(key, gramian.diagonal(), width)
