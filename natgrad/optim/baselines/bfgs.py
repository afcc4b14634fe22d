"""BFGS on a dense inverse Hessian (Nocedal and Wright, 2006, Algorithm 6.1)."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from natgrad.optim.baselines.dense import update
from natgrad.optim.baselines.quasi_newton import Pair, QuasiNewton
from natgrad.optim.baselines.wolfe import Wolfe


class BFGS(QuasiNewton):
    """BFGS; its memory is a matrix of p² numbers.

    Arguments:
        search: the line search.
    """

    search: Wolfe = eqx.field(default=Wolfe())

    def empty(self, size: int, dtype: Any) -> Float[Array, "p p"]:
        return jnp.zeros((size, size), dtype)

    def update(
        self, memory: Float[Array, "p p"], fresh: Bool[Array, ""], pair: Pair
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        return update(memory, fresh, pair, lambda b, h, p: (jnp.ones_like(b), jnp.ones_like(b)))
