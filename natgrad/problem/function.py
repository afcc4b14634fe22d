"""Any function of any pytree as a least-squares problem: L(θ) = ½ |r(θ)|².

A PINN's residuals come point by point, which its Gramian makes use of. Here nothing is known of the function but its
values: every number it gives is a row of its own, and one row of the Jacobian costs a reverse pass through all of it.

Where the rows outnumber the parameters, columns by forward mode are cheaper. A problem that is built anew at every
step, as the adapters to other libraries do, takes them once (`forward=True`): each row of J is then data of its point,
and the feature whose derivative the Gramian takes is the linear J_i θ. Values and second derivatives remain the
function's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend import host
from natgrad.indices import trace
from natgrad.problem.base import Features, check_parameters
from natgrad.problem.least_squares import LeastSquares


class ResidualFunction(LeastSquares):
    """½ |fn(θ, *args)|² of a function that gives a pytree of real arrays, θ any pytree of real arrays.

        problem = ng.ResidualFunction(lambda theta, t, y: theta["a"] * jnp.exp(-theta["b"] * t) - y, theta, t, y)
        theta = ng.solve(problem, ng.FullNGD(damping=ng.damping.LevenbergMarquardt()), steps=50).params

    Arguments:
        fn: `fn(params, *args)`.
        params: where to start: θ₀.
        args: pytrees of arrays that are no parameters: data, coefficients.
        forward: take the Jacobian by forward mode, now; the Gramian then holds at these `params` alone.
    """

    fn: Callable = eqx.field(static=True)

    def __init__(self, fn: Callable, params: PyTree, *args: PyTree, forward: bool = False):
        if not callable(fn):
            raise ValueError(f"ResidualFunction takes a function of the parameters first, got {type(fn).__name__}")
        self.fn, self.norms, self.validation = fn, None, None
        try:
            self.params, self.static = jax.tree.map(host.array, params), jax.tree.map(host.array, args)
        except TypeError as error:
            raise ValueError("the parameters and data of a residual function must be arrays") from error
        leaves = jax.tree.leaves(self.params)
        if not leaves or not all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in leaves):
            kinds = ", ".join(sorted({str(leaf.dtype) for leaf in leaves})) or "none"
            raise ValueError(f"the parameters of a residual function must be real floating-point arrays, got {kinds}")
        check_parameters("the residual function", leaves)
        try:
            out, wrong = trace(lambda values: values(), self.network(self.params))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"the residual function fails: {type(error).__name__}: {reason}") from error
        if wrong:
            raise ValueError(f"the residual function: {wrong}")
        if not jnp.issubdtype(out.dtype, jnp.floating) or not out.size:
            raise ValueError(f"a residual function must give real floating-point arrays, got {out.dtype}[{out.size}]")
        rows: tuple[Array, ...] = (host.array(np.arange(out.size, dtype=np.int32)),)
        if forward:
            theta, unravel = ravel_pytree(self.params)
            rows += (jax.jacfwd(lambda theta: self.network(unravel(theta))())(theta).astype(self.dtype),)
        ones = host.array(np.ones(out.size), self.dtype)
        self.weights = host.array(np.ones(1), self.dtype)
        self.features = (Rows("residual", rows, ones, 1, _Tangent() if forward else _Row()),)

    def network(self, params: PyTree) -> "Values":
        """Called without arguments, all residuals in one vector (rows,)."""
        return Values(params, self.static, self.fn)


class Values(eqx.Module):
    """The residuals at the parameters it holds, flat."""

    params: PyTree
    args: tuple[PyTree, ...]
    fn: Callable = eqx.field(static=True)

    def __call__(self) -> Float[Array, " rows"]:
        return ravel_pytree(self.fn(self.params, *self.args))[0]


class Rows(Features):
    """Residuals by their numbers; the function is evaluated once for all of them."""

    def at(self, u: Values, frozen: Any, inputs: tuple[Array, ...], parts: int = 1) -> Float[Array, "n 1"]:  # type: ignore[override]
        return u()[inputs[0]][:, None]


@dataclass(frozen=True)
class _Row:
    """One residual, for its derivative by reverse mode."""

    def __call__(self, u: Values, frozen: Any, row: Int[Array, ""]) -> Float[Array, " 1"]:
        return u()[row][None]


@dataclass(frozen=True)
class _Tangent:
    """J_i θ, whose derivative is known."""

    def __call__(self, u: Values, frozen: Any, row: Int[Array, ""], gradient: Float[Array, " p"]) -> Float[Array, " 1"]:
        return (gradient @ ravel_pytree(u.params)[0])[None]
