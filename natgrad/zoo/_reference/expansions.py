"""Sums of basis functions, and what all references check."""

import jax
import jax.numpy as jnp
import numpy as np

RESOLVED = 1e-6  # the last coefficients of an expansion that has converged


def clenshaw(c, s):
    """Σ c_k T_k(s)."""

    def step(carry, coefficient):
        a, b = carry
        return (coefficient + 2 * s * a - b, a), None

    zero = jnp.zeros((), c.dtype)
    (a, b), _ = jax.lax.scan(step, (zero, zero), c[:0:-1])
    return c[0] + s * a - b


def finite(problem: str, **coefficients: float) -> None:
    for name, value in coefficients.items():
        if not np.isfinite(value):
            raise ValueError(f"{name} of {problem} must be a finite number, got {value}")
