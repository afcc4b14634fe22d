"""No preconditioner: matrix-free NGD as it was before. λ̂₁, which μ needs, comes from the power method."""

import equinox as eqx
import jax.numpy as jnp

from natgrad.linalg import power_method
from natgrad.precondition.base import Approximation, Preconditioner, empty


class Identity(Preconditioner):
    """P = I: conjugate gradients without a preconditioner, `ng.NaturalGradient(ng.PCG(ng.Identity(), maxiter=520))`."""

    power_iterations: int = eqx.field(static=True, default=4)

    def init(self, size, dtype, key):
        return empty(size, 1, 0, dtype)

    def build(self, gramian, mu, state, key):
        largest = power_method(gramian.mv, key, gramian.size, iterations=self.power_iterations, dtype=state.basis.dtype)
        return Approximation(state.basis, state.eigenvalues, largest, jnp.asarray(0, jnp.int32), state.next_rank)

    def inverse(self, state, mu):
        return lambda v: v
