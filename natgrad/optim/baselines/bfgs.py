"""BFGS on a dense inverse Hessian (Nocedal and Wright, 2006, Algorithm 6.1).

The first matrix is I, as in SciPy. The smaller (sᵀy/yᵀy) I, which fits the steepest direction alone, makes BFGS learn
all the flat ones one by one: on ill-conditioned problems, PINNs among them, it takes many times as many steps.
"""

import jax.numpy as jnp

from natgrad.optim.baselines.dense import DenseQuasiNewton


class BFGS(DenseQuasiNewton):
    """BFGS; its memory is a matrix of p² numbers.

    Arguments:
        search: the line search.
        scaled: whether the first matrix is (sᵀy/yᵀy) I (Nocedal and Wright, 2006, eq. 6.20) or I.
    """

    def rule(self, b, h, p):
        return jnp.ones_like(b), jnp.ones_like(b)
