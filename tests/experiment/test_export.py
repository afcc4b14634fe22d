"""The fields of runs in files for other tools, and movies of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad import cli
from natgrad.experiment import movie as movies
from natgrad.experiment.checkpoint import Writer
from natgrad.experiment.config import Config, prepare
from natgrad.experiment.fields import Panel, panels
from natgrad.experiment.folder import Folder
from natgrad.experiment.runs import load
from natgrad.storage.files import dumps
from natgrad.zoo import heat3d

Image = pytest.importorskip("PIL.Image")
TINY = {
    "heat3d": ("width=4", "depth=1", "interior=20", "boundary=12", "initial=8"),
    "lshape2d": ("width=4", "depth=1", "uniform=1", "graded=1"),
    "poisson_nd": ("dim=5", "width=4", "interior=20", "boundary=12"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs that have a checkpoint of their start, and were never trained."""
    home = tmp_path_factory.mktemp("runs")
    for name, settings in TINY.items():
        prepared = prepare(Config(name, "adam", steps=1, settings=settings))
        folder = Folder(home / name, "run")
        Writer(folder, prepared.record).save(0, 0.0, "steps", {}, (prepared.problem.params, None))
        folder.write("config.json", dumps(prepared.record))
        folder.write("history.jsonl", "")
    return home


def natgrad(*words):
    with pytest.raises(SystemExit) as stop:
        cli.main(list(map(str, words)))
    return stop.value.code


def test_a_run_in_time_is_a_series(runs, tmp_path, capsys):
    meshio = pytest.importorskip("meshio")
    words = ("export", runs / "heat3d", "-o", tmp_path / "u.pvd", "--times", "0.25,0.5", "--resolution", "3")
    assert natgrad(*words) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'u.pvd'} and its 2 times\n"
    mesh = meshio.read(tmp_path / "u_0001.vtu")
    problem, params = load(runs / "heat3d").restore()
    x = jnp.insert(jnp.asarray(mesh.points), 0, 0.5, axis=1)
    np.testing.assert_allclose(mesh.point_data["u"], jax.vmap(problem.network(params))(x), atol=1e-12)
    np.testing.assert_allclose(mesh.point_data["exact u"], jax.vmap(heat3d.exact)(x), atol=1e-12)
    assert {"grad u", "du/dt", "error u", "boundary"} <= set(mesh.point_data)
    assert natgrad(*words) == 2
    assert "exists: choose another --output, or --force to replace it" in capsys.readouterr().err
    assert natgrad(*words, "--force", "--quiet") == 0
    assert capsys.readouterr().out == ""


def test_a_run_on_a_mesh_has_its_cells(runs, tmp_path):
    pytest.importorskip("meshio")
    run_, (problem, _) = load(runs / "lshape2d"), load(runs / "lshape2d").restore()
    assert natgrad("export", runs / "lshape2d", "-o", tmp_path / "own.npz") == 0
    with np.load(tmp_path / "own.npz") as data:
        assert len(data["cells triangle"]) == problem.space.mesh.t.shape[1]
        np.testing.assert_allclose(data["error u"][data["boundary"] == 1], 0, atol=1e-12)  # the finite elements'
        assert np.abs(data["error u"]).max() > 0.1  # the network was never trained
    assert natgrad("export", run_.folder, "-o", tmp_path / "cut.npz", "--resolution", "8") == 0
    with np.load(tmp_path / "cut.npz") as data:
        assert len(data["cells quad"]) == 48  # without the first quadrant
        x = data["points"]
        assert not ((x[:, 0] > 0) & (x[:, 1] > 0)).any()


def test_a_run_on_a_mesh_is_drawn(runs):
    """By its finite-element function, which has the boundary values whatever the network is."""
    ((solution, exact, difference),) = panels(load(runs / "lshape2d"))
    outside = (solution.x[None, :] > 0) & (solution.y[:, None] > 0)
    np.testing.assert_array_equal(np.isnan(solution.values), outside)
    np.testing.assert_allclose(solution.values[0], exact.values[0], atol=0.02)  # the lower edge
    assert np.nanmax(np.abs(difference.values)) > 0.5


