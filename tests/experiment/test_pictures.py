"""Pictures of made-up runs: what is drawn, on which axes, in which colours."""

import json
import re
import struct
from dataclasses import replace

import numpy as np
import pytest

from natgrad.experiment import fields, plots
from natgrad.experiment.report import page
from natgrad.experiment.runs import Group, find, group
from tests.experiment.made_up import made_up


def test_medians_and_bands(home):
    (_, _, nystrom, _) = group(find([home]))
    x, low, middle, high = plots.curve(nystrom, "h1", "step")
    np.testing.assert_array_equal(x, np.arange(5, 101, 5))
    expected = np.median([run.column("h1")[4::5] for run in nystrom.runs], axis=0)
    np.testing.assert_allclose(middle, expected, rtol=1e-12)
    assert np.all(low <= middle)
    assert np.all(middle <= high)
    x, low, middle, high = plots.curve(nystrom, "h1", "time")
    assert x[0] == pytest.approx(0.15)
    assert x[-1] == pytest.approx(3.0)
    assert np.all(np.diff(middle) <= 1e-15)


def size(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


def test_pictures(home, tmp_path):
    written = plots.plot(find([home]), tmp_path, fields=False)
    assert {path.name for path in written} == {
        "poisson3d-convergence.png", "poisson3d-solver.png", "heat3d-convergence.png", "heat3d-solver.png",
    }  # fmt: skip
    for path in written:
        width, height = size(path)
        assert width > 1000
        assert height > 500


def test_the_loss_at_other_points_is_drawn_beside_that_of_training(tmp_path, monkeypatch):
    """Dashed, in the colour of its run, and on the page to choose."""
    made_up(tmp_path / "one", gap=7.0)
    made_up(tmp_path / "other", "adam", gap=3.0)
    drawn = []
    monkeypatch.setattr(plots, "_finish", lambda figure, axis, groups, path: drawn.append(axis) or path)
    plots.losses(group(find([tmp_path])), tmp_path / "loss.png")
    curves = {line.get_label(): line for line in drawn[0].get_lines()}
    assert len(curves) == 4
    for name, gap in (("nystrom-gaussian", 7.0), ("adam", 3.0)):
        loss, validation = curves[name], curves[f"{name}, at independent points"]
        assert (loss.get_linestyle(), validation.get_linestyle()) == ("-", "--")
        assert loss.get_color() == validation.get_color()
        assert len(validation.get_xdata()) == 20 < len(loss.get_xdata()) == 100
        np.testing.assert_allclose(validation.get_ydata()[-1], gap * loss.get_ydata()[-1])
    monkeypatch.undo()
    assert tmp_path / "pictures" / "loss.png" in plots.plot(find([tmp_path]), tmp_path / "pictures", fields=False)
    data = json.loads(re.search(r'id="data">(.*?)</script>', page(find([tmp_path]), fields=False), re.DOTALL)[1])
    assert all("validation" in series["curves"] for series in data["chart0"]["series"])


def test_optimizers_keep_their_colours(home):
    groups = [g for g in group(find([home])) if g.problem == "poisson3d"]
    colours = {g.label: s["color"] for g, s in zip(groups, plots.styles(groups), strict=True)}
    assert len(set(colours.values())) == 3
    assert [s["color"] for s in plots.styles(groups[1:])] == [colours[g.label] for g in groups[1:]]


def test_more_groups_than_colours(tmp_path):
    for k in range(20):
        made_up(tmp_path / str(k), solver={"damping.gamma": float(k)}, steps=20)
    looks = [tuple(style.values()) for style in plots.styles(group(find([tmp_path])))]
    assert len(set(looks)) == 20


def test_spectra(tmp_path):
    path = plots.spectra([0, 5], np.array([[1.0, 1e-3, 1e-30], [2.0, 1e-2, -1e-20]]), "title", tmp_path / "s.png")
    assert size(path)[0] > 500


def series_of(name):
    """The data of the page's first chart."""
    return json.loads(re.search(r'id="data">(.*?)</script>', name, re.DOTALL)[1])["chart0"]


@pytest.mark.parametrize(("steps", "scale"), [(3000, "log"), (120, "linear")])
def test_budgets_far_apart_are_drawn_on_logarithmic_axes(tmp_path, monkeypatch, steps, scale):
    made_up(tmp_path / "quick", second=0.01)
    made_up(tmp_path / "slow", "adam", steps=steps, rate=3 / steps, second=0.01)
    drawn = []
    monkeypatch.setattr(plots, "_finish", lambda figure, axis, groups, path: drawn.append(figure) or path)
    plots.convergence(group(find([tmp_path])), tmp_path / "convergence.png")
    assert [axis.get_xscale() for axis in drawn[0].axes] == [scale, scale]
    wide = series_of(page(find([tmp_path]), fields=False))["wide"]
    assert wide == {"step": scale == "log", "time": scale == "log"}


@pytest.mark.parametrize(("most", "scale"), [(9000, "symlog"), (60, "linear")])
def test_ranks_far_apart_are_told_apart(tmp_path, monkeypatch, most, scale):
    """A direct solver, whose rank is the number of parameters, and one without a preconditioner, whose rank is 0."""
    made_up(tmp_path / "run")
    (run,) = find([tmp_path])
    groups = [
        Group("p", f"{rank}", (replace(run, records=[{**record, "rank": rank} for record in run.records]),))
        for rank in (0, 40, most)
    ]
    drawn = []
    monkeypatch.setattr(plots, "_finish", lambda figure, axis, groups, path: drawn.append(axis) or path)
    plots.internals(groups, tmp_path / "solver.png")
    assert drawn[0].get_yscale() == scale
    low, high = drawn[0].get_ylim()
    assert low <= 0 < most < high
    assert len(drawn[0].get_lines()) == 3


def test_an_energy_is_drawn_where_it_is_negative(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: shown.append(figure.axes[0]) or path)
    history = made_up(tmp_path / "energy") / "history.jsonl"
    records = [json.loads(line) for line in history.read_text().splitlines()]
    for scale, shift in (("log", 0.0), ("linear", 1.0)):
        lines = [json.dumps(r | {"loss": r["loss"] - shift, "errors": {}}) + "\n" for r in records]
        history.write_text("".join(lines))
        plots.convergence(group(find([tmp_path])), tmp_path / "x.png")
        assert (shown[-1].get_ylabel(), shown[-1].get_yscale()) == ("loss", scale)
        assert len(shown[-1].lines[0].get_ydata()) == 100


def test_long_curves_are_drawn_by_medians_of_neighbours():
    x = np.arange(1.0, 2001.0)
    wild = np.where(x % 2 == 0, 1.0, 1e-3) * np.where(x % 100 == 0, 1e6, 1.0)
    x_, low, middle, high = plots.binned(x, wild, wild, wild)
    assert len(x_) == plots.GRID == len(middle)
    assert np.all((low <= middle) & (middle <= high))
    assert high.max() <= 1.0  # the odd one out does not count
    assert np.all(np.diff(x_) > 0)
    np.testing.assert_array_equal(plots.binned(x[:300], wild[:300], wild[:300], wild[:300])[2], wild[:300])


def bump(corner):
    """A smooth field, but for one of its corners."""
    x, y = np.meshgrid(*[np.linspace(0, 1, 101)] * 2)
    values = np.sin(np.pi * x) * np.sin(np.pi * y)
    values[:5, :5] = corner
    return values


def test_counts_begin_at_zero(tmp_path, monkeypatch):
    """A rank that never changes is a line amid its picture, and inner iterations that never were lie at its bottom."""
    made_up(tmp_path / "run", more=(), steps=8)
    drawn = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: drawn.append(figure) or path)
    records = [{**record, "rank": 353, "inner_iterations": 0} for record in find([tmp_path])[0].records]
    run = replace(find([tmp_path])[0], records=records)
    plots.internals([Group("p", "a", (run,))], tmp_path / "solver.png")
    rank, inner = drawn[0].axes[0], drawn[0].axes[2]
    assert rank.get_ylim() == pytest.approx((0, 388.3))
    assert inner.get_ylim() == pytest.approx((0, 1.1))
    assert all(value == round(value) for axis in (rank, inner) for value in axis.get_yticks())


