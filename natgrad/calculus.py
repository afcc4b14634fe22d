"""Derivatives of a callable u at one point x: gradient, Laplacian, divergence, partial derivatives.

Every function takes any JAX callable `u: (d,) -> ()` or `(m,)` and one point `x: (d,)`; many points are for
`jax.vmap`. The results are made of ordinary JAX operations, so that they can be differentiated, in either
mode and as often as wanted, in whatever parameters u closes over.

The Laplacian is propagated forward, in one pass. Along a computation x ↦ z every intermediate z carries

    z,      J_i = ∂z/∂x_i,      L = Σ_i ∂²z/∂x_i²,

and an operation y = f(z) turns them into

    f(z),   Df[J_i],            Df[L] + Σ_i D²f[J_i, J_i].

u is traced to a jaxpr once and these formulas are applied equation by equation. What the kinds of operation
differ in is the very last term: it vanishes when f is linear, is 2 Σ_i f(J_i^a, J_i^b) when f is bilinear and
f''(z) Σ_i J_i² when f acts elementwise, and comes from two nested jvps of that single equation for everything
else, control flow included. What does not depend on x is computed once and carries nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Array, Inexact

Field = Callable[[Array], Array]


def gradient(u: Field, x: Inexact[Array, " d"]) -> Inexact[Array, "*m d"]:
    """∇u(x): shape (d,) for a scalar u, (m, d) for u with m components.

    In reverse mode for a real scalar u, the cheaper one also when differentiated in the parameters, in
    forward mode for others. A u with `lax.while_loop` has no reverse mode: take `value_gradient_laplacian`.

    >>> gradient(lambda x: x[0] * x[1], jnp.array([2.0, 3.0]))
    Array([3., 2.], dtype=float32)
    """
    x, u = _point(x), _one_array(u)
    out = jax.eval_shape(u, x)
    scalar = out.shape == () and jnp.issubdtype(out.dtype, jnp.floating)
    return (jax.grad if scalar else jax.jacfwd)(u)(x)


def hessian(u: Field, x: Inexact[Array, " d"]) -> Inexact[Array, "*m d d"]:
    """Second derivatives of u at x: (d, d) for a scalar u, (m, d, d) for u with m components.

    >>> hessian(lambda x: x[0] * x[1], jnp.array([2.0, 3.0]))
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    return jax.jacfwd(lambda y: gradient(u, y))(_point(x))


def laplacian(u: Field, x: Inexact[Array, " d"], dims: int | Sequence[int] | None = None) -> Inexact[Array, "*m"]:
    """Δu(x) = Σ_i ∂²u/∂x_i² over the coordinates in `dims` (default: all), in one forward pass.

    A function with a `custom_vjp` rule, one for reverse mode only, is differentiated through its definition.

    >>> laplacian(lambda x: x[0] * x[1] ** 2, jnp.array([2.0, 3.0]))
    Array(4., dtype=float32)
    """
    x = _point(x)
    dims = _coordinates(dims, x)
    return _propagate(u, x, dims, len(dims))[2]


def value_gradient_laplacian(
    u: Field, x: Inexact[Array, " d"], dims: int | Sequence[int] | None = None
) -> tuple[Inexact[Array, "*m"], Inexact[Array, "*m d"], Inexact[Array, "*m"]]:
    """u(x), ∇u(x) in all coordinates and Δu(x) in those of `dims` (default: all), from one forward pass.

    For equations that need more than the Laplacian; here the heat equation in (t, x, y):

    >>> u = lambda x: jnp.exp(-2 * x[0]) * jnp.sin(x[1]) * jnp.sin(x[2])
    >>> _, du, lap = value_gradient_laplacian(u, jnp.array([0.1, 0.2, 0.3]), dims=(1, 2))
    >>> bool(jnp.allclose(du[0], lap))
    True
    """
    x = _point(x)
    dims = _coordinates(dims, x)
    order = (*dims, *(i for i in range(x.size) if i not in dims))
    value, jac, lap = _propagate(u, x, order, len(dims))
    return value, jnp.moveaxis(jac[np.argsort(order)], 0, -1), lap


def divergence(u: Field, x: Inexact[Array, " d"], dims: int | Sequence[int] | None = None) -> Inexact[Array, ""]:
    """div u(x) = Σ_i ∂u_i/∂x_i for u with d components.

    With `dims`, component i is differentiated in coordinate `dims[i]`, and components beyond len(dims) are
    left out: `dims=(1, 2)` for a velocity in (t, x, y), `dims=(0, 1)` for the velocity in (u, v, pressure).

    >>> divergence(lambda x: x**2, jnp.array([2.0, 3.0]))
    Array(10., dtype=float32)
    """
    jac = gradient(u, x)
    outputs = jac.shape[0] if jac.ndim == 2 else 0
    if dims is None and outputs != jac.shape[-1]:
        raise ValueError(
            f"divergence takes u with as many components as x ({jac.shape[-1]}), got {outputs or 'a scalar'};"
            " name the coordinates with dims"
        )
    dims = _coordinates(dims, x)
    if len(dims) > outputs:
        raise ValueError(f"divergence in the coordinates {dims} takes {len(dims)} components, u has {outputs}")
    return jnp.sum(jac[np.arange(len(dims)), np.array(dims)])


