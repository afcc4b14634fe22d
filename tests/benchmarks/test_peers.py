"""The bookkeeping of the comparisons: clocks, records, cases, tables. No other package is needed."""

import json
import math
import sys
import time
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import case, run, table
from benchmarks.peers.record import Recorder, first
from benchmarks.peers.table import load


def a_run(peer="natgrad", setting="default", problem="poisson3d", errors=(1.0, 1e-7), setup=2.0, **facts):
    """One that takes a second a row."""
    history = [
        {"step": 10 * i, "time": float(i), "wall": setup + i, "h1": error, "l2": error}
        for i, error in enumerate(errors, 1)
    ]
    known = {"peer": peer, "setting": setting, "problem": problem, "setup": setup, "status": "steps", "versions": {}}
    return {**known, "budget": 30.0, "history": history, **facts}


def test_clock_stands_still_while_paused_and_counts_stepping_from_ready(monkeypatch):
    ticks = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: ticks[0])
    record = Recorder(peer="x")
    ticks[0] = 2.0
    record.ready()
    with record.paused():
        ticks[0] = 10.0
    ticks[0] = 13.0
    record.add(1, {"l2": 0.5})
    assert record.history == [{"step": 1, "time": 3.0, "wall": 5.0, "l2": 0.5}]


def test_a_record_is_written_whole_and_read_back(tmp_path):
    record = Recorder(peer="x", rows=np.int64(3))
    record.add(1, {"l2": np.float64(0.5)}, time=0.25)
    record.add(2, {"l2": math.nan}, time=0.5)
    record.save(tmp_path / "folder" / "a.json")
    (saved,) = load(tmp_path / "folder")
    assert saved["rows"] == 3
    assert [row["l2"] for row in saved["history"]] == [0.5, None]
    assert not list((tmp_path / "folder").glob("*.part"))
    with pytest.raises(ValueError, match=r"no runs in .*: it has no \*\.json file"):
        load(tmp_path)


def test_first_row_at_or_below_an_error():
    history = a_run(errors=(1.0, None, 1e-3, 1e-2, 1e-4))["history"]
    assert first(history, 1e-3, "l2", "wall") == 5.0
    assert first(history, 1e-3, "l2", "time") == 3.0
    assert first(history, 1e-5, "l2", "time") is None


def test_table_has_ratios_to_natgrads_default_and_medians_over_seeds():
    ours = [a_run(errors=[1.0] * n + [1e-7], seed=n) for n in (1, 3, 2)]  # reached after 2, 4, 3 seconds
    theirs = [a_run("randngd", "paper", errors=[1.0] * 5 + [1e-7], setup=54.0), a_run("randngd", "full", errors=[1.0])]
    first_row, second, third = table.rows(theirs + ours, {"poisson3d": 1.56e-6})
    assert first_row[1:8] == ("natgrad default", "3", "30", "3", "5", "1", "1")
    assert second[1:8] == ("randngd paper", "1", "60", "6", "60", "2", "12")
    assert third[1] == "randngd full"
    assert third[3:8] == ("–",) * 5
    assert third[8] == "1.0e+00"


