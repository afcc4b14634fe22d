"""The self-scaled Broyden family on a dense H, in two passes over memory.

    H⁺ = (H − hhᵀ/yᵀh + φ vvᵀ)/τ + ssᵀ/sᵀy,    h = Hy,    v = √(yᵀh) (s/sᵀy − h/yᵀh)

φ = 1, τ = 1 is BFGS. Multiplied out it is H/τ plus a symmetric 2 × 2 form in h and s. One pass reads H for H[y, ∇L⁺],
one reads and writes it for the update; H⁺∇L⁺, the next direction, then costs vectors only.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from natgrad.optim.baselines.quasi_newton import Pair

#: (b, h, p) ↦ (τ, φ), with b = sᵀBs/sᵀy, h = yᵀHy/sᵀy and p the number of parameters.
Rule = Callable[[Array, Array, int], tuple[Array, Array]]


def update(
    H: Float[Array, "p p"], fresh: Bool[Array, ""], pair: Pair, rule: Rule, scaled: bool
) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
    """H⁺ and H⁺∇L⁺. A fresh H is γI, whatever the matrix holds, with γ = sᵀy/yᵀy if `scaled`, else 1."""
    s, y, g = pair.s, pair.y, pair.gradient
    safe = lambda x: jnp.where(pair.good, x, 1.0)
    sy = safe(pair.sy)
    gamma = jnp.where(pair.good, sy / safe(y @ y), 1.0) if scaled else jnp.ones_like(sy)
    both = jnp.stack([y, g], 1)
    h, Hg = jnp.where(fresh, gamma * both, H @ both).T
    yh = safe(y @ h)
    b = pair.sBs / sy / jnp.where(fresh, gamma, 1.0)
    tau, phi = rule(safe(b), safe(yh / sy), y.size)

    # The form in (h, s); nothing changes where the pair is no good.
    tau = safe(tau)
    form = jnp.asarray([[(phi - 1) / (tau * yh), -phi / (tau * sy)], [-phi / (tau * sy), 0.0]])
    form = form.at[1, 1].set(phi * yh / (tau * sy**2) + 1 / sy)
    form = jnp.where(pair.good, form, 0.0)
    left = jnp.stack([h, s])
    right = form @ left
    index = jnp.arange(y.size)
    old = jnp.where(fresh, jnp.where(index[:, None] == index, gamma, 0.0), H) / tau
    new = old + right[0][:, None] * h + right[1][:, None] * s
    return new, Hg / tau + right.T @ (left @ g)
