"""The natural gradient for any least-squares problem: any residual function, zero at the minimum or not.

The default damping falls with the loss, which need not vanish here: Levenberg and Marquardt's rule, which looks at what
the steps do, holds for all. And parameters of very different size, the rule outside of networks, want Marquardt's
scaling.
"""

from collections.abc import Callable

import jax
from jaxtyping import PyTree

from natgrad.optim.damping import LevenbergMarquardt
from natgrad.optim.direction import PCG, Direct
from natgrad.optim.ngd import NaturalGradient
from natgrad.problem import ResidualFunction

DIRECT = 1000  # parameters up to which a Cholesky factorization costs next to nothing
SCALING = 1e-8


def default_solver(parameters: int) -> NaturalGradient:
    """What `natgrad.interop.optimistix` and `natgrad.interop.optax` use unless told otherwise."""
    if parameters <= DIRECT:
        return NaturalGradient(Direct(scaling=SCALING), LevenbergMarquardt(), gramian="assembled")
    return NaturalGradient(PCG(), LevenbergMarquardt())


def local_problem(residual: Callable[[PyTree], PyTree], params: PyTree) -> ResidualFunction:
    """The problem for one step from the given parameters, with the Jacobian by the cheaper mode."""
    size = lambda tree: sum(leaf.size for leaf in jax.tree.leaves(tree))
    forward = size(params) <= DIRECT and size(params) < size(jax.eval_shape(residual, params))
    return ResidualFunction(residual, params, forward=forward)
