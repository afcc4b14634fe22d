"""Simple polygons in the plane."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

import equinox as eqx
import numpy as np

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.domain import Domain
from natgrad.domains.pieces import Frozen, Pieces, sample
from natgrad.domains.points import Points
from natgrad.domains.simplices import Simplices
from natgrad.domains.triangulate import check_simple, signed_area, triangulate


class Polygon(Domain):
    """The inside of a closed polygonal line that does not meet itself, in either orientation.

        ell = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
        ell.measure                                   # 3.0
        ell.interior(1000, key=jax.random.key(0))
        ell.boundary(100, rule="gauss", edges=[0])    # from (0, 0) to (2, 0)

    Edge i joins vertex i to vertex i + 1, in the given order. A straight angle splits an edge in two, for boundary
    conditions that change along it. Gauss rules are collapsed products on the triangles of an ear-clipping
    triangulation. As a tuple, n is (m₁, m₂) for each triangle and (m,) for each edge.
    """

    vertices: tuple[tuple[float, float], ...] = eqx.field(static=True)
    triangles: tuple[tuple[int, int, int], ...] = eqx.field(static=True)

    def __init__(self, vertices):
        corners = _as_corners(vertices)
        check_simple(corners)
        self.vertices = tuple(map(tuple, corners.tolist()))
        self.triangles = triangulate(corners)

    def __repr__(self) -> str:
        return f"Polygon({list(self.vertices)})"

    @property
    def dim(self) -> int:
        return 2

    def contains(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        # Even-odd rule: count the edges that a ray to the right crosses.
        (px, py), (a, b) = (x[..., 0, None], x[..., 1, None]), self._ends(x.dtype)
        crosses = (a[:, 1] > py) != (b[:, 1] > py)
        run = np.where(a[:, 1] == b[:, 1], 1, b[:, 1] - a[:, 1])
        right = px < a[:, 0] + (py - a[:, 1]) * (b[:, 0] - a[:, 0]) / run
        odd = (crosses & right).sum(axis=-1) % 2 == 1
        return host.array(odd | (self._distance(x) <= tol))

    def on_boundary(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        return host.array(self._distance(x) <= tol)

    def _distance(self, x):
        """From points to the nearest edge."""
        a, b = self._ends(x.dtype)
        along, offset = b - a, x[..., None, :] - a
        t = ((offset * along).sum(axis=-1) / (along**2).sum(axis=-1)).clip(0, 1)
        return rules.namespace(x).linalg.norm(offset - t[..., None] * along, axis=-1).min(axis=-1)

    def boundary(
        self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, edges: Sequence[int] | None = None
    ) -> Points:
        """n points on the boundary, or on the edges with the given numbers."""
        return sample(self.boundary_pieces(edges), n, key, rule, fresh, adaptive)

    def interior_pieces(self) -> Pieces:
        return Simplices(Frozen(np.array(self.vertices)[np.array(self.triangles)]))

    def boundary_pieces(self, edges: Sequence[int] | None = None) -> Pieces:
        a, b = self._ends(float)
        chosen = _check_edges(range(len(a)) if edges is None else edges, len(a))
        tangents = np.sign(signed_area(a)) * (b - a)[chosen] / np.linalg.norm(b - a, axis=1)[chosen, None]
        normals = np.stack([tangents[:, 1], -tangents[:, 0]], axis=1)
        return Simplices(Frozen(np.stack([a[chosen], b[chosen]], axis=1)), Frozen(normals))

    def bounds(self):
        return tuple(map(min, zip(*self.vertices, strict=True))), tuple(map(max, zip(*self.vertices, strict=True)))

    def _ends(self, dtype) -> tuple[np.ndarray, np.ndarray]:
        starts = np.array(self.vertices, dtype)
        return starts, np.roll(starts, -1, axis=0)


def _as_corners(vertices) -> np.ndarray:
    try:
        corners = np.asarray(vertices, float)
    except (TypeError, ValueError):
        raise ValueError("vertices must be a list of pairs of numbers (x, y)") from None
    if corners.ndim != 2 or corners.shape[1] != 2:
        raise ValueError(f"vertices must be a list of pairs (x, y), got shape {corners.shape}")
    if not np.isfinite(corners).all():
        raise ValueError(f"vertices must be finite, got {corners.tolist()}")
    if len(corners) > 1 and np.array_equal(corners[0], corners[-1]):
        corners = corners[:-1]  # a ring written with its first corner repeated at the end
    if len(corners) < 3:
        raise ValueError(f"a polygon needs at least 3 distinct vertices, got {len(corners)}")
    return corners


def _check_edges(edges: Sequence[int], count: int) -> list[int]:
    if not isinstance(edges, Iterable):
        raise ValueError(f"edges must be a list, got {edges!r}, the edges are numbered from 0 to {count - 1}")
    checked: list[int] = []
    for edge in edges:
        try:
            index = operator.index(edge)
        except TypeError:
            index = -1
        if index not in range(count):
            raise ValueError(f"unknown edge {edge!r}, the edges are numbered from 0 to {count - 1}")
        if index in checked:
            raise ValueError(f"edge {edge!r} is given twice")
        checked.append(index)
    if not checked:
        raise ValueError(f"edges must not be empty, the edges are numbered from 0 to {count - 1}")
    return checked
