"""Relative L² and H¹ errors of a network against an exact solution or data, on points the training never sees."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from natgrad.backend import host
from natgrad.backend.parallel import total
from natgrad.backend.programs import Program
from natgrad.calculus import gradient
from natgrad.domains import Points

Exact = Callable | ArrayLike  # a function of one point, or values at the points
BATCH = 10_000  # points differentiated at a time, which bounds the memory of an evaluation


class ErrorNorms(eqx.Module):
    """‖u − u*‖ / ‖u*‖ in L² and in H¹ (values and first derivatives) by quadrature on independent points; absolute
    errors where u* = 0.

    `exact` is a function of one point, or the values (n,) or (n, m) at the points, which have no H¹ norm. For networks
    with several fields it is a mapping from field names to these: the norms are then taken over all fields named there,
    `l2` and `h1`, and where there are several over each alone: `u.l2`, `u.h1`. u* and ∇u* are evaluated once.
    """

    per_point: ClassVar[bool] = True

    x: Float[Array, "n d"]
    weights: Float[Array, " n"]
    values: Float[Array, "n m"]
    gradients: Float[Array, "n m d"] | None
    fields: tuple[str, ...] | None = eqx.field(static=True)
    sizes: tuple[int, ...] = eqx.field(static=True)  # the components of each field

    def __init__(self, exact: Exact | Mapping[str, Exact], points: Points, dtype: Any):
        self.fields = tuple(exact) if isinstance(exact, Mapping) else None
        self.x, self.weights = host.array(points.x, dtype), host.array(points.weights, dtype)
        parts: list[Any] = [*exact.values()] if isinstance(exact, Mapping) else [exact]
        if callable(parts[0]):
            row = host.row(self.x)
            self.sizes = tuple(jax.eval_shape(lambda x, f=f: jnp.atleast_1d(f(x)), row).size for f in parts)
            target = parts[0] if self.fields is None else lambda x: _stack([f(x) for f in parts])
            table = Program(lambda x: _checked(*_tabulate(target, x)), self.x)
            self.values, self.gradients, finite = table(self.x)
            if not finite:
                raise ValueError("the exact solution or its gradient is not finite at the evaluation points")
        else:
            columns = [np.asarray(part).reshape(len(points), -1) for part in parts]
            self.sizes = tuple(column.shape[1] for column in columns)
            self.values, self.gradients = host.array(np.concatenate(columns, axis=1), dtype), None

    def __call__(self, network: Callable) -> dict[str, Float[Array, ""]]:
        """{"l2": …, "h1": …}, relative, and those of each field."""
        u = network if self.fields is None else self._select(network)
        values, gradients = _tabulate(u, self.x) if self.gradients is not None else (_values(u, self.x), None)
        if values.shape != self.values.shape:
            raise ValueError(f"the network has {values.shape[1]} components, the exact solution {self.values.shape[1]}")
        slopes = None if gradients is None or self.gradients is None else gradients - self.gradients
        error, size = self._squares(values - self.values, slopes), self._squares(self.values, self.gradients)
        return {name: jnp.sqrt(error[name] / jnp.where(size[name] > 0, size[name], 1.0)) for name in error}

    def squares(self) -> dict[str, float]:
        """‖u*‖² in all norms, by which the errors of several sets are joined to one."""
        return {name: float(square) for name, square in self._squares(self.values, self.gradients).items()}

    def _squares(self, values: Float[Array, "n m"], slopes: Float[Array, "n m d"] | None) -> dict[str, Array]:
        """‖·‖² of a function in all norms: of all components together, and by field where there are several."""
        norms = {"l2": total(jnp.einsum("n,nm->m", self.weights, values**2))}
        if slopes is not None:
            norms["h1"] = norms["l2"] + total(jnp.einsum("n,nmd->m", self.weights, slopes**2))
        ends, parts = np.cumsum(self.sizes), {"": slice(None)}
        if self.fields is not None and len(self.fields) > 1:
            parts |= {f"{f}.": slice(b - n, b) for f, b, n in zip(self.fields, ends, self.sizes, strict=True)}
        return {start + norm: jnp.sum(square[part]) for norm, square in norms.items() for start, part in parts.items()}

    def _select(self, network: Any) -> Callable:
        fields = [getattr(network, name) for name in self.fields or ()]
        return lambda x: _stack([f(x) for f in fields])


def _checked(values: Array, gradients: Array) -> tuple[Array, Array, Array]:
    return values, gradients, jnp.all(jnp.isfinite(values)) & jnp.all(jnp.isfinite(gradients))


def _stack(values: list[Array]) -> Array:
    return jnp.concatenate([jnp.atleast_1d(v) for v in values])


def _tabulate(u: Callable, x: Float[Array, "n d"]) -> tuple[Float[Array, "n m"], Float[Array, "n m d"]]:
    """Values and first derivatives at many points, a batch at a time."""

    def at(point: Array) -> tuple[Array, Array]:
        vector = lambda y: jnp.atleast_1d(u(y))
        return vector(point), gradient(vector, point)

    return jax.lax.map(at, x, batch_size=min(BATCH, x.shape[0]))


def _values(u: Callable, x: Float[Array, "n d"]) -> Float[Array, "n m"]:
    """Values alone."""
    return jax.lax.map(lambda y: jnp.atleast_1d(u(y)), x, batch_size=min(BATCH, x.shape[0]))