@pytest.mark.parametrize("corner", [1e4, -1e4, np.inf])
def test_a_corner_does_not_blank_a_picture(tmp_path, monkeypatch, corner):
    low, high = fields.robust(bump(corner))
    assert -0.01 <= low < 0.05
    assert 0.95 < high <= 1
    assert 0.95 < fields.around_zero(bump(corner))[1] <= 1
    beyond = fields.beyond(bump(corner), (low, high))
    assert beyond == ("max" if corner > 0 else "min")
    drawn = []
    monkeypatch.setattr(plots, "_save", lambda figure, path: drawn.append(figure) or path)
    line = np.linspace(0, 1, 101)
    panel = fields.Panel("u", ("x", "y"), line, line, bump(corner), (low, high), False, 1.0)
    plots.picture([[panel]], "", tmp_path / "fields.png")
    mesh = drawn[0].axes[0].collections[0]
    assert mesh.get_clim() == (low, high)
    assert mesh.colorbar.extend == beyond


def test_colours_span_all_values_where_nothing_stands_out():
    values = bump(0.0)
    assert fields.robust(values) == (values.min(), values.max())
    assert fields.around_zero(-values) == (-values.max(), values.max())
    assert fields.beyond(values, fields.robust(values)) == "neither"
    assert fields.around_zero(np.zeros((3, 3))) == (-1.0, 1.0)
    assert fields.robust(np.full(4, np.nan)) == (0.0, 1.0)
