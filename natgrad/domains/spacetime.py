"""Intervals, and space-time cylinders: an interval of time with any domain of space."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx

from natgrad.backend import host
from natgrad.domains.box import Box, Face
from natgrad.domains.domain import Domain
from natgrad.domains.pieces import Pieces, Product, Slice, sample
from natgrad.domains.points import Points
from natgrad.options import checked


class Interval(Domain):
    """The interval (a, b): a one-dimensional domain, and the time of a `SpaceTime`.

        heat = Interval(0, 1) * Box([0, 0], [1, 1])  # SpaceTime, points (t, x₁, x₂)

    Its boundary is the two ends, each with weight 1.
    """

    a: float = eqx.field(static=True)
    b: float = eqx.field(static=True)

    @checked
    def __init__(self, a: float, b: float):
        self.a, self.b = float(a), float(b)
        if self.a >= self.b:
            raise ValueError(f"an interval needs a less than b, got a={self.a} and b={self.b}")

    def __repr__(self) -> str:
        return f"Interval({self.a}, {self.b})"

    def __mul__(self, other):
        return SpaceTime(self, other) if isinstance(other, Domain) else super().__mul__(other)

    @property
    def dim(self) -> int:
        return 1

    def contains(self, x, tol=None):
        return self._box().contains(x, tol)

    def on_boundary(self, x, tol=None):
        return self._box().on_boundary(x, tol)

    def boundary(
        self, n=2, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, faces: Sequence[Face] | None = None
    ) -> Points:
        """The two ends, or one of them, with weight 1 each, for every n and rule."""
        return self._box().boundary(n, key=key, rule=rule, fresh=fresh, adaptive=adaptive, faces=faces)

    def interior_pieces(self) -> Pieces:
        return self._box().interior_pieces()

    def boundary_pieces(self, faces: Sequence[Face] | None = None) -> Pieces:
        return self._box().boundary_pieces(faces)

    def bounds(self):
        return (self.a,), (self.b,)

    def _box(self) -> Box:
        return Box(self.a, self.b)


class SpaceTime(Domain):
    """The cylinder I × Ω of an interval of time and a domain of space; time is the FIRST coordinate.

        heat = SpaceTime(Interval(0, 2), Ball([0, 0], 1))
        heat.interior(1000, key=jax.random.key(0)).x  # (1000, 3): rows (t, x₁, x₂)
        heat.initial(100, rule="gauss").measure       # π

    `boundary`, `boundary_measure` and `on_boundary` mean the lateral boundary I × ∂Ω, which carries the boundary
    conditions. `initial` and `final` give the bottom {a} × Ω and the top {b} × Ω.
    """

    time: Interval
    space: Domain

    def __init__(self, time: Interval, space: Domain):
        if not isinstance(time, Interval):
            raise ValueError(f"the time of a SpaceTime must be an Interval, got {time!r}")
        if (
            not isinstance(space, Domain)
            or isinstance(getattr(space, "base", space), SpaceTime)
            or isinstance(space, SpaceTime)
        ):
            raise ValueError(f"the space of a SpaceTime must be a domain without time, got {space!r}")
        self.time, self.space = time, space

    def __repr__(self) -> str:
        return f"SpaceTime({self.time}, {self.space})"

    @property
    def dim(self) -> int:
        return 1 + self.space.dim

    def contains(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        return _both(self.time.contains(x[..., :1], tol), self.space.contains(x[..., 1:], tol))

    def on_boundary(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        return _both(self.time.contains(x[..., :1], tol), self.space.on_boundary(x[..., 1:], tol))

    def boundary(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, **part) -> Points:
        """n points on the lateral boundary I × ∂Ω, with normals (0, ν).

        `part` is the argument by which the space domain chooses a part of its boundary, in its own numbering of
        axes: `faces=` for boxes and `edges=` for polygons.
        """
        return sample(self.boundary_pieces(**part), n, key, rule, fresh, adaptive)

    def initial(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None) -> Points:
        """n points at the first time, with weights that sum to |Ω|."""
        return sample(Slice(self.space.interior_pieces(), self.time.a), n, key, rule, fresh, adaptive)

    def final(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None) -> Points:
        """n points at the last time, with weights that sum to |Ω|."""
        return sample(Slice(self.space.interior_pieces(), self.time.b), n, key, rule, fresh, adaptive)

    def interior_pieces(self) -> Pieces:
        return self._over_time(self.space.interior_pieces())

    def boundary_pieces(self, **part) -> Pieces:
        return self._over_time(self.space.boundary_pieces(**part))

    @property
    def cylinder(self):
        return self.time

    @property
    def base(self) -> Domain:
        return self.space

    def on_base(self, base: Domain) -> SpaceTime:
        """The cylinder of the same time over another base."""
        return SpaceTime(self.time, base)

    def _over_time(self, base: Pieces) -> Pieces:
        return Product(base, (self.time.a,), (self.time.b,), first=True)

    def bounds(self):
        (start, end), (lower, upper) = self.time.bounds(), self.space.bounds()
        return start + lower, end + upper


def _both(a, b):
    return host.array(host.numpy(a) & host.numpy(b))
