"""Simple polygons in the plane."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import equinox as eqx
import numpy as np

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.domain import Domain
from natgrad.domains.pieces import Pieces, sample
from natgrad.domains.points import Points
from natgrad.domains.triangulate import check_simple, signed_area, triangulate

Vertex = tuple[float, float]


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
        return Triangles(tuple(tuple(self.vertices[i] for i in corners) for corners in self.triangles))

    def boundary_pieces(self, edges: Sequence[int] | None = None) -> Pieces:
        a, b = self._ends(float)
        chosen = _check_edges(range(len(a)) if edges is None else edges, len(a))
        starts, ends = (tuple(map(tuple, v[chosen].tolist())) for v in (a, b))
        return Edges(starts, ends, float(np.sign(signed_area(a))))

    def bounds(self):
        return tuple(map(min, zip(*self.vertices, strict=True))), tuple(map(max, zip(*self.vertices, strict=True)))

    def _ends(self, dtype) -> tuple[np.ndarray, np.ndarray]:
        starts = np.array(self.vertices, dtype)
        return starts, np.roll(starts, -1, axis=0)


@dataclass(frozen=True)
class Triangles(Pieces):
    """Triangles (p, 3, 2). The cube maps to v₀ + s ((1 - t)(v₁ - v₀) + t (v₂ - v₀)) with s = √u₀, t = u₁."""

    corners: tuple[tuple[Vertex, ...], ...]

    dim = 2
    cube_dim = 2

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return np.array([signed_area(np.array(triangle)) for triangle in self.corners])

    def place(self, piece, u):
        xp = rules.namespace(u)
        corners = xp.asarray(np.array(self.corners), u.dtype)[piece]
        s, t = xp.sqrt(u[:, :1]), u[:, 1:]
        return (1 - s) * corners[:, 0] + s * ((1 - t) * corners[:, 1] + t * corners[:, 2]), None

    def axis_counts(self, n, piece):
        return n if isinstance(n, tuple) else (rules.per_axis(n, 2),) * 2

    def axis_rules(self, counts):
        s, weights = rules.gauss_power(counts[0], 1.0)
        return [(s**2, weights), rules.gauss_legendre(counts[1])]


@dataclass(frozen=True)
class Edges(Pieces):
    """Segments from starts to ends, (p, 2) each, of a polygon of orientation +1 (counter-clockwise) or -1."""

    starts: tuple[Vertex, ...]
    ends: tuple[Vertex, ...]
    orientation: float

    dim = 1
    cube_dim = 1

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return np.linalg.norm(np.subtract(self.ends, self.starts), axis=1)

    def place(self, piece, u):
        tangents = self.orientation * np.subtract(self.ends, self.starts) / self.measures[:, None]
        normals = np.stack([tangents[:, 1], -tangents[:, 0]], axis=1)
        starts, ends, normals = (
            rules.namespace(u).asarray(np.array(v), u.dtype)[piece] for v in (self.starts, self.ends, normals)
        )
        return (1 - u) * starts + u * ends, normals

    def axis_counts(self, n, piece):
        return n if isinstance(n, tuple) else (n,)


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
