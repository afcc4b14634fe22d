"""Run folders: what is in them, what their time counts, and how a run that breaks down ends."""

import itertools
import json
import time

import jax
import numpy as np
import pytest

from natgrad.experiment import checkpoint
from natgrad.experiment.folder import Folder
from natgrad.experiment.run import run
from natgrad.experiment.runs import load
from natgrad.storage.files import read_json, write, write_json
from tests.experiment.small_runs import config, history

KEYS = {
    "problem", "optimizer", "recipe", "preset", "seed", "status", "steps", "parameters", "loss", "errors", "plateau",
    "time", "compile_time", "device", "dtype", "versions", "command",
}  # fmt: skip
LINE = {"step", "time", "loss", "errors", "mu", "rank", "inner_iterations", "inner_residual", "step_size"}
pytestmark = pytest.mark.usefixtures("compiled")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, compiled):
    folder = tmp_path_factory.mktemp("trained") / "run"
    started = time.perf_counter()
    result = run(config(steps=15, evaluate_every=2), folder, quiet=True)
    return folder, result, time.perf_counter() - started


def test_a_run_folder_is_complete(trained):
    folder, result, _ = trained
    assert result == read_json(folder / "result.json")
    assert set(result) >= KEYS
    assert (result["problem"], result["optimizer"], result["preset"], result["seed"]) == (
        "poisson3d",
        "ngd-full",
        "small",
        0,
    )
    assert result["status"] == "steps"
    assert result["steps"] == 15
    assert result["parameters"] == 21
    assert result["dtype"] == "float64"
    assert set(result["errors"]) == {"l2", "h1"}
    assert set(result["plateau"]) == {"step", "time", "error"}
    assert {"jax", "natgrad", "python"} <= set(result["versions"])
    assert result["command"][:3] == ["natgrad", "run", "poisson3d"]
    settings = read_json(folder / "config.json")
    assert settings["options"]["problem"] == {"width": 4, "depth": 1, "interior": 30, "boundary": 12}
    assert settings["options"]["solver"]["damping.rule.gamma"] == 10.0
    assert settings["plan"]["gramian"] == "assembled"


def test_the_history_has_a_line_a_step(trained):
    folder, result, _ = trained
    records = history(folder)
    assert [record["step"] for record in records] == list(range(1, 16))
    assert all(set(record) >= LINE for record in records)
    assert [record["step"] for record in records if record["errors"]] == [2, 4, 6, 8, 10, 12, 14, 15]
    assert records[-1]["loss"] == result["loss"]
    assert records[-1]["errors"] == result["errors"]
    best = min(record["errors"]["h1"] for record in records if record["errors"])
    assert result["plateau"]["error"] >= best


def test_the_loss_at_other_points_is_kept(trained):
    folder, result, _ = trained
    records = history(folder)
    assert [r["step"] for r in records if r["validation"] is not None] == [2, 4, 6, 8, 10, 12, 14, 15]
    assert records[-1]["validation"] == result["validation"] > 0
    assert records[-1]["training"] == records[-1]["loss"]
    assert bool(result["diagnosis"]) == (result["validation"] > 100 * records[-1]["training"])
    assert load(folder).series("validation")[1][-1] == result["validation"]


def test_a_run_that_ends_between_evaluations_writes_its_last_one(tmp_path):
    result = run(config("adam", steps=40, evaluate_every=30, time_limit=1e-9), tmp_path / "run", quiet=True)
    assert result["status"] == "time"
    records = history(tmp_path / "run")
    assert len(records) == result["steps"] < 30
    assert records[-1]["errors"] == result["errors"] != {}
    assert records[-1]["validation"] == result["validation"] > 0
    assert all(record["validation"] is None for record in records[:-1])


def test_a_diagnosis_survives_a_lost_result(tmp_path, monkeypatch):
    """A run that has nothing left to do is read from its checkpoint, and says the same of itself."""
    folder = tmp_path / "run"
    monkeypatch.setattr("natgrad.diagnosis.FAR", 0.0)
    monkeypatch.setattr("natgrad.diagnosis.SMALL", 0.0)
    result = run(config("adam", steps=4), folder, quiet=True)
    assert result["diagnosis"][0].startswith("points exhausted")
    assert load(folder).exhausted
    (folder / "result.json").unlink()
    again = run(config("adam", steps=4), folder, quiet=True, resume=True, say=lambda text: None)
    assert {name: again[name] for name in ("diagnosis", "validation")} == {
        name: result[name] for name in ("diagnosis", "validation")
    }


