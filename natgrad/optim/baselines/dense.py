"""The self-scaled Broyden family on a dense H, in two passes over memory.

    H⁺ = (H − hhᵀ/yᵀh + φ vvᵀ)/τ + ssᵀ/sᵀy,    h = Hy,    v = √(yᵀh) (s/sᵀy − h/yᵀh)

φ = 1, τ = 1 is BFGS. Multiplied out it is H/τ plus a symmetric 2 × 2 form in h and s. One pass reads H for H[y, ∇L⁺],
one reads and writes it for the update; H⁺∇L⁺, the next direction, then costs vectors only.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from natgrad.optim.baselines.quasi_newton import Pair, QuasiNewton
from natgrad.optim.baselines.wolfe import Wolfe

Scalar = Float[Array, ""]
Rule = Callable[[Scalar, Scalar, int], tuple[Scalar, Scalar]]


class DenseQuasiNewton(QuasiNewton):
    """A member of the family, chosen by its `rule`; its memory is a matrix of p² numbers.

    Arguments:
        search: the line search.
        scaled: whether the first matrix is (sᵀy/yᵀy) I (Nocedal and Wright, 2006, eq. 6.20) or I.
    """

    search: Wolfe = eqx.field(default=Wolfe())
    scaled: bool = eqx.field(static=True, default=False)
    cautious: ClassVar[bool] = True
    squares: ClassVar[int] = 3  # p×p arrays at the peak of a step

    @abc.abstractmethod
    def rule(self, b: Scalar, h: Scalar, p: int) -> tuple[Scalar, Scalar]:
        """τ and φ, from b = sᵀBs/sᵀy, h = yᵀHy/sᵀy and the number p of parameters."""

    def empty(self, size: int, dtype: Any) -> Float[Array, "p p"]:
        return jnp.zeros((size, size), dtype)

    def update(
        self, memory: Float[Array, "p p"], fresh: Bool[Array, ""], pair: Pair
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        return update(memory, fresh, pair, self.rule, self.scaled)


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