def test_many_dimensions_are_shown_where_pictures_show_them(runs, tmp_path):
    assert natgrad("export", runs / "poisson_nd", "-o", tmp_path / "u.npz", "--resolution", "4") == 0
    with np.load(tmp_path / "u.npz") as data:
        assert data["points"].shape == (25, 2)
        assert {"u", "exact u", "error u"} <= set(data)


def frames(path):
    image = Image.open(path)
    found = []
    for i in range(image.n_frames):
        image.seek(i)
        found.append(np.asarray(image.convert("RGB"), float))
    return found


def test_a_movie_of_a_run(runs, tmp_path, capsys):
    words = ("plot", runs / "heat3d", "--movie", tmp_path / "u.gif", "--times", "3")
    assert natgrad(*words) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'u.gif'}\n"
    first, _, last = frames(tmp_path / "u.gif")
    assert np.abs(first - last).max() > 50
    assert natgrad(*words) == 2
    assert not (runs / "heat3d" / "plots").exists()


def test_a_movie_of_a_function(tmp_path):
    wave = lambda x: jnp.sin(3 * x[1] - x[0])
    line = ng.Interval(0, 2) * ng.Interval(-1, 1)
    assert movies.movie(tmp_path / "u.gif", wave, line, exact=wave, times=[0.0, 0.5, 2.0]) == tmp_path / "u.gif"
    assert len(frames(tmp_path / "u.gif")) == 3
    disc = ng.Interval(0, 1) * ng.Ball([0, 0], 1)
    movies.movie(tmp_path / "disc.gif", lambda x: x[0] * x[1], disc, times=2)
    assert len(frames(tmp_path / "disc.gif")) == 2


def test_colours_are_those_of_all_times():
    """One corner at one time does not blank the movie, and no frame has colours of its own."""
    x = np.linspace(0, 1, 101)
    exact = [t * np.outer(x, x) for t in (0.0, 1.0, 2.0)]
    ours = [values + 0.1 for values in exact]
    ours[1][:3, :3] = 1e6
    make = lambda values: Panel("u", ("x", "y"), x, x, values, (0.0, 1.0), False, 1.0)
    shown = [[[make(u), make(v), make(u - v)]] for u, v in zip(ours, exact, strict=True)]
    limits = {tuple(panel.limits for panel in frame[0]) for frame in movies.steady(shown)}
    assert len(limits) == 1
    ((u, v, difference),) = limits
    assert u == v == (0.0, 2.0)
    assert difference == pytest.approx((-0.1, 0.1))


@pytest.mark.parametrize(
    ("name", "domain", "options", "line"),
    [
        ("u.png", ng.Interval(0, 1) * ng.Interval(0, 1), {}, "u.png must end with one of .gif, .mp4"),
        ("no/u.gif", ng.Interval(0, 1) * ng.Interval(0, 1), {}, "lies in a folder that does not exist"),
        ("mine.gif", ng.Interval(0, 1) * ng.Interval(0, 1), {}, "exists: choose another name"),
        ("u.gif", ng.Box([0, 0], [1, 1]), {}, "a movie is that of a SpaceTime"),
        ("u.gif", ng.Interval(0, 1) * ng.Box([0] * 3, [1] * 3), {}, "a movie shows one or two coordinates of space"),
        ("u.gif", ng.Interval(0, 1) * ng.Interval(0, 1), {"times": [7.0]}, r"times must lie between 0.0 and 1.0"),
        ("u.gif", ng.Interval(0, 1) * ng.Interval(0, 1), {"times": 0}, "times must be an integer from 1 to 10000"),
    ],
)
def test_wrong_movies_are_refused(tmp_path, name, domain, options, line):
    (tmp_path / "mine.gif").write_text("mine")
    with pytest.raises(ValueError, match=line):
        movies.movie(tmp_path / name, lambda x: x[0], domain, **options)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_without_ffmpeg_there_is_no_mp4(tmp_path, monkeypatch):
    animation = pytest.importorskip("matplotlib.animation")
    monkeypatch.setattr(animation.FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(ValueError, match="needs ffmpeg, which is not installed"):
        movies.movie(tmp_path / "u.mp4", lambda x: x[0], ng.Interval(0, 1) * ng.Interval(0, 1), times=1)
    assert not any(tmp_path.iterdir())
