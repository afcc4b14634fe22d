"""Derivatives of a callable u at one point x: gradient, Laplacian, divergence, partial derivatives."""

from collections.abc import Callable, Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Inexact

from natgrad.calculus.laplace import propagate
from natgrad.calculus.taylor import expand
from natgrad.options import Count, checked

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
    return propagate(_one_array(u), x, dims, len(dims))[2]


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
    value, jac, lap = propagate(_one_array(u), x, order, len(dims))
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

    Several in one coordinate, as in `partial(u, x, 1, 1, 1, 1)`, come from one forward pass.

    >>> partial(lambda x: x[0] * x[1] ** 2, jnp.array([2.0, 3.0]), 0, 1)  # ∂²u/∂x_0∂x_1
    Array(6., dtype=float32)
    """
    x = _point(x)
    if not dims:
        raise ValueError("partial takes at least one coordinate, such as partial(u, x, 0)")
    dims = tuple(_coordinates(i, x)[0] for i in dims)
    if len(dims) > 1 and len(set(dims)) == 1:
        return laplacian(u, x, dims[:1]) if len(dims) == 2 else derivatives(u, x, dims[0], len(dims))[-1]
    derivative = _one_array(u)
    for i in dims:
        derivative = _along(derivative, np.eye(x.size, dtype=x.dtype)[i])
    return derivative(x)


@checked
def derivatives(u: Field, x: Inexact[Array, " d"], dim: int, order: Count) -> tuple[Inexact[Array, "*m"], ...]:
    """u(x), ∂u/∂x_i, …, ∂ᵏu/∂x_iᵏ for i = `dim` and k = `order`, from one forward pass.

    >>> u, u_x, u_xx, u_xxx = derivatives(lambda x: x[0] ** 3, jnp.array([2.0]), 0, order=3)
    >>> u_xx, u_xxx
    (Array(12., dtype=float32), Array(6., dtype=float32))
    """
    x = _point(x)
    (i,) = _coordinates(dim, x)
    return tuple(expand(_one_array(u), x, np.eye(x.size, dtype=x.dtype)[i], order))


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
