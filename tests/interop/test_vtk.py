"""Fields in files, read back by the programs that they are for."""

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.interop.vtk import to_vtk

meshio = pytest.importorskip("meshio")
SQUARE = ng.Box([0, 0], [1, 2])
HEAT = ng.Interval(0, 1) * ng.Ball([0, 0], 1)
PLATE = Path(ng.__file__).parents[1] / "examples" / "plate.msh"


def bump(x):
    return jnp.sin(x[0]) * x[1] ** 2


def slope(x):
    return np.stack([np.cos(x[:, 0]) * x[:, 1] ** 2, 2 * np.sin(x[:, 0]) * x[:, 1]], axis=1)


def moving(x):
    return jnp.exp(-x[0]) * (x[1] + 2 * x[2])


def test_a_field_its_gradient_and_its_error(tmp_path):
    assert to_vtk(tmp_path / "u.vtu", bump, SQUARE, exact=lambda x: bump(x) - 0.5, resolution=8) == [tmp_path / "u.vtu"]
    mesh = meshio.read(tmp_path / "u.vtu")
    x, data = mesh.points, mesh.point_data
    assert x.shape == (81, 3)
    assert (x[:, 2] == 0).all()
    assert [(block.type, len(block.data)) for block in mesh.cells] == [("quad", 64)]
    np.testing.assert_allclose(data["u"], np.sin(x[:, 0]) * x[:, 1] ** 2, rtol=1e-12)
    np.testing.assert_allclose(data["grad u"][:, :2], slope(x), atol=1e-12)
    assert data["grad u"].shape == (81, 3)
    np.testing.assert_allclose(data["exact u"], data["u"] - 0.5, atol=1e-12)
    np.testing.assert_allclose(data["error u"], 0.5, atol=1e-12)
    edge = (x[:, 0] % 1 == 0) | (x[:, 1] % 2 == 0)
    np.testing.assert_array_equal(data["boundary"], edge)


def test_a_series_in_time(tmp_path):
    written = to_vtk(tmp_path / "u.pvd", moving, HEAT, resolution=6, times=[0.0, 0.25, 1.0])
    assert [path.name for path in written] == ["u_0000.vtu", "u_0001.vtu", "u_0002.vtu", "u.pvd"]
    mesh = meshio.read(written[1])
    x, data = mesh.points, mesh.point_data
    np.testing.assert_allclose(data["u"], np.exp(-0.25) * (x[:, 0] + 2 * x[:, 1]), atol=1e-12)
    np.testing.assert_allclose(data["du/dt"], -data["u"], atol=1e-12)
    np.testing.assert_allclose(data["grad u"][0], np.exp(-0.25) * np.array([1, 2, 0]), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(x[data["boundary"] == 1], axis=1), 1)


def test_vtk_itself_reads_them(tmp_path):
    pyvista = pytest.importorskip("pyvista")
    to_vtk(tmp_path / "ball.vtu", lambda x: x, ng.Ball([0, 0, 0], 1), resolution=6)
    grid = pyvista.read(tmp_path / "ball.vtu")
    assert grid.n_cells == 216
    assert grid.volume == pytest.approx(4 / 3 * np.pi, rel=0.1)
    assert grid["u"].shape == (343, 3)
    sizes = grid.compute_cell_sizes()["Volume"]
    assert (sizes > 0).all()  # the corners of a cell are in VTK's order
    to_vtk(tmp_path / "u.pvd", moving, HEAT, resolution=4, times=3)
    reader = pyvista.get_reader(tmp_path / "u.pvd")
    assert reader.time_values == [0.0, 0.5, 1.0]
    reader.set_active_time_value(0.5)
    (frame,) = reader.read()
    x = frame.points
    np.testing.assert_allclose(frame["u"], np.exp(-0.5) * (x[:, 0] + 2 * x[:, 1]), atol=1e-6)