def test_markdown_columns_are_aligned():
    lines = table.markdown(("a", "long head"), [("x", "1"), ("longer", "22")]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "|--------|-----------|"


def test_summary_compares_with_natgrads_faster_method_and_bounds_what_was_not_reached():
    runs = [
        a_run(setting="nystrom", problem="burgers", errors=[1e-2, 1e-3, 1e-4]),
        a_run(setting="full", problem="burgers", errors=[1e-5], setup=1.0),
        a_run("jinns", "ngd", "burgers", [1e-2] * 38, setup=2.0),
        a_run("scimba", "eng", "burgers", (), setup=None, status="no end"),
    ]
    rows = run.rows(runs)
    assert [row[6] for row in rows] == ["2.5", "1", "> 20", "> 15"]
    assert rows[0][2:6] == ("2.0", "4.0", "5.0", "–")
    assert rows[3][2] == "–"
    assert "burgers" in run.report(runs)
    assert run.rows(runs[2:])[0][6] == "–"


def test_summary_has_medians_of_repeats_and_leaves_what_was_compiled_before_out_of_the_ratio():
    fast, slow = ([1e-5], [1e-2, 1e-2, 1e-5])
    runs = [a_run(setting="auto", problem="burgers", errors=errors, setup=1.0) for errors in (slow, fast, fast)]
    runs += [a_run(setting="warm", problem="burgers", errors=fast, setup=0.0)]
    runs += [a_run("jinns", "ngd", "burgers", errors) for errors in (fast, [1e-2], [1e-2])]
    auto, warm, jinns = run.rows(runs)
    assert (auto[1], auto[4], auto[6], auto[7]) == ("natgrad auto", "2.0", "1", "10")
    assert warm[6] == "0.5"
    assert jinns[4] == "–"
    assert jinns[6] == "> 15"


def test_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    runs = [a_run(setting="full", problem="burgers"), a_run("jinns", "ngd", "heat2d", (0.1, None))]
    run.figure(runs, tmp_path / "errors.png")
    assert (tmp_path / "errors.png").stat().st_size > 5_000


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cases")
    for name in case.PROBLEMS:
        case.write(name, folder / f"{name}.npz")
    return folder


@pytest.mark.parametrize("name", case.PROBLEMS)
def test_a_case_read_back_is_the_problem(name, cases):
    read = case.Case(cases / f"{name}.npz")
    lower, upper = np.array(case.LOWER[name]), np.array(case.UPPER[name])
    assert read.name == name
    assert read.layers == [len(lower), 32, 32, 1]
    assert np.all((read.interior > lower) & (read.interior < upper))
    on_side = (read.boundary == lower) | (read.boundary == upper)
    assert on_side.any(axis=1).all()
    assert on_side.sum(axis=0).min() > 0
    if name != "poisson2d":  # data at t = 0, none at the end
        assert np.mean(read.boundary[:, 0] == 0) == 0.5
        assert not np.any(read.boundary[:, 0] == 1)
    assert read.error(read.u) == 0
    assert read.error(0 * read.u[:, None]) == 1


def test_burgers_data_are_a_sine_at_the_start_and_zero_on_the_sides(cases):
    read = case.Case(cases / "burgers.npz")
    start = read.boundary[:, 0] == 0
    assert np.allclose(read.data[start], -np.sin(np.pi * read.boundary[start, 1]), atol=1e-12)
    assert not read.data[~start].any()


def test_a_run_stops_at_its_error_and_leaves_a_record(tmp_path, monkeypatch, cases):
    arguments = [str(cases / "poisson2d.npz"), "--out", str(tmp_path / "a.json"), "--stop-at", "0.1"]
    monkeypatch.setattr(sys, "argv", ["x", *arguments])
    looked = []

    def training(run):
        for step in range(1, 10):
            looked.append(step)
            run.look(step, lambda x, step=step: run.case.u * (1 - 1 / step**2))

    case.Run("", "x", ("y",)).train(training)
    saved = json.loads((tmp_path / "a.json").read_text())
    assert looked == [1, 2, 3, 4]
    assert saved["status"] == "error reached"
    assert [row["l2"] for row in saved["history"]] == pytest.approx([1, 1 / 4, 1 / 9, 1 / 16])


def test_a_process_that_fails_or_hangs_is_a_row_too(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    options = Namespace(budget=1.0, stop_at=1e-5)
    told = run.train(python, "jinns", "ngd", Path("burgers.npz"), tmp_path, options, 0)
    assert told["status"] == "failed"
    assert json.loads((tmp_path / "burgers-jinns-ngd-0.json").read_text()) == told


def test_an_environment_is_made_once(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(run.venv, "create", lambda folder, **options: folder.mkdir(exist_ok=True))
    monkeypatch.setattr(run.subprocess, "run", lambda command, **options: calls.append(command))
    assert run.environment("natgrad", tmp_path) == Path(sys.executable)
    assert not calls
    assert run.environment("jinns", tmp_path) == run.environment("jinns", tmp_path) == tmp_path / "jinns/bin/python"
    assert len(calls) == 1
    assert calls[0][-1] == "jinns==1.10.0"
