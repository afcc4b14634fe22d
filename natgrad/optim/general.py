"""The natural gradient for least squares of which nothing is known: any residual function, zero at the minimum or not.

The paper's damping c·L² is made for losses that vanish: Levenberg and Marquardt's rule, which looks at what the steps
do, holds for all. And parameters of very different size, the rule outside of networks, want Marquardt's scaling.
"""

from natgrad.optim.damping import LevenbergMarquardt
from natgrad.optim.direction import PCG, Direct
from natgrad.optim.ngd import NaturalGradient

DIRECT = 1000  # parameters up to which a Cholesky factorization costs next to nothing
SCALING = 1e-8


def general(parameters: int) -> NaturalGradient:
    """What `natgrad.optimistix` and `natgrad.optax` use unless told otherwise."""
    if parameters <= DIRECT:
        return NaturalGradient(Direct(scaling=SCALING), LevenbergMarquardt(), gramian="assembled")
    return NaturalGradient(PCG(), LevenbergMarquardt())
