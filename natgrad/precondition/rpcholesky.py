"""RPCholesky preconditioning (Algorithm "BuildPreconditioner: RPCholesky" of the paper).

λ̂₁ comes from the power method, μ from λ̂₁, and the factorization stops once the trace of what it leaves is below r μ p.
The published form inverts FFᵀ + μI by Woodbury's identity, whose cancellation is of the size of eps·λ̂₁/μ: at the usual
μ = 10·eps·λ̂₁ a tenth of the preconditioner is round-off, and below it breaks. The default orthogonalizes F instead.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from natgrad.linalg import (
    from_factor,
    nystrom_preconditioner,
    power_method,
    rpcholesky,
    rpcholesky_preconditioner,
)
from natgrad.precondition.base import Approximation, Preconditioner, empty

METHODS = ("eigh", "svd", "woodbury")


class RPCholesky(Preconditioner):
    """Ĝ = FFᵀ with randomly pivoted columns.

    Arguments:
        max_rank: ℓ_max.
        block: pivots drawn at a time.
        ratio: r of the trace stop r μ p.
        method: how FFᵀ + μI is inverted: "eigh" (orthogonalize F, then a small eigenproblem), "svd" of F or "woodbury"
            (the two published forms).
        power_iterations: for λ̂₁.
    """

    max_rank: int = eqx.field(static=True, default=500)
    block: int = eqx.field(static=True, default=20)
    ratio: float = eqx.field(static=True, default=1.0)
    method: str = eqx.field(static=True, default="eigh")
    power_iterations: int = eqx.field(static=True, default=4)

    def __check_init__(self):
        if self.method not in METHODS:
            raise ValueError(f"unknown RPCholesky method {self.method!r}: choose one of {', '.join(METHODS)}")
        for name in ("max_rank", "block", "power_iterations"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def init(self, size, dtype, key):
        width = min(self.max_rank, size)
        return empty(size, width, width, dtype)

    def build(self, gramian, mu, state, key):
        size, width = state.basis.shape
        start, pivots = jax.random.split(key)
        largest = power_method(gramian.mv, start, size, iterations=self.power_iterations, dtype=state.basis.dtype)
        result = rpcholesky(
            gramian.columns,
            gramian.diagonal(),
            pivots,
            max_rank=width,
            block=min(self.block, width),
            tol=self.ratio * mu(largest) * size,
        )
        if self.method == "eigh":
            low = from_factor(result.F, rank=result.rank)
            basis, eigenvalues, rank = low.U, low.eigenvalues, low.rank
            largest = jnp.maximum(largest, eigenvalues[0])
        else:
            basis, eigenvalues, rank = result.F, state.eigenvalues, result.rank
        return Approximation(basis, eigenvalues, largest, rank, state.next_rank)

    def inverse(self, state, mu):
        if self.method == "eigh":
            return nystrom_preconditioner(state.found(), mu)
        return rpcholesky_preconditioner(state.basis, mu, method=self.method)
