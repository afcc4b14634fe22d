"""The gallery: what is kept is small, whole and solves its problem; every problem of the zoo has a section."""

import json

import jax
import numpy as np
import pytest

from benchmarks import gallery
from benchmarks.gallery import NETWORKS, current, draw_all, solution, stale, table
from natgrad import zoo
from tests.experiment.made_up import made_up

LARGEST = 2_000_000  # bytes in results/gallery


def test_rows_and_networks_belong_together():
    records = table()
    assert len(current()) >= 5
    assert {path.stem for path in NETWORKS.iterdir()} == set(records)
    assert set(records) <= set(zoo.names())
    assert sum(path.stat().st_size for path in NETWORKS.iterdir()) < LARGEST
    for name, row in records.items():
        assert row["command"].startswith(f"natgrad run {name} --optimizer nystrom --preset {row['preset']} ")
        assert tuple(row) == gallery.COLUMNS


@pytest.mark.parametrize("name", sorted(current()))
def test_a_network_is_the_solution_of_its_problem(name):
    """Its distance from the exact solution is about the error in its row."""
    row = table()[name]
    view, u = zoo.get(name).fields(json.loads(row["options"])), solution(row)
    lower, upper = np.asarray(view.lower, float), np.asarray(view.upper, float)
    x = lower + (upper - lower) * np.random.default_rng(0).random((400, len(lower)))
    x = x if view.inside is None else x[np.asarray(jax.vmap(view.inside)(x))]
    compared = 0
    for select, exact in view.fields.values():
        if exact is None:
            continue
        ours, theirs = (gallery.fields.many(f)(x) for f in (select(u), exact))
        assert np.linalg.norm(ours - theirs) < 20 * float(row["error"]) * np.linalg.norm(theirs)
        compared += 1
    assert compared


def test_every_problem_has_a_section(tmp_path, monkeypatch):
    """One without a record says so; a picture is drawn once."""
    monkeypatch.setattr(gallery, "table", lambda: {"nonlinear_poisson": table()["nonlinear_poisson"]})
    draw_all(tmp_path)
    text = (tmp_path / gallery.PAGE).read_text()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(zoo.names())
    assert text.count("No record yet") == len(zoo.names()) - 1
    assert text.count("![") == 1
    assert "](img/gallery/nonlinear_poisson.png)" in text
    picture = tmp_path / "nonlinear_poisson.png"
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    row = table()["nonlinear_poisson"]
    assert not stale(row, picture)
    assert stale(row, tmp_path / "other.png")
    drawn = picture.stat().st_mtime_ns
    draw_all(tmp_path)
    assert picture.stat().st_mtime_ns == drawn


def test_a_record_of_an_earlier_preset_counts_as_none(tmp_path, monkeypatch):
    row = table()["nonlinear_poisson"]
    options = json.dumps(json.loads(row["options"]) | {"interior": 901})
    kept = {"nonlinear_poisson": row, "poisson3d": {**row, "preset": "gone"}, "gone": row}
    monkeypatch.setattr(gallery, "table", lambda: kept)
    assert list(current()) == ["nonlinear_poisson"]
    kept["nonlinear_poisson"] = {**row, "options": options}
    draw_all(tmp_path)
    assert not list(tmp_path.glob("*.png"))
    assert (tmp_path / gallery.PAGE).read_text().count("No record yet") == len(zoo.names())


def test_a_run_that_went_wrong_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(gallery, "TABLE", tmp_path / "gallery.csv")
    monkeypatch.setattr(gallery, "NETWORKS", tmp_path / "networks")
    stated = zoo.get("poisson3d").preset("small").error
    folder = made_up(tmp_path / "run", floor=4 * stated)
    with pytest.raises(ValueError, match=r"run ended with an error of .*, and its preset states .*: it is not kept"):
        gallery.keep(folder)
    assert not (tmp_path / "gallery.csv").exists()
    assert not (tmp_path / "networks").exists()
