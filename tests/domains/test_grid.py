"""Grids of domains: their cells fill the domain, and their boundary is the domain's."""

import itertools

import numpy as np
import pytest

import natgrad as ng
from natgrad.domains.grid import Grid, box, fitted, grid, turning

L = ng.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
DOMAINS = [
    ng.Interval(-1, 2), ng.Box([0, 1], [3, 2]), ng.Box([0, 0, 0], [1, 2, 3]), ng.Ball([1], 2), ng.Ball([1, 2], 0.5),
    ng.Ball([0, 0, 1], 2), L, ng.Polygon(L.vertices[::-1]),
]  # fmt: skip


def measures(found: Grid) -> np.ndarray:
    """The signed length, area or volume of each cell: hexahedra by the six tetrahedra around a diagonal."""
    ((kind, cells),) = found.cells
    x = found.points[cells]
    if kind == "line":
        return x[:, 1, 0] - x[:, 0, 0]
    if kind in ("triangle", "quad"):
        u, v = x[:, 2] - x[:, 0], x[:, -1] - x[:, 1]
        if kind == "triangle":
            u, v = x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]
        return 0.5 * (u[:, 0] * v[:, 1] - u[:, 1] * v[:, 0])
    square = ((0, 0), (1, 0), (1, 1), (0, 1))
    corner = {(*at, z): 4 * z + i for z in (0, 1) for i, at in enumerate(square)}
    total = np.zeros(len(cells))
    for order in itertools.permutations(range(3)):
        path = np.concatenate([np.zeros((1, 3), int), np.cumsum(np.eye(3, dtype=int)[list(order)], axis=0)])
        a, b, c, d = (x[:, corner[tuple(step)]] for step in path.tolist())
        sign = np.linalg.det(np.eye(3)[list(order)])
        total += sign * np.linalg.det(np.stack([b - a, c - a, d - a], axis=1)) / 6
    return total


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_the_cells_fill_the_domain(domain):
    found = grid(domain, 16)
    sizes = measures(found)
    assert (sizes > 0).all()
    curved = isinstance(domain, ng.Ball) and domain.dim > 1
    np.testing.assert_allclose(sizes.sum(), domain.measure, rtol=0.02 if curved else 1e-12)
    assert np.asarray(domain.contains(found.points)).all()
    np.testing.assert_array_equal(found.boundary, np.asarray(domain.on_boundary(found.points)))
    assert len(np.unique(np.round(found.points, 9), axis=0)) == len(found.points)


class Ring(ng.Box):
    """A domain that natgrad has no grid of: a square with a hole."""

    def contains(self, x, tol=None):
        x = np.asarray(x)
        return (abs(x) <= 1).all(axis=-1) & (abs(x).max(axis=-1) >= 0.5)


def test_another_domain_is_cut_out_of_its_box():
    found = grid(Ring([-1, -1], [1, 1]), 16)
    np.testing.assert_allclose(measures(found).sum(), 3.0)
    on = found.points[found.boundary]
    assert set(np.unique(abs(on).max(axis=1))) == {0.5, 1.0}
    assert (abs(found.points).max(axis=1) >= 0.5).all()


PLATE = (ng.Box([0, 0], [2, 1]) | ng.Ball([2, 0.5], 0.5)) - ng.Ball([1, 0.5], 0.2)
CUT = {  # domain, cells along each axis, relative error of their sum
    "plate": (PLATE, 60, 1e-3),
    "quarter": (ng.Box([0, 0], [1, 1]) - ng.Ball([0, 0], 0.5), 33, 1e-3),
    "bubble": (ng.Box([0, 0, 0], [1, 1, 1]) - ng.Ball([0.5, 0.5, 0.5], 0.3), 12, 2e-2),
    "tetrahedron": (
        ng.Surface(np.vstack([np.zeros(3), np.eye(3)]), [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]),
        8,
        0.1,
    ),
}


@pytest.mark.parametrize("name", CUT)
def test_what_is_cut_out_is_fitted_to_the_boundary(name):
    """Its outer points lie on the boundary, and no cell is turned over."""
    domain, n, rough = CUT[name]
    found = grid(domain, n)
    sizes = measures(found)
    assert (sizes > 0).all()
    assert sizes.sum() == pytest.approx(domain.measure, rel=rough)
    assert np.asarray(domain.on_boundary(found.points[found.boundary])).mean() > 0.95


def test_a_cell_that_would_be_turned_over_stays():
    """Corners of a cell all move to one spot of a boundary that is a point, but for one."""

    class Spot(ng.Box):
        def on_boundary(self, x, tol=None):
            return np.zeros(len(x), bool)

        def boundary(self, n, **how):
            return ng.Box([0.4, 0.4], [0.41, 0.41]).boundary(n, **how)

    found = fitted(box([0, 0], [1, 1], 2), Spot([0, 0], [1, 1]))
    assert (measures(found) > 0).all()
    assert turning(np.array([[[0.0, 0], [1, 0], [1, 1], [0, 1]]])).tolist() == [[1, 1, 1, 1]]
    assert (turning(np.array([box([0] * 3, [1] * 3, 1).points[box([0] * 3, [1] * 3, 1).cells[0][1][0]]])) == 1).all()


def test_a_mesh_is_its_own_grid():
    mesh = ng.Mesh([(0, 0), (1, 0), (1, 1), (0, 1)], [(0, 1, 2), (0, 2, 3)])
    found = grid(mesh)
    assert found.cells[0][0] == "triangle"
    assert measures(found).tolist() == [0.5, 0.5]
    assert len(grid(mesh, 3).points) == 16


def test_meshes_of_several_kinds_have_a_boundary():
    mixed = Grid(
        np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [2, 0.5]]),
        (("quad", np.array([[0, 1, 2, 3]])), ("triangle", np.array([[1, 4, 2]]))),
    )
    assert mixed.boundary.all()
    assert box([0, 0], [1, 1], 2).boundary.sum() == 8
    assert Grid(np.zeros((6, 2)), (("triangle6", np.arange(6)[None]),)).boundary is None


def test_what_has_no_grid_is_said():
    for call, line in (
        (lambda: grid(ng.Interval(0, 1) * ng.Box([0], [1])), "the grid of a SpaceTime is that of its space"),
        (lambda: grid(ng.Box([0] * 4, [1] * 4)), "a grid has 1 to 3 coordinates of space"),
        (lambda: grid(3), "a grid is that of a domain such as"),
        (lambda: grid(ng.Box([0, 0], [1, 1]), 10**9), "a grid of 1000000000 × 1000000000 cells would take"),
        (lambda: grid(ng.Box([0, 0], [1, 1]), 10**400), "cells would take"),
        (lambda: grid(L, 10**400), "triangles would take"),
    ):
        with pytest.raises(ValueError, match=line):
            call()
