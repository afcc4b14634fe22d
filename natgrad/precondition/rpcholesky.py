"""RPCholesky preconditioning (Algorithm "BuildPreconditioner: RPCholesky" of the paper).

λ̂₁ comes from the power method, μ from λ̂₁, and the factorization stops once the trace of what it leaves is below r μ p.
The published form inverts FFᵀ + μI by Woodbury's identity, whose cancellation is of the size of eps·λ̂₁/μ: at the usual
μ = 10·eps·λ̂₁ a tenth of the preconditioner is round-off, and below it breaks. The default ("factor") takes the pivots
and makes F of them anew by way of the rows (`Gramian.factor`: FᵀF is the Nyström approximation from these columns), to
more digits than an elimination has; "eigh" orthogonalizes F.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad import host
from natgrad.linalg import (
    factor_preconditioner,
    from_factor,
    nystrom_preconditioner,
    pick,
    power_method,
    rpcholesky,
    rpcholesky_preconditioner,
)
from natgrad.parallel import after
from natgrad.precondition.base import Approximation, Factored, Ranked, check_counts, empty, factored, round_off

METHODS = ("factor", "eigh", "svd", "woodbury")


class RPCholesky(Ranked):
    """Ĝ = FFᵀ with randomly pivoted columns.

    Arguments:
        max_rank: ℓ_max, 1000 by default, 500 for finite elements.
        block: pivots drawn at a time.
        ratio: r of the trace stop r μ p.
        method: how FFᵀ + μI is inverted: "factor" (see the module's header), "eigh" (orthogonalize F, then a small
            eigenproblem), "svd" of F or "woodbury" (the two published forms).
        power_iterations: for λ̂₁.
    """

    max_rank: int | None = eqx.field(static=True, default=None)
    block: int = eqx.field(static=True, default=100)
    ratio: float = eqx.field(static=True, default=0.03)
    method: str = eqx.field(static=True, default="factor")
    power_iterations: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        if self.method not in METHODS:
            raise ValueError(f"unknown RPCholesky method {self.method!r}: choose one of {', '.join(METHODS)}")
        check_counts(self, "max_rank", "block", "power_iterations")

    @property
    def lasting(self):
        return self.method != "factor"

    def init(self, size, dtype, key):
        if self.method == "factor":
            return host.zeros((), dtype)  # λ̂₁ of the last step
        width = min(self.most, size)
        return empty(size, width, width, dtype)

    def build(self, gramian, mu, state, key):
        size = gramian.size
        width = min(self.most, size)
        start, pivots = jax.random.split(key)
        diagonal = gramian.diagonal()
        vector = lambda: after(jax.random.normal(start, (size,), gramian.dtype), diagonal[0])
        power = lambda: power_method(gramian.mv, vector(), iterations=self.power_iterations)
        if self.method == "factor":
            largest = jax.lax.cond(state > 0, lambda: state, power)
            damping = jnp.maximum(mu(largest), round_off(largest))
        else:
            largest = power()
            damping = mu(largest)
        result = rpcholesky(
            gramian.columns,
            diagonal,
            pivots,
            max_rank=width,
            block=min(self.block, width),
            tol=self.ratio * damping * size,
        )
        if self.method == "factor":
            omega = pick(result.pivots, size, gramian.dtype)
            return factored(gramian.factor(omega), width)
        if self.method == "eigh":
            low = from_factor(result.F, rank=result.rank)
            basis, eigenvalues, rank = low.U, low.eigenvalues, low.rank
            largest = jnp.maximum(largest, eigenvalues[0])
        else:
            basis, eigenvalues, rank = result.F, state.eigenvalues, result.rank
        return Approximation(basis, eigenvalues, largest, rank, state.next_rank)

    def inverse(self, approximation, mu):
        if isinstance(approximation, Factored):
            return factor_preconditioner(approximation.V, approximation.H, mu)
        if self.method == "eigh":
            return nystrom_preconditioner(approximation.found(), mu)
        return rpcholesky_preconditioner(approximation.basis, mu, method=self.method)

    def keep(self, approximation, state) -> Approximation | Float[Array, ""]:
        return approximation.largest if isinstance(approximation, Factored) else approximation
