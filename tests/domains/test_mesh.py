"""Domains from meshes and closed surfaces: what is inside, weights, names, and the same object for finite elements."""

import itertools
from pathlib import Path

import jax
import numpy as np
import pytest

import natgrad as ng
from natgrad.domains import Ball, Box, Mesh, Surface, volumes
from tests.domains.domain_cases import GRID

ROOT = Path(__file__).parents[2]
KEY = jax.random.key(0)
CORNERS = np.array(list(itertools.product((0.0, 1.0), repeat=3)))
#: The cube, two triangles a face, outward.
TRIANGLES = np.array(
    [
        [0, 1, 3],
        [0, 3, 2],
        [4, 7, 5],
        [4, 6, 7],
        [0, 5, 1],
        [0, 4, 5],
        [2, 3, 7],
        [2, 7, 6],
        [0, 2, 6],
        [0, 6, 4],
        [1, 5, 7],
        [1, 7, 3],
    ]
)
CUBE = Surface(CORNERS, TRIANGLES)
TETS = np.array([[0, *path, 7] for path in ((1, 3), (1, 5), (2, 3), (2, 6), (4, 5), (4, 6))])  # Kuhn's six


def stl(path, triangles=TRIANGLES):
    text = ["solid"]
    for row in triangles:
        text += ["facet normal 0 0 0", "outer loop", *("vertex " + " ".join(map(str, CORNERS[i])) for i in row)]
        text += ["endloop", "endfacet"]
    path.write_text("\n".join([*text, "endsolid", ""]))
    return path


def test_a_mesh_that_gmsh_wrote():
    pytest.importorskip("meshio")
    plate = Mesh(ROOT / "examples" / "plate.msh")
    assert dict(plate.parts).keys() == {"cold", "hot", "insulated"}
    cold = plate.boundary(50, rule="sobol", part="cold")
    assert float(cold.measure) == pytest.approx(1)
    np.testing.assert_array_equal(cold.x[:, 0], 0)
    np.testing.assert_allclose(cold.normals, np.tile([-1.0, 0], (50, 1)))
    both = plate.boundary(50, key=KEY, part=["hot", lambda x: x[0] == 0])
    assert float(both.measure) == pytest.approx(2)
    space = ng.fem.Space(plate, degree=2)
    assert (space.nodes[space.boundary("cold"), 0] == 0).all()
    assert space.load(1.0).sum() == pytest.approx(plate.measure)


def test_elements_and_points_integrate_alike():
    pytest.importorskip("skfem")
    mesh = Mesh(CORNERS, TETS, {"floor": lambda x: x[2] == 0})
    assert mesh.measure == pytest.approx(1)
    assert mesh.boundary_measure == pytest.approx(6)
    points = mesh.interior(600, rule="gauss")
    f = lambda x: np.exp(x[..., 0]) * x[..., 1] * x[..., 2]
    assert float(points.integrate(f(np.asarray(points.x)))) == pytest.approx((np.e - 1) / 4, rel=1e-6)
    floor = mesh.boundary(30, rule="gauss", part="floor")
    np.testing.assert_allclose(floor.normals, np.tile([0, 0, -1.0], (len(floor), 1)), atol=1e-15)
    space = ng.fem.Space(mesh, degree=1)
    assert sorted(space.nodes[space.boundary("floor"), 2]) == [0] * 4


def test_facets_named_by_their_corners():
    mesh = Mesh(*GRID, {"low": [[1, 0], [1, 2]]})
    assert float(mesh.boundary(8, rule="gauss", part="low").measure) == pytest.approx(2)


def test_random_points_of_many_cells_are_uniform():
    """More cells than points: one sequence serves all of them."""
    ticks = np.linspace(0, 1, 31)
    points = [(x, y) for y in ticks**2 for x in ticks]
    cells = [
        t for j in range(30) for i in range(30) for k in [31 * j + i] for t in ((k, k + 1, k + 32), (k, k + 31, k + 32))
    ]
    mesh = Mesh(points, cells)
    for rule in ("sobol", "monte-carlo"):
        x = np.asarray(mesh.interior(512, key=KEY, rule=rule).x)
        share = np.histogram2d(*x.T, bins=4, range=[(0, 1)] * 2)[0] / 512
        np.testing.assert_allclose(share, 1 / 16, atol=0.01 if rule == "sobol" else 0.04)


def test_closed_surfaces():
    assert CUBE.measure == pytest.approx(1)
    assert CUBE.boundary_measure == pytest.approx(6)
    assert Surface(CORNERS, TRIANGLES[:, ::-1]).measure == pytest.approx(1)
    x = np.random.default_rng(0).uniform(-0.5, 1.5, (500, 3))
    box = Box([0] * 3, [1] * 3)
    np.testing.assert_array_equal(CUBE.contains(x), box.contains(x))
    on = np.asarray(box.boundary(40, rule="sobol").x)
    assert np.asarray(CUBE.on_boundary(on)).all()
    assert not np.asarray(CUBE.on_boundary(x)).any()
    for rule in ("monte-carlo", "sobol"):
        inside, around = CUBE.interior(60, key=KEY, rule=rule), CUBE.boundary(60, key=KEY, rule=rule)
        assert np.asarray(box.contains(inside.x)).all()
        assert float(inside.measure) == pytest.approx(1)
        assert np.asarray(box.on_boundary(around.x)).all()
        assert not np.asarray(box.contains(np.asarray(around.x) + 1e-6 * np.asarray(around.normals))).any()
    with pytest.raises(ValueError, match="'gauss' needs the cells of a mesh"):
        CUBE.interior(8, rule="gauss")


