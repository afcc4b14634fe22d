"""No preconditioner: matrix-free NGD as it was before. λ̂₁, which μ needs, comes from the power method."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from natgrad.linalg import power_method
from natgrad.options import Count
from natgrad.precondition.base import Approximation, Preconditioner


class Nothing(Approximation):
    """Ĝ = 0, with the largest eigenvalue of G."""

    largest: Float[Array, ""]
    rank: Int[Array, ""]

    def inverse(self, mu):
        return lambda v: v


class Identity(Preconditioner):
    """P = I: conjugate gradients without a preconditioner, `ng.NaturalGradient(ng.PCG(ng.Identity(), maxiter=520))`."""

    power_iterations: Count = eqx.field(static=True, default=4)

    def init(self, size, dtype, key):
        return None

    def build(self, gramian, mu, state, key):
        largest = power_method(gramian.mv, key, gramian.size, iterations=self.power_iterations, dtype=gramian.dtype)
        return Nothing(largest, jnp.asarray(0, jnp.int32)), state