def test_time_counts_stepping_alone(trained):
    """Not compilation, nor errors, nor checkpoints: it is the sum of the steps' own times, a part of the whole."""
    folder, result, wall = trained
    assert result["time"] == history(folder)[-1]["time"]
    assert result["time"] > 0
    assert result["time"] + result["compile_time"] + result["checkpoints"]["time"] < wall


def test_checkpoints_cost_a_bounded_share(tmp_path, monkeypatch):
    """All together no more than 2 % of the stepping, the first and what one is dearer than the last aside."""
    costs = itertools.cycle([0.001, 0.003, 0.002])
    readings = itertools.accumulate(cost for pair in zip(itertools.repeat(0.0), costs) for cost in pair)
    monkeypatch.setattr(checkpoint.time, "perf_counter", lambda: next(readings))
    writer = checkpoint.Writer(Folder(tmp_path, "run"), {"fingerprint": "print"})
    tree = {"a": np.zeros(1000), "key": jax.random.key(3)}
    written = []
    for step in range(1, 2001):
        clock = 0.002 * step
        if writer.due(clock):
            writer.save(step, clock, None, {}, tree)
            written.append((step, writer.spent))
    assert written[0][0] == 1
    assert len(written) > 20
    assert all(spent <= 0.02 * 0.002 * step + 0.002 for step, spent in written[1:])
    assert len(checkpoint.files(tmp_path / "checkpoint")) == 2


def test_trees_come_back_bit_for_bit(tmp_path):
    tree = {
        "x": jax.numpy.asarray([np.nan, -0.0, 5e-324, 1 / 3]),
        "key": jax.random.split(jax.random.key(7), 3),
        "n": jax.numpy.asarray(3, "int32"),
        "flag": jax.numpy.asarray(True),
        "nothing": None,
    }
    writer = checkpoint.Writer(Folder(tmp_path, "run"), {"fingerprint": "print"})
    writer.save(4, 1.5, "steps", {"bytes": 0}, tree)
    (path,) = checkpoint.files(tmp_path / "checkpoint")
    found = checkpoint.load(path, "print", lambda header: jax.tree.map(lambda leaf: leaf, tree))
    assert (found.step, found.time, found.status) == (4, 1.5, "steps")
    assert bytes(checkpoint.pack(found.tree)) == bytes(checkpoint.pack(tree))
    assert found.tree["key"].dtype == tree["key"].dtype
    with pytest.raises(ValueError, match="does not fit"):
        checkpoint.load(path, "print", lambda header: {**tree, "n": jax.numpy.zeros(2)})


def test_parameters_are_restored(trained):
    folder, result, _ = trained
    problem, params = load(folder).restore()
    np.testing.assert_allclose(float(problem.loss(params)), result["loss"], rtol=1e-8)
    assert float(problem.errors(params)["h1"]) == pytest.approx(result["errors"]["h1"], rel=1e-8)


def test_seeds_change_problem_and_solver(tmp_path, trained):
    folder, _, _ = trained
    run(config(steps=2, evaluate_every=2, seed=5), tmp_path / "other", quiet=True)
    assert history(tmp_path / "other")[0]["loss"] != history(folder)[0]["loss"]


def test_a_breakdown_keeps_the_last_good_parameters(tmp_path):
    """A learning rate beyond all measure: status, finite parameters, valid JSON."""
    result = run(
        config("adam", steps=40, more=("peak=1e200", "start=1e200", "end=1e200")), tmp_path / "run", quiet=True
    )
    assert result["status"] == "not finite"
    text = (tmp_path / "run" / "result.json").read_text() + (tmp_path / "run" / "history.jsonl").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    _, params = load(tmp_path / "run").restore()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params))


def test_force_removes_the_run_and_nothing_else(tmp_path, trained):
    folder = tmp_path / "run"
    run(config("adam", steps=3), folder, quiet=True)
    (folder / "notes.txt").write_text("mine")
    (folder / "plots").mkdir()
    with pytest.raises(ValueError, match="holds a run already"):
        run(config("adam", steps=2), folder, quiet=True)
    assert len(history(folder)) == 3
    assert run(config("adam", steps=2), folder, quiet=True, force=True)["steps"] == 2
    assert (folder / "notes.txt").read_text() == "mine"
    assert not (folder / "plots").exists()


def test_files_are_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_json(path, {"x": np.float64(1.5), "bad": float("nan"), "list": (1, np.int32(2))})
    assert json.loads(path.read_text()) == {"x": 1.5, "bad": None, "list": [1, 2]}
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(path, "half")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
