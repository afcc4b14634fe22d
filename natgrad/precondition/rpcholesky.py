"""RPCholesky preconditioning (Algorithm "BuildPreconditioner: RPCholesky" of the paper).

λ̂₁ comes from the power method, μ from λ̂₁, and the factorization G ≈ FFᵀ stops once the trace of what it leaves is
below r μ p. FFᵀ + μI is inverted by Woodbury's identity or by an SVD of F. The cancellation of the first is of the size
of eps·λ̂₁/μ: at the usual μ = 10·eps·λ̂₁ a tenth of the preconditioner is round-off, and below it breaks.
"""

from typing import Literal

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad import linalg
from natgrad.backend.parallel import not_before
from natgrad.gramian import Gramian
from natgrad.linalg import power_method, rpcholesky, rpcholesky_preconditioner
from natgrad.options import Count, Positive
from natgrad.precondition.base import Approximation, Ranked

Method = Literal["woodbury", "svd"]


class Pivoted(Approximation):
    """Ĝ = FFᵀ; columns of F from `rank` on are zero."""

    F: Float[Array, "p m"]
    largest: Float[Array, ""]
    rank: Int[Array, ""]
    method: Method = eqx.field(static=True)

    def inverse(self, mu):
        return rpcholesky_preconditioner(self.F, mu, method=self.method)


class RPCholesky(Ranked):
    """Ĝ = FFᵀ with randomly pivoted columns (the paper, section 4.2.2): `ng.PCG(ng.RPCholesky(max_rank=500))`.

    Arguments:
        max_rank: ℓ_max, 1000 by default, 500 for finite elements.
        block: pivots drawn at a time.
        tolerance: r of the trace stop r μ p.
        method: how FFᵀ + μI is inverted: "woodbury" or "svd" (of F), the two published forms.
        power_iterations: for λ̂₁.
    """

    max_rank: Count | None = eqx.field(static=True, default=None)
    block: Count = eqx.field(static=True, default=20)
    tolerance: Positive = eqx.field(static=True, default=1.0)
    method: Method = eqx.field(static=True, default="woodbury")
    power_iterations: Count = eqx.field(static=True, default=4)

    def init(self, size, dtype, key):
        return None

    def build(self, gramian, mu, state, key):
        start, draws = jax.random.split(key)
        diagonal = gramian.diagonal()
        largest = largest_eigenvalue(gramian, start, self.power_iterations, diagonal)
        width = self.widest(gramian.size)
        found = pivoted(gramian, diagonal, draws, width, self.block, self.tolerance * mu(largest))
        return Pivoted(found.F, largest, found.rank, self.method), state


def largest_eigenvalue(
    gramian: Gramian, key: PRNGKeyArray, iterations: int, known: Float[Array, " p"]
) -> Float[Array, ""]:
    """λ̂₁ by the power method, not begun before `known` is (see `parallel.not_before`)."""
    vector = not_before(jax.random.normal(key, (gramian.size,), gramian.dtype), known[0])
    return power_method(gramian.mv, vector, iterations=iterations)


def pivoted(
    gramian: Gramian,
    diagonal: Float[Array, " p"],
    key: PRNGKeyArray,
    width: int,
    block: int,
    mean: Float[Array, ""],
) -> linalg.PivotedCholesky:
    """RPCholesky of G with at most `width` columns, until the `mean` of the diagonal that is left is reached."""
    tol = mean * gramian.size
    return rpcholesky(gramian.columns, diagonal, key, max_rank=width, block=min(block, width), tol=tol)
