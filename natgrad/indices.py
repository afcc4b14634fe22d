"""Indices outside their array: `x[5]` of a point in two dimensions, which JAX takes for the last entry without a word.

While a function is traced, shapes are known and so are the indices that are written in it. An index within its array
becomes a `slice`; another one a `dynamic_slice`, whose start JAX moves back until it fits, and an array of indices a
`gather` that is promised to be in bounds. Where their start follows from constants alone, it can be compared with the
shape. An index that depends on values (`x[jnp.argmax(x)]`) is nothing that a trace knows, and is left alone; so are
`x.at[i].get(mode="clip")`, `jnp.take` and `lax.dynamic_slice_in_dim`'s own bounds where they are asked for by values.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

LARGEST = 1000  # entries of an array of constants that is followed

FOLDED: dict[str, Callable[..., Any]] = {
    "lt": lambda a, b: a < b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "select_n": lambda which, no, yes: np.where(which, yes, no),
    "convert_element_type": lambda a, new_dtype, **_: np.asarray(a).astype(new_dtype),
    "broadcast_in_dim": lambda a, shape, broadcast_dimensions, **_: _broadcast(a, shape, broadcast_dimensions),
    "iota": lambda dtype, shape, dimension, **_: _broadcast(
        np.arange(shape[dimension], dtype=dtype), shape, (dimension,)
    ),
    "squeeze": lambda a, dimensions: np.squeeze(a, tuple(dimensions)),
    "reshape": lambda a, new_sizes, **_: np.reshape(a, new_sizes),
    "concatenate": lambda *a, dimension: np.concatenate(a, dimension),
}


def trace(fn: Callable, *args: Any) -> tuple[Any, str]:
    """What the function gives, by shapes alone, and what is wrong with an index in it; empty where nothing is."""
    closed, out, static = eqx.filter_make_jaxpr(fn)(*args)
    known = dict(zip(closed.jaxpr.constvars, map(_small, closed.consts), strict=True))
    return eqx.combine(out, static), next(_outside(closed.jaxpr, known), "")


def _outside(jaxpr: Jaxpr, known: dict[Any, Any]) -> Iterator[str]:
    """The wrong indices of a trace; `known` has the variables that are constants."""
    value = lambda v: np.asarray(v.val) if isinstance(v, Literal) else known.get(v)
    for equation in jaxpr.eqns:
        name, inputs = equation.primitive.name, [value(v) for v in equation.invars]
        shape = getattr(equation.invars[0].aval, "shape", ()) if equation.invars else ()
        if name == "dynamic_slice":
            yield from _slices(shape, inputs[1:], equation.params["slice_sizes"])
        elif name == "gather" and inputs[1] is not None and "PROMISE" in str(equation.params["mode"]):
            axes = equation.params["dimension_numbers"].start_index_map
            sizes = equation.params["slice_sizes"]
            for axis, starts in zip(axes, np.moveaxis(inputs[1], -1, 0), strict=True):
                for start in np.unique(starts):
                    yield from _slices(shape[axis : axis + 1], [start], sizes[axis : axis + 1])
        elif name in FOLDED and all(v is not None for v in inputs) and _entries(equation.outvars[0]) <= LARGEST:
            known[equation.outvars[0]] = FOLDED[name](*inputs, **equation.params)
        for inner in jax.tree.leaves(equation.params, is_leaf=lambda p: isinstance(p, ClosedJaxpr | Jaxpr)):
            yield from _inner(name, inner, inputs)


def _inner(name: str, inner: Any, inputs: list[Any]) -> Iterator[str]:
    """The wrong indices of a function called in a trace; its arguments are followed where each is one of the call's."""
    if not isinstance(inner, ClosedJaxpr | Jaxpr):
        return
    jaxpr = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
    known: dict[Any, Any] = {}
    if isinstance(inner, ClosedJaxpr):
        known = dict(zip(jaxpr.constvars, map(_small, inner.consts), strict=True))
    if name not in ("scan", "while") and len(jaxpr.invars) == len(inputs):  # those of a loop change as it goes
        known |= dict(zip(jaxpr.invars, inputs, strict=True))
    yield from _outside(jaxpr, {v: a for v, a in known.items() if a is not None})


def _slices(shape: tuple[int, ...], starts: list[Any], sizes: tuple[int, ...]) -> Iterator[str]:
    for length, start, size in zip(shape, starts, sizes, strict=True):
        if start is not None and size == 1 and not 0 <= int(start) < length:
            index = int(start) if int(start) >= 0 else int(start) - length
            yield f"the index {index} is outside an axis of length {length}"


def _small(constant: Any) -> Any:
    """A constant as NumPy sees it, if it may be an index."""
    traced = isinstance(constant, jax.core.Tracer)
    if traced or getattr(getattr(constant, "dtype", None), "kind", "") not in ("i", "u", "b"):
        return None
    return np.asarray(constant) if constant.size <= LARGEST else None


def _entries(v: Any) -> int:
    return math.prod(getattr(v.aval, "shape", ()))


def _broadcast(a: Any, shape: tuple[int, ...], dimensions: tuple[int, ...]) -> np.ndarray:
    a = np.asarray(a)
    expanded = np.ones(len(shape), int)
    expanded[list(dimensions)] = a.shape
    return np.broadcast_to(a.reshape(expanded), shape)
