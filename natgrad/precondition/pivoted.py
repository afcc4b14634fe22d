"""The row factor of randomly chosen pivots: RPCholesky says which columns, and how many, F is made of them anew.

RPCholesky eliminates in G, whose round-off is eps·λ̂₁. From its pivots S the row factor with Ω = I[:, S] has the same
range (FᵀF is the Nyström approximation from these columns), to more digits than the elimination has.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from natgrad.backend import host
from natgrad.linalg import pick
from natgrad.options import Count, Positive
from natgrad.precondition.base import Ranked, round_off
from natgrad.precondition.row_factor import factored
from natgrad.precondition.rpcholesky import largest_eigenvalue, pivoted


class PivotedRowFactor(Ranked):
    """Ĝ = FᵀF with F from the rows of A and the pivots of RPCholesky: `ng.PCG(ng.PivotedRowFactor(block=50))`.

    Arguments:
        max_rank: ℓ_max, 1000 by default, 500 for finite elements.
        block: pivots drawn at a time.
        tolerance: of the trace: no more pivots once that of what they leave is below tolerance·μ·p.
        power_iterations: for λ̂₁ of the first step; later ones have it from the factor before.
    """

    max_rank: Count | None = eqx.field(static=True, default=None)
    block: Count = eqx.field(static=True, default=100)
    tolerance: Positive = eqx.field(static=True, default=0.03)
    power_iterations: Count = eqx.field(static=True, default=4)

    has_diagonal = True
    copies = 4

    def init(self, size, dtype, key):
        return host.zeros((), dtype)  # λ̂₁ of the last step

    def build(self, gramian, mu, state, key):
        width = self.widest(gramian.size)
        start, draws = jax.random.split(key)
        diagonal = gramian.diagonal()
        power = lambda: largest_eigenvalue(gramian, start, self.power_iterations, diagonal)
        largest = jax.lax.cond(state > 0, lambda: state, power)
        damping = jnp.maximum(mu(largest), round_off(largest))
        chosen = pivoted(gramian, diagonal, draws, width, self.block, self.tolerance * damping).pivots
        found = factored(gramian.factor(pick(chosen, gramian.size, gramian.dtype)), width)
        return found, found.largest