def test_several_fields_and_vectors(tmp_path):
    key = jax.random.key(0)
    flow = ng.Fields(v=ng.MLP(2, 2, 4, 1, key=key), p=ng.MLP(2, 1, 4, 1, key=key))
    to_vtk(tmp_path / "flow.npz", flow, SQUARE, exact={"p": bump}, resolution=3)
    with np.load(tmp_path / "flow.npz") as data:
        names = {"v", "grad v_0", "grad v_1", "p", "grad p", "exact p", "error p", "boundary", "points", "cells quad"}
        assert set(data) == names
        x = data["points"]
        np.testing.assert_allclose(data["v"], jax.vmap(flow.v)(x), atol=1e-12)
        np.testing.assert_allclose(data["grad v_1"], jax.vmap(jax.jacfwd(flow.v))(x)[:, 1], atol=1e-12)
        np.testing.assert_allclose(data["error p"], data["p"] - data["exact p"], atol=1e-15)


def test_a_table(tmp_path):
    to_vtk(tmp_path / "u.csv", moving, ng.Interval(0, 1) * SQUARE, resolution=1, times=2)
    with open(tmp_path / "u.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["t", "x", "y", "u", "grad u_x", "grad u_y", "du/dt", "boundary"]
    assert [float(row["t"]) for row in rows] == [0] * 4 + [1] * 4
    t, x, y = (np.array([float(row[name]) for row in rows]) for name in "txy")
    np.testing.assert_array_equal([float(row["u"]) for row in rows], jax.vmap(moving)(jnp.stack([t, x, y], axis=1)))


def test_times_of_an_array(tmp_path):
    to_vtk(tmp_path / "u.npz", moving, HEAT, resolution=2, times=4)
    with np.load(tmp_path / "u.npz") as data:
        np.testing.assert_allclose(data["times"], [0, 1 / 3, 2 / 3, 1])
        assert data["u"].shape == (4, 9)
        assert data["grad u"].shape == (4, 9, 2)


def test_meshes_of_others(tmp_path):
    """A file of Gmsh's, and meshes of scikit-fem and meshio."""
    skfem = pytest.importorskip("skfem")
    to_vtk(tmp_path / "plate.vtu", bump, mesh=PLATE)
    mesh = meshio.read(tmp_path / "plate.vtu")
    original = meshio.read(PLATE)
    np.testing.assert_array_equal(mesh.points, original.points)
    assert [block.type for block in mesh.cells] == ["triangle"]
    np.testing.assert_allclose(mesh.point_data["grad u"][:, :2], slope(mesh.points), atol=1e-12)
    assert 0 < mesh.point_data["boundary"].sum() < len(mesh.points)
    for name, cells in (("tet", skfem.MeshTet()), ("hex", skfem.MeshHex()), ("tri", skfem.MeshTri())):
        to_vtk(tmp_path / f"{name}.vtu", lambda x: jnp.sum(x), mesh=cells)
        read = meshio.read(tmp_path / f"{name}.vtu")
        np.testing.assert_allclose(read.point_data["u"], read.points.sum(axis=1), atol=1e-12)
        assert read.point_data["boundary"].all()
    to_vtk(tmp_path / "series.pvd", moving, HEAT, mesh=original, times=2)
    assert len(meshio.read(tmp_path / "series_0001.vtu").points) == len(original.points)


def test_a_finite_element_function_has_values_alone(tmp_path):
    space = ng.fem.rectangle((4, 4))
    problem = ng.FEINNEnergy(ng.MLP(2, 1, 4, 1, key=jax.random.key(0)), space, ng.fem.Form(), load=1.0, dirichlet=0.0)
    to_vtk(tmp_path / "u.vtu", problem.solution(problem.params), ng.Box([0, 0], [1, 1]), resolution=4)
    data = meshio.read(tmp_path / "u.vtu").point_data
    assert set(data) == {"u", "boundary"}
    np.testing.assert_allclose(data["u"][data["boundary"] == 1], 0, atol=1e-12)


def test_a_solution_writes_itself(tmp_path):
    line = ng.Interval(0, 1)
    block = ng.Residual(lambda u, x: u(x) - x[0], line.interior(9, rule="gauss"))
    problem = ng.LeastSquares(ng.MLP(1, 1, 3, 1, key=jax.random.key(0)), fit=block)
    solution = ng.solve(problem, ng.Adam(5), 1, progress=False)
    solution.to_vtk(tmp_path / "u.vtu", line, exact=lambda x: x[0], resolution=5)
    mesh = meshio.read(tmp_path / "u.vtu")
    np.testing.assert_allclose(mesh.point_data["u"], jax.vmap(solution.u)(mesh.points[:, :1]), atol=1e-12)
    np.testing.assert_array_equal(mesh.point_data["boundary"], [1, 0, 0, 0, 0, 1])


WRONG = [
    ("u.vtk", {}, "u.vtk must end with one of .vtu, .pvd, .npz, .csv"),
    ("no/u.vtu", {}, "lies in a folder that does not exist"),
    ("mine.vtu", {}, "exists: choose another name, or force=True to replace it"),
    ("mine.pvd", {"domain": HEAT, "times": 2}, "mine_0001.vtu exists: choose another name"),
    ("u.pvd", {}, "would be a series in time, and there is no time here: take .vtu"),
    ("u.vtu", {"domain": HEAT}, "holds one time: take .pvd for a series, or one time, such as 1"),
    ("u.vtu", {"domain": None}, "to_vtk takes a domain, such as .*, or a mesh"),
    ("u.vtu", {"mesh": PLATE}, "a mesh takes the place of the domain"),
    ("u.vtu", {"domain": None, "mesh": PLATE, "resolution": 3}, "a mesh has its own cells"),
    ("u.vtu", {"domain": None, "mesh": "none.msh"}, "there is no mesh none.msh"),
    ("u.vtu", {"domain": None, "mesh": __file__}, "cannot read the mesh"),
    ("u.vtu", {"domain": None, "mesh": 3}, "a mesh is a file, or one of scikit-fem or meshio, got int"),
    ("u.vtu", {"domain": ng.Box([0] * 5, [1] * 5)}, "a grid has 1 to 3 coordinates of space"),
    ("u.vtu", {"domain": 3}, "domain must be"),
    ("u.pvd", {"domain": HEAT * ng.Parameters(k=(1, 2))}, r"to_vtk\(path, family.fix\(u, …\), domain.base\)"),
    ("u.vtu", {"resolution": 0}, "resolution must be a positive integer"),
    ("u.vtu", {"times": 3}, "times are those of a SpaceTime domain"),
    ("u.pvd", {"domain": HEAT, "times": 0}, "times must be an integer from 1 to 10000"),
    ("u.pvd", {"domain": HEAT, "times": [0.5, 3.0]}, r"times must lie between 0.0 and 1.0, got \[0.5, 3.0\]"),
    ("u.pvd", {"domain": HEAT, "times": []}, "times must lie between"),
    ("u.vtu", {"exact": {"p": bump}}, "exact names 'p', and the fields are u"),
    ("u.vtu", {"exact": lambda x: x.foo}, "the field 'exact u' fails at a single point"),
    ("u.vtu", {"u": 3}, "to_vtk takes a network or a function of one point"),
    ("u.vtu", {"u": ng.MLP(3, 1, 4, 1, key=jax.random.key(0))}, "the field 'u' fails at a single point of shape"),
    ("u.vtu", {"u": lambda x: jnp.outer(x, x)}, "must give a number or a vector"),
]


@pytest.mark.parametrize(("name", "options", "line"), WRONG, ids=[line for *_, line in WRONG])
def test_wrong_input_is_one_line_and_nothing_is_written(tmp_path, name, options, line):
    for mine in ("mine.vtu", "mine_0001.vtu"):
        (tmp_path / mine).write_text("mine")
    with pytest.raises(ValueError, match=line) as told:
        to_vtk(tmp_path / name, **{"u": bump, "domain": SQUARE} | options)
    assert "\n" not in str(told.value)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("mine.vtu", "mine_0001.vtu"), "mine"
    )


def test_force_replaces(tmp_path):
    (tmp_path / "u.npz").write_text("mine")
    to_vtk(tmp_path / "u.npz", bump, SQUARE, resolution=1, force=True)
    with np.load(tmp_path / "u.npz") as data:
        assert len(data["u"]) == 4
