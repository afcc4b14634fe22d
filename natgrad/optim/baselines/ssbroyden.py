"""The self-scaled Broyden method of Al-Baali and Khalfan (2005), as Urbán, Stefanou and Pons (2025, eqs. 13–23) train
PINNs with it.

With b = sᵀBs/sᵀy and h = yᵀHy/sᵀy (B = H⁻¹, so that bh ≥ 1), each step chooses its own member of Broyden's family and
its own scale of the old matrix:

    a = bh − 1,    c = √(a/(1 + a)),    ρ = min(1, h (1 − c))
    θ = clip((1 − b)/b, (ρ − 1)/a, 1/ρ),    σ = 1 + aθ,    φ = (1 − θ)/σ
    τ = min(1, 1/b) · min(σ^(−1/(p−1)), 1/θ)          where θ > 0
    τ = min(min(1, 1/b) · σ^(−1/(p−1)), σ)            elsewhere

τ ≤ 1 shrinks a curvature found too large, which BFGS alone corrects slowly.
"""

import jax.numpy as jnp

from natgrad.optim.baselines.dense import DenseQuasiNewton


class SSBroyden(DenseQuasiNewton):
    """Self-scaled Broyden; its memory is a matrix of p² numbers.

    Arguments:
        search: the line search.
        scaled: whether the first matrix is (sᵀy/yᵀy) I (Nocedal and Wright, 2006, eq. 6.20) or I.
    """

    def rule(self, b, h, p):
        a = jnp.maximum(b * h - 1, jnp.finfo(b.dtype).eps)
        rho = jnp.minimum(1.0, h * (1 - jnp.sqrt(a / (1 + a))))
        theta = jnp.maximum((rho - 1) / a, jnp.minimum(1 / rho, (1 - b) / b))
        sigma = 1 + a * theta
        shrink = jnp.minimum(1.0, 1 / b)
        root = sigma ** (-1 / max(p - 1, 1))
        positive = theta > 0
        tau = jnp.where(
            positive,
            shrink * jnp.minimum(root, 1 / jnp.where(positive, theta, 1.0)),
            jnp.minimum(shrink * root, sigma),
        )
        return tau, (1 - theta) / sigma
