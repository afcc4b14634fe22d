"""The bookkeeping of the comparison with DSGNAR, whose package is not needed."""

import json
from argparse import Namespace

import jax
import numpy as np
import pytest

from benchmarks import records
from benchmarks.peers import dsgnar_runs as runs


def a_run(peer, problem, errors, seed=0, status="steps"):
    """One that takes two seconds a step."""
    history = [{"step": i, "time": 2.0 * i, "l2": error} for i, error in enumerate(errors, 1)]
    facts = {"device": "a", "dtype": "float64", "versions": {"jax": "1"}, "setting": "default", "seed": seed}
    return {"peer": peer, "problem": problem, "status": status, "history": history, **facts}


@pytest.mark.parametrize("name", runs.PROBLEMS)
def test_every_problem_has_a_reference_that_solves_it_at_the_edges(name, tmp_path):
    runs.reference(name, tmp_path / "references" / f"{name}.npz")
    kept = np.load(tmp_path / "references" / f"{name}.npz")
    z, u = kept["coords"], kept["solution"][:, 0]
    assert len(z) == len(u)
    exact = {
        "wave": lambda z: (
            np.sin(np.pi * z[:, 0]) * np.cos(2 * np.pi * z[:, 1])
            + np.sin(4 * np.pi * z[:, 0]) * np.cos(8 * np.pi * z[:, 1]) / 2
        ),
        "multiscale": lambda z: sum(np.prod(np.sin(w * np.pi * z), axis=1) for w in (4, 8, 12, 16)) / 4,
        "poisson5d": lambda z: np.cos(np.pi * z).sum(axis=1),
    }
    if name in exact:
        np.testing.assert_allclose(u, exact[name](z), atol=1e-10)
    else:  # space comes before time: near the start u is what it starts from
        early = z[:, 1] < 0.01
        start = -np.sin(np.pi * z[early, 0]) if name == "burgers_001" else np.cos(np.pi * z[early, 0])
        assert np.abs(u[early] - start).max() < 0.05
        assert np.abs(u[z[:, 1] > 0.9] - np.resize(start, np.sum(z[:, 1] > 0.9))).max() > 0.3


def test_records_of_natgrad_are_the_published_ones():
    known = records.published()
    assert all(runs.record_of(name) == known[name] for name in runs.PROBLEMS)


def test_table_has_medians_of_seconds_and_leaves_out_what_was_not_reached():
    found = [a_run("natgrad", "kdv", errors, seed) for seed, errors in enumerate(([1e-3, 1e-7], [1e-2, 1e-3, 1e-6]))]
    found += [a_run("dsgnar", "kdv", [None, 1e-1], status="time")]
    lines = runs.table(found).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert cells[0] == ["kdv", "dsgnar default", "–", "–", "–", "–", "1.0e-01", "4.0", "2", "time"]
    assert cells[1][:6] == ["kdv", "natgrad default", "3.0", "5.0", "–", "–"]
    assert float(cells[1][6]) == pytest.approx(5.5e-7)


def test_figure_and_page_are_made_from_the_runs(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    found = [a_run("natgrad", "wave", [1e-2, 1e-5]), a_run("dsgnar", "wave", [None, 1e-1])]
    runs.figure(found, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 3_000
    text = "a\n<!-- dsgnar: made by benchmarks.peers.dsgnar_runs -->\nold\n<!-- dsgnar: end -->\nb"
    for i, run in enumerate(found):
        (tmp_path / f"{i}.json").write_text(json.dumps(run))
    new = runs.page(text, tmp_path)
    assert "old" not in new
    assert "| wave" in new
    assert runs.page(new, tmp_path) == new
    assert "not run yet" in runs.page(text, tmp_path / "nothing")
    with pytest.raises(ValueError, match="must have the line <!-- dsgnar"):
        runs.page("nothing", tmp_path)
    assert runs.PAGE.read_text().count("<!-- dsgnar: end -->") == 1


@pytest.mark.slow
def test_natgrads_own_runs_are_written_down_in_the_same_form(tmp_path):
    jax.config.update("jax_enable_x64", True)
    sizes = ["width=4", "depth=2", "interior=60", "boundary=20"]
    options = Namespace(out=tmp_path, seed=0, seconds=1.0, natgrad_set=sizes)
    runs.natgrad("multiscale", options)
    saved = json.loads((tmp_path / "natgrad-multiscale-0.json").read_text())
    assert saved["setting"] == " ".join([runs.record_of("multiscale").optimizer, *sizes])
    assert saved["history"][0]["l2"] > 0
    assert [row["step"] for row in saved["history"]] == list(range(1, 1 + len(saved["history"])))
