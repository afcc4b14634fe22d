"""BFGS on a dense inverse Hessian (Nocedal and Wright, 2006, Algorithm 6.1).

The first matrix is I, as in SciPy. The smaller (sᵀy/yᵀy) I, which fits the steepest direction alone, makes BFGS learn
all the flat ones one by one: on ill-conditioned problems, PINNs among them, it takes many times as many steps.
"""

from typing import Any, ClassVar

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
        scaled: whether the first matrix is (sᵀy/yᵀy) I (Nocedal and Wright, 2006, eq. 6.20) or I.
    """

    search: Wolfe = eqx.field(default=Wolfe())
    scaled: bool = eqx.field(static=True, default=False)
    cautious: ClassVar[bool] = True

    def empty(self, size: int, dtype: Any) -> Float[Array, "p p"]:
        return jnp.zeros((size, size), dtype)

    def update(
        self, memory: Float[Array, "p p"], fresh: Bool[Array, ""], pair: Pair
    ) -> tuple[Float[Array, "p p"], Float[Array, " p"]]:
        return update(memory, fresh, pair, lambda b, h, p: (jnp.ones_like(b), jnp.ones_like(b)), self.scaled)
