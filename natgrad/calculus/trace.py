"""Derivatives carried forward through the trace of a function, equation by equation.

u is traced to a jaxpr once. What depends on x is a `Carried`: its value and whatever a pass carries beside it; what
does not is computed once and carries nothing. The equations are of five kinds, for which a `Pass` has a rule each:

    linear         in all their carried arguments together
    product        of a carried array with one that is not: linear too, and where the time goes
    bilinear       the product of two that are carried
    elementwise    entry i of the result depends on entry i of one carried argument
    other          everything else, control flow included
"""

import abc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jax.numpy as jnp
from jax.extend.core import Literal


class Carried:
    """An intermediate that depends on x: its value, and what a pass carries."""

    value: Any


class Pass(abc.ABC):
    """What is carried, by its rules. f takes the values of the carried arguments and gives a list of results."""

    @abc.abstractmethod
    def linear(self, f: Callable, carried: list) -> list: ...

    @abc.abstractmethod
    def product(self, f: Callable, carried: list) -> list: ...

    @abc.abstractmethod
    def bilinear(self, f: Callable, carried: list) -> list: ...

    @abc.abstractmethod
    def elementwise(self, f: Callable, carried: list, name: str) -> list: ...

    @abc.abstractmethod
    def other(self, f: Callable, carried: list) -> list: ...


# fmt: off
# Primitives without a second derivative in all their floating-point arguments together; `max` and its like
# almost everywhere, with the derivative JAX gives them at the kinks.
_LINEAR = frozenset({
    "add", "sub", "neg", "add_any", "reduce_sum", "cumsum", "reshape", "broadcast_in_dim", "squeeze",
    "expand_dims", "transpose", "rev", "slice", "split", "concatenate", "pad", "gather", "dynamic_slice",
    "dynamic_update_slice", "scatter-add", "select_n", "convert_element_type", "reduce_precision", "copy",
    "copy_p", "real", "imag", "complex", "conj", "max", "min", "abs", "sign", "floor", "ceil", "round",
    "clamp",
})
_BILINEAR = frozenset({"mul", "dot_general", "conv_general_dilated"})
_ELEMENTWISE = frozenset({
    "add", "sub", "neg", "mul", "div", "max", "min", "abs", "sign", "floor", "ceil", "round", "clamp", "rem",
    "select_n", "convert_element_type", "reduce_precision", "copy", "copy_p", "stop_gradient", "is_finite",
    "eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "xor", "pow", "integer_pow", "square", "sqrt",
    "rsqrt", "cbrt", "exp", "exp2", "expm1", "log", "log1p", "logistic", "sin", "cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv", "lgamma",
    "digamma", "bessel_i0e", "bessel_i1e",
})
_CALLS = frozenset({
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_vjp_call",
    "custom_vjp_call_jaxpr",
})
# fmt: on
_together = ContextVar("together", default=False)


@contextmanager
def products_together() -> Iterator[None]:
    """What is traced inside takes the product of a matrix with a value and with all its derivatives in one.

    The derivative in the matrix is then a product too. XLA for CPUs would have a sum of outer products compute each of
    its factors anew for every entry, which in the rows of a parameter Jacobian takes longer than all else; but where
    there are no such rows, putting values and derivatives side by side costs more than it gains. (What JAX has traced
    before, a function under `jax.jit` for one, it does not trace again: that stays as it was.)
    """
    token = _together.set(True)
    try:
        yield
    finally:
        _together.reset(token)


def together() -> bool:
    """Whether products are taken together here."""
    return _together.get()


def interpret(closed: Any, args: list, rules: Pass) -> list:
    """The results of a jaxpr for arguments some of which are carried."""
    jaxpr = getattr(closed, "jaxpr", closed)
    env = dict(zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else env[atom]

    for equation in jaxpr.eqns:
        env.update(zip(equation.outvars, _apply(equation, [read(v) for v in equation.invars], rules), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _apply(equation, args: list, rules: Pass) -> list:
    """One equation of the jaxpr on arguments some of which are carried."""
    name = equation.primitive.name
    values = [a.value if isinstance(a, Carried) else a for a in args]
    active = [i for i, a in enumerate(args) if isinstance(a, Carried)]
    inexact = [jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in equation.outvars]
    if not active or not any(inexact) or name == "stop_gradient":
        return _bind(equation, values)
    if name in _CALLS:
        return interpret(_called(equation), args, rules)

    def f(*active_values):
        filled = list(values)
        for i, value in zip(active, active_values, strict=True):
            filled[i] = value
        return [o for o, keep in zip(_bind(equation, filled), inexact, strict=True) if keep]

    outputs = _rule(equation, active, [args[i] for i in active], rules)(f, [args[i] for i in active])
    if all(inexact):
        return outputs
    rest = iter(outputs)
    return [next(rest) if keep else o for o, keep in zip(_bind(equation, values), inexact, strict=True)]


def _rule(equation, active: list[int], carried: list, rules: Pass) -> Callable[[Callable, list], list]:
    name = equation.primitive.name
    is_complex = any(jnp.iscomplexobj(c.value) for c in carried)
    if name == "dot_general" and len(active) == 1:
        return rules.product
    if name in _BILINEAR:
        return rules.linear if len(active) == 1 else rules.bilinear
    if (name in _LINEAR and not (name == "abs" and is_complex)) or (name == "div" and active == [0]):
        return rules.linear
    if len(active) == 1 and not is_complex and _is_elementwise(equation, carried[0].value.shape):
        return lambda f, carried: rules.elementwise(f, carried, name)
    return rules.other


def _bind(equation, values: list) -> list:
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # jax before 0.10: a pair
    out = equation.primitive.bind(*functions, *values, **params)
    return out if equation.primitive.multiple_results else [out]


def _called(equation):
    return next(equation.params[n] for n in ("jaxpr", "call_jaxpr", "fun_jaxpr") if n in equation.params)


def _is_elementwise(equation, shape: tuple[int, ...]) -> bool:
    """Whether entry i of every output depends on entry i of the inputs alone."""
    if any(v.aval.shape != shape for v in equation.outvars):
        return False
    if equation.primitive.name in _CALLS or equation.primitive.name == "custom_jvp_call":
        inner = _called(equation)
        return all(_is_elementwise(e, shape) for e in getattr(inner, "jaxpr", inner).eqns)
    return equation.primitive.name in _ELEMENTWISE
