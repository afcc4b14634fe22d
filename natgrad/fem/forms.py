"""Bilinear forms by their coefficients.

    a(u, v) = ∫ K∇u·∇v + (β·∇u) v + σ u v dx  =  ∫ (v, ∇v)ᵀ C (u, ∇u) dx,      C = [[σ, βᵀ], [0, K]].

C(x), a (d+1) × (d+1) matrix a point, is all that assembly and the operators know of a form.
"""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from natgrad.backend import host, tuning
from natgrad.indices import trace
from natgrad.options import Whole, checked


def numbers(value: Any, name: str) -> np.ndarray:
    """A number or an array, in float64."""
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"the {name} must be a finite number, an array or a function of x, got {value!r}")
    return array


class Form:
    """a(u, v) = ∫ K∇u·∇v + (β·∇u) v + σ u v.

        Form(diffusion=lambda x: 2 + jnp.sin(x[0] + 2 * x[1]), advection=[1.0, 0.5], reaction=3.0)

    A coefficient is a number, an array (a vector for β, a number or a matrix for K) or a function of one point x of
    shape (d,). `order` is the degree up to which the quadrature is exact, by default twice the degree of the space.
    """

    @checked
    def __init__(self, diffusion: Any = 1.0, advection: Any = None, reaction: Any = None, order: Whole | None = None):
        self.diffusion, self.advection, self.reaction, self.order = diffusion, advection, reaction, order
        for name in ("diffusion", "advection", "reaction"):
            value = getattr(self, name)
            if value is None or callable(value):
                continue
            numbers(value, name)
        if diffusion is None and advection is None and reaction is None:
            raise ValueError("a form needs at least one of diffusion, advection and reaction")

    def __repr__(self) -> str:
        given = {k: getattr(self, k) for k in ("diffusion", "advection", "reaction") if getattr(self, k) is not None}
        return "Form(" + ", ".join(f"{k}={getattr(v, '__name__', v)}" for k, v in given.items()) + ")"

    @property
    def constant(self) -> bool:
        """Whether no coefficient depends on x."""
        return not any(callable(c) for c in (self.diffusion, self.advection, self.reaction))

    @property
    def symmetric(self) -> bool:
        """Whether a(u, v) = a(v, u): no advection and K symmetric (a function K(x) is taken to be)."""
        if self.advection is not None and (callable(self.advection) or np.any(self.advection)):
            return False
        K = 0.0 if self.diffusion is None or callable(self.diffusion) else self.diffusion
        return np.ndim(K) == 0 or bool(np.allclose(K, np.transpose(K), rtol=1e-14))

    def matrix(self, x: np.ndarray) -> np.ndarray:
        """C at points x (..., d): (..., d + 1, d + 1)."""
        shape, d = x.shape[:-1], x.shape[-1]
        points = x.reshape(-1, d)
        C = np.zeros((len(points), d + 1, d + 1))
        if self.reaction is not None:
            C[:, 0, 0] = _checked("reaction", tabulate(self.reaction, points, "reaction"), ((),))
        if self.advection is not None:
            C[:, 0, 1:] = _checked("advection", tabulate(self.advection, points, "advection"), ((d,),))
        if self.diffusion is not None:
            K = _checked("diffusion", tabulate(self.diffusion, points, "diffusion"), ((), (d, d)))
            C[:, 1:, 1:] = K if K.ndim == 3 else K[:, None, None] * np.eye(d)
        return C.reshape(*shape, d + 1, d + 1)


STIFFNESS = Form()
MASS = Form(diffusion=None, reaction=1.0)
H1 = Form(reaction=1.0)


def tabulate(f: Any, x: np.ndarray, name: str, *more: np.ndarray, gradient: bool = False) -> np.ndarray:
    """A number, an array or a function of one point, or its gradient, at points x (n, d), in float64: (n, ...).

    Functions written with jax.numpy are vectorized, and compiled for the processor, where the tables are needed; those
    that only NumPy understands are called point by point.
    """
    if not callable(f):
        return np.broadcast_to(numbers(f, name), (len(x), *np.shape(f)))
    with jax.enable_x64(True), host.processor():
        if wrong := _wrong_index(f, x[0], *(a[0] for a in more)):
            raise ValueError(f"the {name}: {wrong}; a point has shape {x.shape[1:]}")
        try:
            values = _in_chunks(f, gradient, x, *more)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [""])[0]
            line = f"the {name} fails at a single point of shape {x.shape[1:]}: {type(error).__name__}: {reason}"
            if gradient:
                raise ValueError(line) from error
            try:
                values = np.array([np.asarray(f(*point), dtype=float) for point in zip(x, *more, strict=True)])
            except Exception:
                raise ValueError(line) from error
    if not np.all(np.isfinite(values)):
        raise ValueError(f"the {name} is not finite at some quadrature points or nodes")
    return values.astype(float)


def _wrong_index(f: Callable, *point: np.ndarray) -> str:
    try:
        return trace(f, *point)[1]
    except Exception:  # functions that only NumPy understands, which looks at indices itself
        return ""


def _in_chunks(f: Callable, gradient: bool, *arrays: np.ndarray) -> np.ndarray:
    """The compiled function on chunks of one size, the last one filled up: it is compiled once for all meshes."""
    try:
        compiled = _compiled(f, gradient)
    except TypeError:  # a callable without a hash
        compiled = _compiled.__wrapped__(f, gradient)
    pieces, size = [], tuning.TABLE_POINTS
    for start in range(0, len(arrays[0]), size):
        rows = [a[start : start + size] for a in arrays]
        filled = [np.concatenate([a, np.repeat(a[-1:], size - len(a), axis=0)]) for a in rows]
        pieces.append(np.asarray(compiled(*filled))[: len(rows[0])])
    return np.concatenate(pieces)


@lru_cache(maxsize=64)
def _compiled(f: Callable, gradient: bool) -> Callable:
    at_point = lambda *point: jnp.asarray(f(*point))
    return jax.jit(jax.vmap(jax.grad(lambda x: at_point(x).astype(float)) if gradient else at_point))


def arity(f: Callable) -> int:
    """How many positional arguments a function wants (1 where it does not say)."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return 1
    return sum(p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def _checked(name: str, values: np.ndarray, shapes: tuple[tuple[int, ...], ...]) -> np.ndarray:
    if values.shape[1:] not in shapes:
        wanted = " or ".join("a number" if not s else f"an array of shape {s}" for s in shapes)
        raise ValueError(f"{name} must be {wanted} at one point, got shape {values.shape[1:]}")
    return values
