"""Grids of domains, the boundary included: points and cells for other tools."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from natgrad.backend import host
from natgrad.domains.ball import Ball
from natgrad.domains.domain import Domain
from natgrad.domains.mesh import Mesh
from natgrad.domains.polygon import Polygon
from natgrad.domains.spacetime import SpaceTime

KINDS = ("line", "quad", "hexahedron")  # the cells of a box, by dimension; the corners of each as VTK has them
FACETS = {
    "line": ((0,), (1,)),
    "triangle": ((0, 1), (1, 2), (2, 0)),
    "quad": ((0, 1), (1, 2), (2, 3), (3, 0)),
    "tetra": ((0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3)),
    "hexahedron": ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 5, 4), (1, 2, 6, 5), (2, 3, 7, 6), (3, 0, 4, 7)),
}
HUGE = 10**9  # more along an axis has no name in a message
BENT = -0.1  # how far a corner may be bent inwards, of the size of a cell
MANY = 200_000  # points of a boundary among which the nearest is looked for
SIZES = {1: 200, 2: 100, 3: 32}  # cells along an axis, where nobody says


@dataclass(frozen=True)
class Grid:
    """Points (n, d), and cells by kind, each a row of the numbers of its corners."""

    points: np.ndarray
    cells: tuple[tuple[str, np.ndarray], ...]

    @cached_property
    def boundary(self) -> np.ndarray | None:
        """Which points (n,) lie on facets of one cell alone; None where cells are bent."""
        found: dict[int, list[np.ndarray]] = {}  # by the number of their corners
        for kind, cells in self.cells:
            if kind not in FACETS:
                return None
            for facet in FACETS[kind]:
                found.setdefault(len(facet), []).append(np.sort(cells[:, list(facet)], axis=1))
        marked = np.zeros(len(self.points), bool)
        for facets in found.values():
            rows, counts = np.unique(np.concatenate(facets), axis=0, return_counts=True)
            marked[rows[counts == 1]] = True
        return marked


def grid(domain: Domain, cells: int | None = None) -> Grid:
    """The grid of a domain with `cells` cells along each axis.

    Boxes and balls are divided evenly, polygons into triangles. A mesh is its own unless a number is given. Of any
    other domain it is the cells of the box around it whose middle is inside, `fitted` to the boundary.
    """
    if isinstance(domain, SpaceTime):
        raise ValueError("the grid of a SpaceTime is that of its space, at some times")
    if not isinstance(domain, Domain):
        raise ValueError(f"a grid is that of a domain such as ng.Box(lower, upper), got {type(domain).__name__}")
    if domain.dim > 3:
        raise ValueError(f"a grid has 1 to 3 coordinates of space, and {domain} has {domain.dim}")
    n = SIZES[domain.dim] if cells is None else cells
    if isinstance(domain, Mesh) and cells is None:
        return Grid(domain.points.values, (("triangle" if domain.dim == 2 else "tetra", domain.cells.values),))
    if isinstance(domain, Polygon):
        return _triangles(domain, n)
    if isinstance(domain, Ball):
        cube = box(*((-1,) * domain.dim, (1,) * domain.dim), n)
        length, width = np.linalg.norm(cube.points, axis=1), abs(cube.points).max(axis=1)
        round_ = cube.points * (width / np.where(length > 0, length, 1.0))[:, None]
        return Grid(np.array(domain.center) + domain.radius * round_, cube.cells)
    return fitted(box(*domain.bounds(), n, lambda x: np.asarray(domain.contains(x))), domain)


def fitted(stairs: Grid, domain: Domain) -> Grid:
    """A grid of whole cells of a box, its outer points moved onto the boundary: each to the nearest of many points
    there, unless it lies on the boundary already, or a cell of it would be turned over."""
    ((kind, cells),) = stairs.cells
    outer = np.flatnonzero(np.asarray(stairs.boundary))
    outer = outer[~np.asarray(domain.on_boundary(stairs.points[outer]))]
    if domain.dim == 1 or not len(outer):
        return stairs
    from scipy.spatial import cKDTree

    there = np.asarray(domain.boundary(min(30 * len(outer), MANY), rule="sobol").x, float)
    near, which = cKDTree(there).query(stairs.points[outer])
    size = np.linalg.norm(np.ptp(stairs.points[cells[0]], axis=0))
    moved, points = outer[near < size], stairs.points.copy()
    points[moved] = there[which[near < size]]
    while len(moved):  # back with those of cells that are turned over, be it at one corner
        turned = np.unique(cells[turning(points[cells]).min(axis=1) < BENT * size**domain.dim])
        if not np.isin(turned, moved).any():
            break
        back, moved = np.intersect1d(moved, turned), np.setdiff1d(moved, turned)
        points[back] = stairs.points[back]
    return Grid(points, ((kind, cells),))


def turning(x: np.ndarray) -> np.ndarray:
    """The determinant of the edges at each corner of quads (k, 4, 2) or hexahedra (k, 8, 3); none is below 0 in a cell
    that is not turned over."""
    if x.shape[1] == 4:
        ahead, behind = np.roll(x, -1, axis=1) - x, np.roll(x, 1, axis=1) - x
        return ahead[..., 0] * behind[..., 1] - ahead[..., 1] * behind[..., 0]
    around = np.array([(1, 3, 4), (2, 0, 5), (3, 1, 6), (0, 2, 7), (7, 5, 0), (4, 6, 1), (5, 7, 2), (6, 4, 3)])
    return np.linalg.det(x[:, around] - x[:, :, None])


def box(lower: Sequence[float], upper: Sequence[float], n: int, inside: Callable | None = None) -> Grid:
    """n cells along each axis of a box; only those whose middle is `inside`, a function of many points (m, d)."""
    dim = len(lower)
    host.afford(20.0 * (min(n, HUGE) + 1.0) ** dim, f"a grid of {' × '.join([str(n)] * dim)} cells")
    axes = [np.linspace(a, b, n + 1) for a, b in zip(lower, upper, strict=True)]
    points = np.stack([x.ravel() for x in np.meshgrid(*axes, indexing="ij")], axis=1)
    numbers = np.arange(len(points)).reshape((n + 1,) * dim)
    corners: list[tuple[int, ...]] = [(0,), (1,)]
    if dim > 1:
        square = [(0, 0), (1, 0), (1, 1), (0, 1)]
        corners = list(square) if dim == 2 else [(*corner, z) for z in (0, 1) for corner in square]
    part = lambda corner: numbers[tuple(slice(shift, n + shift) for shift in corner)].ravel()
    cells = np.stack([part(corner) for corner in corners], axis=1)
    if inside is not None:
        cells = cells[inside(points[cells].mean(axis=1))]
    return _used(points, KINDS[dim - 1], cells)


def _used(points: np.ndarray, kind: str, cells: np.ndarray) -> Grid:
    """A grid without points that belong to no cell."""
    kept, numbers = np.unique(cells, return_inverse=True)
    return Grid(points[kept], ((kind, numbers.reshape(cells.shape)),))


def _triangles(domain: Polygon, n: int) -> Grid:
    """The triangles of a polygon, each cut into m², with sides about an n-th of the polygon."""
    corners = np.array(domain.vertices)[np.array(domain.triangles)]  # (p, 3, 2)
    size = float(np.ptp(corners.reshape(-1, 2), axis=0).max())
    longest = float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max())
    m = max(1, round(min(n, HUGE) * longest / size))
    host.afford(20.0 * len(corners) * m**2, f"a grid of {len(corners)} × {m}² triangles")
    i, j = (index.ravel() for index in np.meshgrid(np.arange(m + 1), np.arange(m + 1), indexing="ij"))
    i, j = i[i + j <= m], j[i + j <= m]
    numbers = np.full((m + 2, m + 2), -1)
    numbers[i, j] = np.arange(len(i))
    upward = np.stack([numbers[i, j], numbers[i + 1, j], numbers[i, j + 1]], axis=1)
    downward = np.stack([numbers[i + 1, j], numbers[i + 1, j + 1], numbers[i, j + 1]], axis=1)
    inner = np.concatenate([upward, downward])
    inner = inner[(inner >= 0).all(axis=1)]
    shares = np.stack([m - i - j, i, j], axis=1) / m
    points = np.einsum("kc,pcd->pkd", shares, corners).reshape(-1, 2)
    cells = (inner[None] + len(i) * np.arange(len(corners))[:, None, None]).reshape(-1, 3)
    # Points on a common side belong to both triangles.
    _, first, same = np.unique(np.round(points / (1e-9 * size)), axis=0, return_index=True, return_inverse=True)
    return Grid(points[first], (("triangle", same.ravel()[cells]),))
