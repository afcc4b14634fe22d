"""Domains from files: meshes of triangles and tetrahedra, and closed surfaces of triangles."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import numpy as np
import scipy

from natgrad.domains.facets import Faceted, Filled, normals, volume
from natgrad.domains.pieces import Frozen, Pieces
from natgrad.domains.simplices import Simplices
from natgrad.extras import hushed, needs

WELD = 1e-9  # corners as close as this, relative to the size, are one
FLAT = 1e-14  # triangles of less area, relative to the size squared, close a surface and have no normal


class Mesh(Faceted):
    """A mesh of triangles in the plane or tetrahedra in space, with named parts of its boundary.

        plate = Mesh("plate.msh")                              # what Gmsh writes, and meshio reads; groups give names
        plate = Mesh(points, triangles, {"left": lambda x: x[0] == 0})
        plate.interior(2000, key=jax.random.key(0)); plate.boundary(100, part="left", rule="gauss")
        ng.fem.Space(plate, degree=2)

    A scikit-fem mesh will do too. `boundaries` are facets, as rows of d numbers of points, or functions of their
    midpoints x (d, m). Gauss rules are collapsed products on every cell; as a tuple, n is (m₁, …) on a cell or a facet.
    """

    points: Frozen = eqx.field(static=True)
    cells: Frozen = eqx.field(static=True)
    facets: Frozen = eqx.field(static=True)
    parts: tuple[tuple[str, Frozen], ...] = eqx.field(static=True)

    def __init__(self, source: Any, cells: Any = None, boundaries: Mapping[str, Any] | None = None):
        if cells is None:
            source, cells, found = _of_skfem(_read(source) if isinstance(source, str | os.PathLike) else source)
            boundaries = found | dict(boundaries or {})
        points, cells = _as_points(source), np.asarray(cells)
        d = points.shape[1]
        if cells.ndim != 2 or cells.shape[1] != d + 1 or not len(cells) or not np.issubdtype(cells.dtype, np.integer):
            raise ValueError(
                f"cells of a mesh in {d}D must be rows of {d + 1} numbers of points, got shape {cells.shape}"
            )
        if cells.min() < 0 or cells.max() >= len(points):
            raise ValueError(
                f"cells must number points from 0 to {len(points) - 1}, got {cells.min()} to {cells.max()}"
            )
        measures = Simplices(Frozen(points[cells])).measures
        if flat := int(np.sum(measures <= 1e-14 * measures.max())):
            raise ValueError(f"{flat} of {len(cells)} cells of the mesh have no {'area' if d == 2 else 'volume'}")
        outer = _boundary(points, cells)
        self.points, self.cells, self.facets, self.parts = Frozen(points), Frozen(cells), Frozen(points[outer]), ()
        self.parts = tuple((name, Frozen(self._named(name, one, outer))) for name, one in (boundaries or {}).items())

    def __repr__(self) -> str:
        return f"Mesh({len(self.cells.values)} {'triangles' if self.dim == 2 else 'tetrahedra'})"

    def _named(self, name: str, part: Any, outer: np.ndarray) -> np.ndarray:
        """The numbers of the facets of a part that has no name yet."""
        if callable(part):
            return self._numbers(part)
        wanted = {tuple(sorted(row)) for row in np.asarray(part).tolist()}
        found = [i for i, row in enumerate(outer.tolist()) if tuple(sorted(row)) in wanted]
        if not found:
            raise ValueError(f"no facet of the boundary belongs to {name!r}")
        return np.array(found)

    def interior_pieces(self) -> Pieces:
        return Simplices(Frozen(self.points.values[self.cells.values]))

    def to_skfem(self) -> Any:
        """The scikit-fem mesh, with the same names."""
        with needs("A mesh", "fem"):
            from skfem import MeshTet, MeshTri

        kind = MeshTri if self.dim == 2 else MeshTet
        mesh = kind(np.ascontiguousarray(self.points.values.T), np.ascontiguousarray(self.cells.values.T))
        outer = mesh.boundary_facets()
        middles = mesh.p[:, mesh.facets[:, outer]].mean(axis=1).T
        near = scipy.spatial.cKDTree(middles).query(self.facets.values.mean(axis=1))[1]
        return mesh.with_boundaries({name: outer[near[part.values]] for name, part in self.parts})


class Surface(Faceted):
    """What is within a closed surface of triangles in space, from a file (STL, OBJ, PLY, …) or from arrays.

        part = Surface("part.stl")
        part.interior(2000, rule="sobol"); part.boundary(500, rule="sobol", part=lambda x: x[2] > 1)

    Points inside are drawn by rejection, and weights sum to the volume within. A surface that leaks is refused.
    """

    facets: Frozen = eqx.field(static=True)
    parts: tuple[tuple[str, Frozen], ...] = eqx.field(static=True)

    def __init__(self, source: Any, triangles: Any = None):
        if triangles is None:
            source, triangles = _read_surface(source)
        points, triangles = _as_points(source), np.asarray(triangles)
        if points.shape[1] != 3 or triangles.ndim != 2 or triangles.shape[1] != 3 or not len(triangles):
            raise ValueError(
                f"a surface needs points (n, 3) and triangles (m, 3), got {points.shape} and {triangles.shape}"
            )
        triangles = _closed(points, triangles)
        facets = points[triangles]
        doubled = np.linalg.norm(np.cross(facets[:, 1] - facets[:, 0], facets[:, 2] - facets[:, 0]), axis=1)
        facets = facets[doubled > FLAT * np.ptp(points, axis=0).max() ** 2]
        self.facets, self.parts = Frozen(facets if volume(facets) > 0 else facets[:, ::-1]), ()

    def __repr__(self) -> str:
        return f"Surface({len(self.facets.values)} triangles)"

    def interior_pieces(self) -> Pieces:
        return Filled(self.facets)


def _as_points(values: Any) -> np.ndarray:
    try:
        points = np.asarray(values, float)
    except (TypeError, ValueError):
        raise ValueError(f"a mesh is a path, or points (n, d) and cells, got {type(values).__name__}") from None
    if points.ndim != 2 or points.shape[1] not in (2, 3) or not np.isfinite(points).all():
        raise ValueError(f"points of a mesh must be finite, of shape (n, 2) or (n, 3), got shape {points.shape}")
    return points


def _read(path: Any) -> Any:
    with needs("A mesh file", "mesh"):
        import meshio  # noqa: F401
    with needs("A mesh file", "fem"):
        from skfem import Mesh as Loaded
    if not os.path.isfile(path):
        raise ValueError(f"there is no mesh file {os.fspath(path)}")
    try:
        with hushed():
            return Loaded.load(path)
    except (Exception, SystemExit) as error:  # meshio ends the process where it cannot read a file
        raise ValueError(f"{os.fspath(path)} is no mesh that meshio and scikit-fem read: {_line(error)}") from None


def _of_skfem(mesh: Any) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    if not hasattr(mesh, "p") or not hasattr(mesh, "boundary_facets"):
        raise ValueError(f"a mesh is a path, a scikit-fem mesh, or points (n, d) and cells, got {type(mesh).__name__}")
    if mesh.t.shape[0] != mesh.p.shape[0] + 1:
        raise ValueError(f"ng.Mesh takes triangles and tetrahedra, got {type(mesh).__name__}")
    outer = set(mesh.boundary_facets().tolist())
    named = {
        name: [f for f in np.asarray(facets).tolist() if f in outer] for name, facets in (mesh.boundaries or {}).items()
    }
    return mesh.p.T, mesh.t.T, {name: mesh.facets[:, facets].T for name, facets in named.items() if facets}


def _read_surface(path: Any) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"a surface is a path, or points (n, 3) and triangles, got {type(path).__name__}")
    with needs("A surface file", "mesh"):
        import meshio
    if not os.path.isfile(path):
        raise ValueError(f"there is no surface file {os.fspath(path)}")
    try:
        with hushed(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes that overflow, where meshio tries whether a text is binary
            mesh = meshio.read(path)
        if "triangle" not in mesh.cells_dict:
            raise ValueError("it has no triangles")
        return mesh.points, mesh.cells_dict["triangle"]
    except (Exception, SystemExit) as error:
        raise ValueError(f"{os.fspath(path)} is no surface of triangles that meshio reads: {_line(error)}") from None


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _boundary(points: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """The facets (m, d) of one cell only, oriented outward."""
    d = points.shape[1]
    facets = np.concatenate([np.delete(cells, i, axis=1) for i in range(d + 1)])
    opposite = np.concatenate([cells[:, i] for i in range(d + 1)])
    _, first, counts = np.unique(np.sort(facets, axis=1), axis=0, return_index=True, return_counts=True)
    if (counts > 2).any():
        raise ValueError("the cells of the mesh overlap: a facet belongs to three of them")
    outer = facets[first[counts == 1]]
    inward = points[opposite[first[counts == 1]]] - points[outer[:, 0]]
    wrong = np.sum(normals(points[outer]) * inward, axis=1) > 0
    outer[wrong, :2] = outer[wrong, 1::-1]
    return outer


def _closed(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """The triangles on welded corners, or one line where they do not close."""
    pairs = scipy.spatial.cKDTree(points).query_pairs(WELD * np.ptp(points, axis=0).max(), output_type="ndarray")
    ones = np.ones(len(pairs))
    graph = scipy.sparse.coo_array((ones, pairs.T), shape=(len(points), len(points)))
    _, label = scipy.sparse.csgraph.connected_components(graph, directed=False)
    _, first = np.unique(label, return_index=True)
    triangles = first[label[triangles]]
    triangles = triangles[[len(set(row)) == 3 for row in triangles.tolist()]]
    edges = np.concatenate([triangles[:, [i, (i + 1) % 3]] for i in range(3)])
    sign = np.where(edges[:, 0] < edges[:, 1], 1, -1)
    _, which = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
    uses, balance = np.bincount(which.ravel()), np.bincount(which.ravel(), weights=sign)
    if leaks := int(np.sum(uses % 2)):
        raise ValueError(
            f"the surface is open: {leaks} of its {len(uses)} edges belong to one triangle; close it first"
        )
    if wrong := int(np.sum(balance != 0)):
        raise ValueError(f"the triangles of the surface are not oriented alike, along {wrong} of its {len(uses)} edges")
    return triangles