def partial(u: Field, x: Inexact[Array, " d"], *dims: int) -> Inexact[Array, "*m"]:
    """The partial derivative ∂ᵏu/∂x_i…∂x_j at x for the k coordinates given; the shape is u(x)'s.

    >>> partial(lambda x: x[0] * x[1] ** 2, jnp.array([2.0, 3.0]), 0, 1)  # ∂²u/∂x_0∂x_1
    Array(6., dtype=float32)
    """
    x = _point(x)
    if not dims:
        raise ValueError("partial takes at least one coordinate, such as partial(u, x, 0)")
    dims = tuple(_coordinates(i, x)[0] for i in dims)
    if len(dims) == 2 and dims[0] == dims[1]:
        return laplacian(u, x, dims[:1])
    derivative = _one_array(u)
    for i in dims:
        derivative = _along(derivative, np.eye(x.size, dtype=x.dtype)[i])
    return derivative(x)


def _along(u: Field, direction: np.ndarray) -> Field:
    return lambda x: jax.jvp(u, (x,), (jnp.asarray(direction),))[1]


def _point(x) -> Array:
    x = jnp.asarray(x)
    if x.ndim != 1:
        raise ValueError(f"x must be one point of shape (d,), got {x.shape}; use jax.vmap for many points")
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(float)


def _coordinates(dims: int | Sequence[int] | None, x: Array) -> tuple[int, ...]:
    d = x.shape[-1]
    if dims is None:
        return tuple(range(d))
    named = tuple(dims) if isinstance(dims, Iterable) else (dims,)
    if not named or any(not isinstance(i, int | np.integer) or not -d <= i < d for i in named):
        raise ValueError(f"dims must name coordinates of a point with {d} of them (0 to {d - 1}), got {dims}")
    found = tuple(int(i) % d for i in named)
    if len(set(found)) < len(found):
        raise ValueError(f"dims must name each coordinate once, got {dims}")
    return found


def _one_array(u: Field) -> Field:
    if not callable(u):
        raise ValueError(f"u must be a function of one point, got {type(u).__name__}: pass u itself, not u(x)")

    def checked(x):
        out = u(x)
        if not jax.tree_util.all_leaves([out]):
            raise ValueError(f"u must return one array, got {type(out).__name__}")
        return jnp.asarray(out)

    return checked


# The forward pass


class _Carried(NamedTuple):
    """An intermediate z that depends on x: value, derivatives (n, *z.shape) and Laplacian (None: zero)."""

    value: Any
    jac: Any
    lap: Any


def _propagate(u: Field, x: Array, directions: tuple[int, ...], k: int) -> tuple[Array, Array, Array]:
    """u(x), its derivatives in the n directions (n, *m), and the sum of the second ones in the first k."""
    closed = jax.make_jaxpr(_one_array(u))(x)
    seed = _Carried(x, jnp.asarray(np.eye(x.size, dtype=x.dtype)[list(directions)]), None)
    (out,) = _interpret(closed, [seed], k)
    if not isinstance(out, _Carried):
        out = _Carried(out, jnp.zeros((len(directions), *jnp.shape(out)), jnp.result_type(out, x)), None)
    return out.value, out.jac, jnp.zeros_like(out.value) if out.lap is None else out.lap


def _interpret(closed, args: list, k: int) -> list:
    jaxpr = getattr(closed, "jaxpr", closed)
    env = dict(zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom):
        return atom.val if isinstance(atom, Literal) else env[atom]

    for equation in jaxpr.eqns:
        env.update(zip(equation.outvars, _apply(equation, [read(v) for v in equation.invars], k), strict=True))
    return [read(v) for v in jaxpr.outvars]


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
_FEW = 4  # directions
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


def _apply(equation, args: list, k: int) -> list:
    """One equation of the jaxpr on arguments some of which are carried."""
    name = equation.primitive.name
    values = [a.value if isinstance(a, _Carried) else a for a in args]
    active = [i for i, a in enumerate(args) if isinstance(a, _Carried)]
    inexact = [jnp.issubdtype(v.aval.dtype, jnp.inexact) for v in equation.outvars]
    if not active or not any(inexact) or name == "stop_gradient":
        return _bind(equation, values)
    if name in _CALLS:
        return _interpret(_called(equation), args, k)

    def f(*active_values):
        filled = list(values)
        for i, value in zip(active, active_values, strict=True):
            filled[i] = value
        return [o for o, keep in zip(_bind(equation, filled), inexact, strict=True) if keep]

    carried = [args[i] for i in active]
    outputs = _rule(equation, active, carried)(f, carried, k)
    if all(inexact):
        return outputs
    rest = iter(outputs)
    return [next(rest) if keep else o for o, keep in zip(_bind(equation, values), inexact, strict=True)]


