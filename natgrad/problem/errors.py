"""Relative L² and H¹ errors of a network against an exact solution, on points the training never sees."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from natgrad.backend import host
from natgrad.backend.parallel import total
from natgrad.backend.programs import Program
from natgrad.calculus import gradient
from natgrad.domains import Points

BATCH = 10_000  # points differentiated at a time, which bounds the memory of an evaluation


class ErrorNorms(eqx.Module):
    """‖u − u*‖ / ‖u*‖ in L² and in H¹ (values and first derivatives) by quadrature on independent points; absolute
    errors where u* = 0.

    `exact` is a function of one point, or a mapping from field names to functions for networks with several fields:
    the norms are then taken over the fields named there. u* and ∇u* are evaluated once.
    """

    per_point: ClassVar[bool] = True

    x: Float[Array, "n d"]
    weights: Float[Array, " n"]
    values: Float[Array, "n m"]
    gradients: Float[Array, "n m d"]
    fields: tuple[str, ...] | None = eqx.field(static=True)

    def __init__(self, exact: Callable | Mapping[str, Callable], points: Points, dtype: Any):
        self.fields = tuple(exact) if isinstance(exact, Mapping) else None
        self.x, self.weights = host.array(points.x, dtype), host.array(points.weights, dtype)
        target = exact if callable(exact) else lambda x: _stack([f(x) for f in exact.values()])
        table = Program(lambda x: _checked(*_tabulate(target, x)), self.x)
        self.values, self.gradients, finite = table(self.x)
        if not finite:
            raise ValueError("the exact solution or its gradient is not finite at the evaluation points")

    def __call__(self, network: Callable) -> dict[str, Float[Array, ""]]:
        """{"l2": …, "h1": …}, relative."""
        u = network if self.fields is None else self._select(network)
        values, gradients = _tabulate(u, self.x)
        if values.shape != self.values.shape:
            raise ValueError(f"the network has {values.shape[1]} components, the exact solution {self.values.shape[1]}")
        l2 = total(jnp.einsum("n,nm->", self.weights, (values - self.values) ** 2))
        h1 = l2 + total(jnp.einsum("n,nmd->", self.weights, (gradients - self.gradients) ** 2))
        size = total(jnp.einsum("n,nm->", self.weights, self.values**2))
        size_h1 = size + total(jnp.einsum("n,nmd->", self.weights, self.gradients**2))
        relative = lambda error, size: jnp.sqrt(error / jnp.where(size > 0, size, 1.0))
        return {"l2": relative(l2, size), "h1": relative(h1, size_h1)}

    def squares(self) -> dict[str, float]:
        """‖u*‖² in both norms, by which the errors of several sets are joined to one."""
        l2 = float(jnp.einsum("n,nm->", self.weights, self.values**2))
        return {"l2": l2, "h1": l2 + float(jnp.einsum("n,nmd->", self.weights, self.gradients**2))}

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
