"""Derivatives of a callable u at one point x: gradient, Laplacian, divergence, partial derivatives.

Every function takes any JAX callable `u: (d,) -> ()` or `(m,)` and one point `x: (d,)`; many points are for
`jax.vmap`. The results are made of ordinary JAX operations, so that they can be differentiated, in either
mode and as often as wanted, in whatever parameters u closes over.

The Laplacian (`laplace.py`) and the derivatives of order three and more in one coordinate (`taylor.py`) are
propagated forward, in one pass through the trace of u (`trace.py`).
"""

from natgrad.calculus.derivatives import derivatives as derivatives
from natgrad.calculus.derivatives import divergence as divergence
from natgrad.calculus.derivatives import gradient as gradient
from natgrad.calculus.derivatives import hessian as hessian
from natgrad.calculus.derivatives import laplacian as laplacian
from natgrad.calculus.derivatives import partial as partial
from natgrad.calculus.derivatives import value_gradient_laplacian as value_gradient_laplacian
from natgrad.calculus.trace import products_together as products_together
