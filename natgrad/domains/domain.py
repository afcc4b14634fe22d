"""What a domain is: a bounded open set, its boundary, and points on both."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, PRNGKeyArray

from natgrad.domains.moving import ByResidual
from natgrad.domains.pieces import Pieces, sample
from natgrad.domains.points import Points

Bounds = tuple[tuple[float, ...], tuple[float, ...]]


class Domain(eqx.Module):
    """A bounded set in ℝᵈ that gives points, with weights, in its interior and on its boundary.

    Rules, for interior and boundary alike:

    - "monte-carlo": independent uniform points. It needs a `key`, and works under jit (n static) on every domain. Where
      points are drawn by rejection, the number of candidates is fixed by n, and enough but once in 10¹² draws; points
      are then repeated.
    - "sobol": quasi-Monte Carlo, scrambled with a seed derived from `key`, or with a fixed seed without a key. It
      takes any n; powers of two are best. It works only outside jit.
    - "gauss": product Gauss rules, where the domain has them. They give the product nearest to n, for example m^d
      points on a box with m = round(n^(1/d)). n may also be a tuple with the number of points along each axis. There is
      no key.

    Points are the same throughout a training, unless they are `fresh=True`, drawn anew at every step, or adaptive,
    `adaptive=ng.ByResidual()`. Both take "monte-carlo" or "sobol".

    Weights are positive and sum to the measure of the set. Points have JAX's default float dtype.
    Domains are immutable, hashable and have no array leaves: a function may close over them, and jit accepts them.
    """

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """The number d of coordinates of a point."""

    @abc.abstractmethod
    def contains(self, x: Float[ArrayLike, "*n d"], tol: float | None = None) -> Bool[Array, "*n"]:
        """Whether points lie in the closed domain, up to a distance tol, by default a few round-offs."""

    @abc.abstractmethod
    def on_boundary(self, x: Float[ArrayLike, "*n d"], tol: float | None = None) -> Bool[Array, "*n"]:
        """Whether points lie on the boundary, up to a distance tol, by default a few round-offs."""

    @abc.abstractmethod
    def interior_pieces(self) -> Pieces:
        """The domain as a union of images of the unit cube."""

    @abc.abstractmethod
    def boundary_pieces(self) -> Pieces:
        """The boundary as a union of images of the unit cube. Domains may add arguments that choose a part."""

    @abc.abstractmethod
    def bounds(self) -> Bounds:
        """The corners (lower, upper) of the smallest axis-parallel box around the domain; of a combination in space,
        of one that may be larger."""

    def scale(self) -> float:
        """The largest absolute coordinate, which sets the size of round-off errors."""
        return max(abs(c) for corner in self.bounds() for c in corner)

    @abc.abstractmethod
    def boundary(
        self,
        n: int | Sequence[int],
        *,
        key: PRNGKeyArray | None = None,
        rule: str = "monte-carlo",
        fresh: bool = False,
        adaptive: ByResidual | None = None,
    ) -> Points:
        """n points on the boundary, with outward unit normals."""

    def interior(
        self,
        n: int | Sequence[int],
        *,
        key: PRNGKeyArray | None = None,
        rule: str = "monte-carlo",
        fresh: bool = False,
        adaptive: ByResidual | None = None,
    ) -> Points:
        """n points in the domain."""
        return dataclasses.replace(sample(self.interior_pieces(), n, key, rule, fresh, adaptive), domain=self)

    def __sub__(self, other: Domain) -> Domain:
        return self._combine("-", other)

    def __or__(self, other: Domain) -> Domain:
        return self._combine("|", other)

    def __and__(self, other: Domain) -> Domain:
        return self._combine("&", other)

    def _combine(self, operation: str, other: Domain) -> Domain:
        if not isinstance(other, Domain):
            return NotImplemented
        from natgrad.domains.combined import combine

        return combine(operation, self, other)

    def __mul__(self, other: Any) -> Domain:
        from natgrad.domains.parameters import Parameters, Parametric

        return Parametric(self, other) if isinstance(other, Parameters) else NotImplemented

    @property
    def cylinder(self) -> Any:
        """What a domain that is a product has beside its `base`: an interval of time, or parameters; else None."""
        return None

    @property
    def measure(self) -> float:
        """The length, area or volume of the domain."""
        return self.interior_pieces().measure

    @property
    def boundary_measure(self) -> float:
        """The number of points, length or area of the boundary."""
        return self.boundary_pieces().measure

    def as_coordinates(self, x: Float[ArrayLike, "*n d"], tol: float | None):
        """x as floats, checked, in numpy where it is concrete; the tolerance, given or by default."""
        array: Any = x if isinstance(x, jax.core.Tracer) else np.asarray(x)
        if array.ndim == 0 or array.shape[-1] != self.dim:
            raise ValueError(f"points of {self} must have {self.dim} coordinates, got shape {array.shape}")
        array = array.astype(jnp.promote_types(jnp.result_type(array), jnp.float32))
        if tol is None:
            tol = 64 * float(jnp.finfo(array.dtype).eps) * self.scale()
        return array, tol


def as_vector(values, name: str) -> tuple[float, ...]:
    """A point as a tuple of finite floats; a plain number is a point on the line."""
    try:
        vector = np.atleast_1d(np.asarray(values, float))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a list of numbers, got {values!r}") from None
    if vector.ndim != 1 or vector.size == 0:
        raise ValueError(f"{name} must be a list of d ≥ 1 numbers, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite, got {vector.tolist()}")
    return tuple(vector.tolist())