def test_a_cavity_is_outside():
    inner = 0.25 + CORNERS / 2
    hollow = Surface(np.concatenate([CORNERS, inner]), np.concatenate([TRIANGLES, 8 + TRIANGLES[:, ::-1]]))
    assert hollow.measure == pytest.approx(0.875)
    assert np.asarray(hollow.contains([[0.1, 0.1, 0.1], [0.5, 0.5, 0.5]])).tolist() == [True, False]


@pytest.mark.usefixtures("quick_compilation")
def test_surfaces_under_jit():
    x = np.array([[0.5, 0.5, 0.5], [2, 0.5, 0.5], [1, 0.5, 0.5]])
    assert jax.jit(CUBE.contains)(x).tolist() == [True, False, True]
    assert jax.jit(jax.vmap(CUBE.on_boundary))(x).tolist() == [False, False, True]
    np.testing.assert_allclose(jax.jit(lambda key: CUBE.boundary(9, key=key).x)(KEY), CUBE.boundary(9, key=KEY).x)


def test_surfaces_are_combined(monkeypatch):
    monkeypatch.setattr(volumes, "SAMPLES", 2**13)
    tube = CUBE - Ball([0.5, 0.5, 0.5], 0.3)
    points = tube.boundary(64, rule="sobol", part=tube.b)
    assert float(points.measure) == pytest.approx(4 * np.pi * 0.09, rel=1e-2)
    np.testing.assert_allclose(points.x + 0.3 * points.normals, 0.5, atol=1e-12)


def test_files_of_surfaces(tmp_path):
    pytest.importorskip("meshio")
    assert Surface(stl(tmp_path / "cube.stl")) == Surface(tmp_path / "cube.stl")
    assert Surface(tmp_path / "cube.stl").measure == pytest.approx(1)
    with pytest.raises(ValueError, match="open: 3 of its 18 edges belong to one triangle"):
        Surface(stl(tmp_path / "leak.stl", TRIANGLES[1:]))
    (tmp_path / "text.stl").write_text("nothing")
    with pytest.raises(ValueError, match=r"text\.stl is no surface of triangles that meshio reads"):
        Surface(tmp_path / "text.stl")
    (tmp_path / "empty.stl").write_text("")
    with pytest.raises(ValueError, match=r"empty\.stl is no surface of .*: it has no triangles"):
        Surface(tmp_path / "empty.stl")
    (tmp_path / "text.msh").write_text("nothing")
    with pytest.raises(ValueError, match=r"text\.msh is no mesh that meshio and scikit-fem read"):
        Mesh(tmp_path / "text.msh")
    for kind in (Mesh, Surface):
        with pytest.raises(ValueError, match=r"there is no .* file"):
            kind(tmp_path / "none.stl")


@pytest.mark.filterwarnings("error")
def test_triangles_without_area_close_a_surface():
    """Files of CAD programs have them, where an edge meets two shorter ones."""
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0.5, 0.5, 0)]
    split = Surface(corners, [(0, 2, 4), (0, 4, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3), (1, 4, 2)])
    assert split.measure == pytest.approx(1 / 6, rel=1e-14)
    assert len(split.facets.values) == 5
    points = split.boundary(64, rule="sobol")
    np.testing.assert_allclose(np.linalg.norm(points.normals, axis=1), 1, rtol=1e-12)
    assert np.sum(points.weights * np.sum(points.x * points.normals, axis=1)) == pytest.approx(0.5, rel=0.1)


def test_equal_meshes_are_equal():
    assert Mesh(*GRID) == Mesh(*GRID)
    assert Mesh(*GRID) != Mesh(np.array(GRID[0]) * 2, GRID[1])
    assert Mesh(*GRID).interior(9, key=KEY).origin == Mesh(*GRID).interior(9, key=jax.random.key(1)).origin


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Mesh(3), "a mesh is a path, a scikit-fem mesh, or points"),
        (lambda: Mesh([[0, 0], [1, np.nan]], [[0, 1, 1]]), "points of a mesh must be finite"),
        (lambda: Mesh(np.zeros((4, 4)), [[0, 1, 2]]), r"shape \(n, 2\) or \(n, 3\), got shape \(4, 4\)"),
        (lambda: Mesh(GRID[0], [[0, 1]]), r"rows of 3 numbers of points, got shape \(1, 2\)"),
        (lambda: Mesh(GRID[0], [[0, 1, 9]]), "points from 0 to 8, got 0 to 9"),
        (lambda: Mesh(GRID[0], [[0, 1, 4], [0, 1, 2]]), "1 of 2 cells of the mesh have no area"),
        (lambda: Mesh(*GRID, {"left": [[4, 5]]}), "no facet of the boundary belongs to 'left'"),
        (
            lambda: Mesh(*GRID, {"a": lambda x: x[0] == 2}).boundary(8, key=KEY, part="b"),
            r"no boundary 'b' \(it has a\)",
        ),
        (lambda: Mesh(*GRID).boundary(8, key=KEY, part="b"), r"no boundary 'b' \(it has no names\)"),
        (lambda: Mesh(*GRID).boundary(8, key=KEY, part=3), "a name, a function of x or a list of these, got 3"),
        (lambda: Mesh(*GRID).boundary(8, key=KEY, part=lambda x: x[0] == 7), "no facet of the boundary"),
        (lambda: Surface(3), "a surface is a path, or points"),
        (lambda: Surface(CORNERS[:, :2], TRIANGLES), r"points \(n, 3\) and triangles"),
        (lambda: Surface(CORNERS, TRIANGLES[:-1]), "the surface is open: 3 of its 18 edges"),
        (
            lambda: Surface(CORNERS, np.concatenate([TRIANGLES[:-1], TRIANGLES[-1:, ::-1]])),
            "not oriented alike, along 3",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
