"""Quadrature points: where a residual or an energy is evaluated, and how much each point counts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.domains import rules

if TYPE_CHECKING:
    from natgrad.domains.domain import Domain


class Points(eqx.Module):
    """Points with weights, so that ∫ f ≈ Σᵢ weightsᵢ f(xᵢ).

    Boundary points carry outward unit normals; on a space-time boundary the time component of a normal is 0. Points in
    the interior of a domain remember the domain, so that errors can be measured at independent points. All points of
    a domain remember how they were drawn: `redraw` gives other points of the same kind.
    `Points` is a pytree and checks nothing when it is built; the blocks of a problem check theirs by `as_points`.

        square = Box([0, 0], [1, 1])
        points = square.interior(100, rule="gauss")
        points.integrate(points.x[:, 0])  # 0.5
    """

    x: Float[Array, "n d"]
    weights: Float[Array, "n"]
    normals: Float[Array, "n d"] | None = None
    domain: Domain | None = eqx.field(static=True, default=None)
    #: How the points were drawn, part by part in their order (`pieces.Drawn`); None for points given by hand.
    origin: tuple[Any, ...] | None = eqx.field(static=True, default=None)

    def __len__(self) -> int:
        return self.x.shape[0]

    @property
    def dim(self) -> int:
        return self.x.shape[1]

    @property
    def measure(self) -> Float[Array, ""]:
        """The sum of the weights: the measure of the set the points stand for, or 1 for a mean."""
        return jnp.sum(self.weights)

    def integrate(self, values: Float[Array, "n *s"]) -> Float[Array, "*s"]:
        """The weighted sum of values given at the points."""
        return jnp.tensordot(self.weights, values, axes=1)

    @property
    def moving(self) -> bool:
        """Whether some of the points are drawn anew during training, `fresh` or `adaptive`."""
        return any(part.policy is not None for part in self.origin or ())

    def redraw(self, n: int, key: PRNGKeyArray) -> Points | None:
        """About n independent points of the same sets: each part gets its share of the points, and weights of the same
        sum. A Sobol sequence takes the place of a Gauss rule. None for points given or picked by hand."""
        if self.origin is None or sum(part.count for part in self.origin) != len(self):
            return None
        sizes = np.array([part.count for part in self.origin])
        counts = [max(1, m) for m in rules.apportion(n, sizes)]
        ends, keys = np.cumsum(sizes), host.split(key, len(sizes))
        blocks = []
        for part, count, sub, end in zip(self.origin, counts, keys, ends, strict=True):
            fresh = part.again(count, sub)
            weights, own = host.numpy(fresh.weights), host.numpy(self.weights)[end - part.count : end]
            scaled = weights * (own.sum() / weights.sum())  # by 1, unless somebody has scaled them
            blocks.append(dataclasses.replace(fresh, weights=host.array(scaled, fresh.x.dtype)))
        return Points.concatenate(*blocks)

    def __add__(self, other: Points) -> Points:
        if not isinstance(other, Points):
            return NotImplemented
        return Points.concatenate(self, other)

    @staticmethod
    def concatenate(*blocks: Points) -> Points:
        """One block out of several, with normals only where every block has normals, and without a domain. It can be
        drawn again where every block can."""
        if not blocks:
            raise ValueError("Points.concatenate needs at least one block of points, got none")
        if strange := [type(block).__name__ for block in blocks if not isinstance(block, Points)]:
            raise ValueError(f"Points.concatenate takes blocks of ng.Points, got {strange[0]}")
        dims = sorted({block.dim for block in blocks})
        if len(dims) > 1:
            raise ValueError(f"blocks of points of different dimensions {dims} cannot be concatenated")
        normals = [block.normals for block in blocks if block.normals is not None]
        origins = [block.origin for block in blocks if block.origin is not None]
        return Points(
            _join([block.x for block in blocks]),
            _join([block.weights for block in blocks]),
            _join(normals) if len(normals) == len(blocks) else None,
            origin=sum(origins, ()) if len(origins) == len(blocks) else None,
        )


def as_points(x: Points | Float[ArrayLike, "n d"], weights: Float[ArrayLike, "n"] | None = None) -> Points:
    """Checked points from a plain array; the weights default to 1/n, which makes sums means.

    Given `Points`, it checks them, and replaces their weights where `weights` is given; such points cannot be drawn
    again. It checks values where they are concrete; under jit it checks only shapes.
    """
    normals, domain = (x.normals, x.domain) if isinstance(x, Points) else (None, None)
    origin = x.origin if isinstance(x, Points) and weights is None else None
    if isinstance(x, Points) and weights is None:
        weights = x.weights
    x = _as_floats(x.x if isinstance(x, Points) else x, "points")
    if x.ndim != 2:
        hint = "; write x[:, None] for n points on a line" if x.ndim == 1 else ""
        raise ValueError(f"points must have shape (n, d), got {x.shape}{hint}")
    n = x.shape[0]
    if x.size == 0:
        raise ValueError(f"points must not be empty, got shape {x.shape}")
    weights = host.array(np.full(n, 1 / n), x.dtype) if weights is None else _as_floats(weights, "weights")
    if weights.shape != (n,):
        raise ValueError(f"weights must have shape ({n},), one for each point, got {weights.shape}")
    if normals is not None and normals.shape != x.shape:
        raise ValueError(f"normals must have the shape {x.shape} of the points, got {normals.shape}")
    for name, values in (("points", x), ("weights", weights), ("normals", normals)):
        if bad := _count(values, lambda v: ~np.isfinite(v)):
            raise ValueError(f"{name} must be finite, got {bad} entries that are NaN or infinite")
    if bad := _count(weights, lambda v: v < 0):
        raise ValueError(f"weights must not be negative, got {bad} of {n} below zero")
    if _count(weights, lambda v: v == 0) == n:
        raise ValueError(f"weights must not all be zero: nothing would be seen of the {n} points")
    return Points(x, weights, normals, domain, origin)


def _as_floats(values, name: str) -> Float[Array, "..."]:
    try:
        array = host.array(values)
    except (TypeError, ValueError):
        hint = ": draw some, by .interior(n, key=…)" if hasattr(values, "interior") else ""
        hint = ": others at every step are domain.interior(n, key=…, fresh=True)" if callable(values) else hint
        raise ValueError(f"{name} must be an array of numbers, got {type(values).__name__}{hint}") from None
    if jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise ValueError(f"{name} must be real, got {array.dtype}")
    return array if jnp.issubdtype(array.dtype, jnp.floating) else host.array(array, jnp.result_type(float))


def _join(arrays: list[Array]) -> Array:
    return jnp.concatenate(arrays) if host.traced(arrays) else host.array(np.concatenate(arrays))


def _count(values, predicate) -> int:
    """How many entries satisfy the predicate; 0 for absent or traced values, which nothing can be said of."""
    if values is None or isinstance(values, jax.core.Tracer):
        return 0
    return int(np.sum(predicate(np.asarray(values))))