def _rule(equation, active: list[int], carried: list[_Carried]) -> Callable[..., list[_Carried]]:
    name = equation.primitive.name
    is_complex = any(jnp.iscomplexobj(c.value) for c in carried)
    if name == "dot_general" and len(active) == 1:
        if _together.get():
            return _product_together
        if len(carried[0].jac) <= _FEW:
            return _product
    if name in _BILINEAR:
        return _linear if len(active) == 1 else _bilinear
    if (name in _LINEAR and not (name == "abs" and is_complex)) or (name == "div" and active == [0]):
        return _linear
    if len(active) == 1 and not is_complex and _is_elementwise(equation, carried[0].value.shape):
        return _tanh if name == "tanh" else _elementwise
    return _nested


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


def _linear(f, carried: list[_Carried], k: int) -> list[_Carried]:
    """Df[J_i], Df[L], for f affine in its carried arguments."""
    values = tuple(c.value for c in carried)

    def push(*tangents):
        return jax.jvp(f, values, tangents)[1]

    out = f(*values)
    jac = jax.vmap(push)(*(c.jac for c in carried))
    if all(c.lap is None for c in carried):
        lap = [None] * len(out)
    else:
        lap = push(*(jnp.zeros_like(c.value) if c.lap is None else c.lap for c in carried))
    return [_Carried(*z) for z in zip(out, jac, lap, strict=True)]


def _product(f, carried: list[_Carried], k: int) -> list[_Carried]:
    """Wz, WJ_i, WL for few directions, each a product of its own.

    The derivative in W, taken at every point, is then a sum of outer products, which XLA for GPUs writes
    straight into the rows of the parameter Jacobian; with the J_i stacked it is a batched product, and a
    copy of it.
    """
    (z,) = carried
    jac = jnp.stack([f(j)[0] for j in z.jac])
    return [_Carried(f(z.value)[0], jac, None if z.lap is None else f(z.lap)[0])]


def _product_together(f, carried: list[_Carried], k: int) -> list[_Carried]:
    """Wz, WJ_i, WL as one product (`products_together`)."""
    (z,) = carried
    n = len(z.jac) + 1
    parts = [z.value[None], z.jac] if z.lap is None else [z.value[None], z.jac, z.lap[None]]
    (out,) = jax.vmap(f)(jnp.concatenate(parts))
    return [_Carried(out[0], out[1:n], None if z.lap is None else out[n])]


def _bilinear(f, carried: list[_Carried], k: int) -> list[_Carried]:
    """Df[L] + 2 Σ_i f(J_i^a, J_i^b)."""
    (y,) = _linear(f, carried, k)
    (products,) = jax.vmap(f)(*(c.jac[:k] for c in carried))
    second = 2 * products.sum(0)
    return [y._replace(lap=second if y.lap is None else y.lap + second)]


def _elementwise(f, carried: list[_Carried], k: int) -> list[_Carried]:
    """f'(z) L + f''(z) Σ_i J_i²."""
    z = carried[0].value

    def first(z):
        return jax.jvp(f, (z,), (jnp.ones_like(z),))[1]

    (df,), (ddf,) = jax.jvp(first, (z,), (jnp.ones_like(z),))
    return _chain(f(z)[0], df, ddf, carried[0], k)


def _tanh(f, carried: list[_Carried], k: int) -> list[_Carried]:
    (y,) = f(carried[0].value)
    df = 1 - y * y
    return _chain(y, df, -2 * y * df, carried[0], k)


def _chain(y, df, ddf, z: _Carried, k: int) -> list[_Carried]:
    lap = ddf * jnp.sum(z.jac[:k] ** 2, axis=0)
    return [_Carried(y, df * z.jac, lap if z.lap is None else df * z.lap + lap)]


def _nested(f, carried: list[_Carried], k: int) -> list[_Carried]:
    """For any f: d²/dε² f(z + ε J_i + ½ ε² L_i) by two jvps, all i at once; L_0 = L, the others are zero."""
    values = tuple(c.value for c in carried)

    def along(first, second):
        def tangent(values, directions):
            return jax.jvp(f, values, directions)

        return jax.jvp(tangent, (values, first), (first, second))

    zeros = [jnp.zeros_like(c.jac) for c in carried]
    laps = tuple(z if c.lap is None else z.at[0].set(c.lap) for z, c in zip(zeros, carried, strict=True))
    (out, jac), (_, second) = jax.vmap(along)(tuple(c.jac for c in carried), laps)
    return [_Carried(y[0], dy, ddy[:k].sum(0)) for y, dy, ddy in zip(out, jac, second, strict=True)]
