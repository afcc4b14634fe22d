"""Runs sorted into rows, and tables of them in three formats, from made-up runs whose numbers are known."""

import csv
import gzip
import io
import re

import numpy as np
import pytest

from natgrad.experiment.report import page
from natgrad.experiment.runs import find, group
from natgrad.experiment.tables import document, table
from tests.experiment.made_up import made_up


def test_runs_are_found_once(home):
    runs = find([home, home / "heat"])
    assert len(runs) == 10
    assert len(find([home / "heat"])) == 1


def test_compressed_histories_are_read(tmp_path):
    plain, packed = made_up(tmp_path / "plain"), made_up(tmp_path / "packed")
    history = packed / "history.jsonl"
    (packed / "history.jsonl.gz").write_bytes(gzip.compress(history.read_bytes()))
    history.unlink()
    first, second = find([plain])[0], find([packed])[0]
    assert first.records == second.records
    assert len(first.records) == 100


def test_seeds_go_together(home):
    groups = group(find([home]))
    assert [(g.problem, g.label, len(g.runs)) for g in groups] == [
        ("heat3d", "ngd-full", 1),
        ("poisson3d", "ngd-full", 3),
        ("poisson3d", "nystrom-gaussian", 3),
        ("poisson3d", "adam", 3),
    ]


def test_labels_say_what_differs(tmp_path):
    for gamma in (1.0, 10.0):
        made_up(tmp_path / f"g{gamma}", solver={"damping.gamma": gamma})
    made_up(tmp_path / "published", recipe="published")
    labels = [g.label for g in group(find([tmp_path]))]
    assert labels == [
        "nystrom-gaussian (default, gamma=1.0)",
        "nystrom-gaussian (default, gamma=10.0)",
        "nystrom-gaussian (published, gamma=10.0)",
    ]


def test_presets_are_different_columns(tmp_path):
    made_up(tmp_path / "small")
    made_up(tmp_path / "paper", preset="paper")
    assert [g.problem for g in group(find([tmp_path]))] == ["poisson3d (paper)", "poisson3d (small)"]


def medians(home, name):
    runs = [run for run in find([home]) if run.optimizer == name and run.problem == "poisson3d"]
    return [np.percentile([run.plateau[key] for run in runs], [50, 25, 75]) for key in ("error", "time")]


def test_markdown(home):
    lines = table(find([home])).splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == ["optimizer", "heat3d", "poisson3d"]
    assert set(lines[1]) == {"|", "-"}
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["ngd-full", "nystrom-gaussian", "adam"]
    error, time = medians(home, "adam")
    expected = f"{error[0]:.2e} [{error[1]:.2e}, {error[2]:.2e}] ({time[0]:.3g} s [{time[1]:.3g}, {time[2]:.3g}])"
    assert expected in lines[4]
    assert len({len(line) for line in lines}) == 1
    assert lines[3].split("|")[2].strip() == "–"  # not run on that problem


def test_csv_has_the_exact_numbers(home):
    rows = list(csv.DictReader(io.StringIO(table(find([home]), "csv"))))
    error, time = medians(home, "nystrom-gaussian")
    row = next(row for row in rows if row["optimizer"] == "nystrom-gaussian")
    assert [float(row[f"poisson3d error{part}"]) for part in ("", " q1", " q3")] == list(error)
    assert [float(row[f"poisson3d time{part}"]) for part in ("", " q1", " q3")] == list(time)
    assert row["poisson3d runs"] == "3"
    assert row["heat3d error"] == ""


def test_latex(home, tmp_path):
    text = table(find([home]), "latex")
    assert text.count(r"\\") == 4
    assert text.startswith(r"\begin{tabular}{lcc}")
    assert re.search(r"\$\d\.\d\d\\times10\^\{-\d+\}\$", text)
    made_up(tmp_path / "run", problem="inverse_poisson")
    assert r"inverse\_poisson" in table(find([tmp_path]), "latex")


def test_breakdowns_are_in_the_table(tmp_path):
    made_up(tmp_path / "run", status="not finite")
    assert "1 of 1 broke down" in table(find([tmp_path]))


def cells(runs, **options):
    """{label: cell} of a table with one problem."""
    lines = table(runs, **options).splitlines()[2:]
    return {name.strip(): text.strip() for _, name, text, _ in (line.split("|") for line in lines)}


def test_the_default_is_a_row_of_its_own_beside_a_sweep(tmp_path):
    """`compare`, then `sweep --param gamma --values 0.1,1` where γ is 0.1 anyway: the default's runs stay in the plain
    row, and no seed counts twice."""
    for seed in range(2):
        made_up(tmp_path / f"compare{seed}", seed=seed, floor=1e-4 * (1 + seed), solver={"damping.gamma": 0.1})
    for gamma in (0.1, 1.0):
        made_up(tmp_path / f"sweep{gamma}", solver={"damping.gamma": gamma}, more=[f"gamma={gamma}"])
    runs = find([tmp_path])
    assert [(g.label, [run.config["seed"] for run in g.runs], g.repeats) for g in group(runs)] == [
        ("nystrom-gaussian", [0, 1], 1),
        ("nystrom-gaussian (gamma=1.0)", [0], 0),
    ]
    assert "Left out: 1 with the options and the seed" in document(runs)
    assert "Left out: 1 with the options and the seed" in page(runs, fields=False)
    assert "Left out" not in document(runs[:2])


def test_a_sweep_alone_names_every_value(tmp_path):
    for gamma in (0.1, 1.0):
        made_up(tmp_path / f"sweep{gamma}", solver={"damping.gamma": gamma}, more=[f"gamma={gamma}"])
    assert [g.label for g in group(find([tmp_path]))] == [
        "nystrom-gaussian (gamma=0.1)",
        "nystrom-gaussian (gamma=1.0)",
    ]


def test_the_number_of_steps_is_no_row(tmp_path):
    """Of a seed the run that went furthest counts; the cell says that its runs are not equally long."""
    for name, seed, steps in (("short", 0, 50), ("long", 0, 100), ("other", 1, 80)):
        made_up(tmp_path / name, seed=seed, steps=steps)
    (found,) = group(find([tmp_path]))
    assert (found.label, found.repeats) == ("nystrom-gaussian", 1)
    assert {(run.config["seed"], run.steps) for run in found.runs} == {(0, 100), (1, 80)}
    assert cells(find([tmp_path]))["nystrom-gaussian"].endswith(", of 80 to 100 steps")


def test_a_budget_is_a_row(tmp_path):
    made_up(tmp_path / "one")
    made_up(tmp_path / "four", devices=4)
    made_up(tmp_path / "little", memory="1GB")
    made_up(tmp_path / "ten", together=10)
    assert [g.label for g in group(find([tmp_path]))] == [
        "nystrom-gaussian (devices=4)",
        "nystrom-gaussian (memory=1GB)",
        "nystrom-gaussian",
        "nystrom-gaussian (together=10)",
    ]


@pytest.mark.parametrize(("form", "arrow"), [("markdown", "→"), ("latex", r"$\to$")])
def test_the_last_error_stands_beside_the_plateau(tmp_path, form, arrow):
    """A schedule that comes down late: the plateau in its middle is not where it ended."""
    for seed in range(2):
        made_up(tmp_path / f"run{seed}", "adam", seed, floor=1e-1, late=1e-3 * (1 + seed))
    middle = "$1.50\\times10^{-3}$" if form == "latex" else "1.50e-03"
    line = next(line for line in table(find([tmp_path]), form).splitlines() if "adam" in line)
    plateau, _, end = line.partition(arrow)
    assert ("1.1" in plateau, "1.50" in plateau) == (True, False)
    assert end.strip().startswith(middle)
    row = next(csv.DictReader(io.StringIO(table(find([tmp_path]), "csv"))))
    assert float(row["poisson3d end"]) == pytest.approx(1.5e-3)
    assert float(row["poisson3d error"]) > 0.1


def test_runs_that_did_not_end_are_marked(tmp_path):
    made_up(tmp_path / "stopped", "adam", status="interrupted")
    made_up(tmp_path / "whole", "adam", seed=1)
    (made_up(tmp_path / "running", "bfgs") / "result.json").unlink()
    found = cells(find([tmp_path]))
    assert found["adam"].endswith(", 1 of 2 interrupted")
    assert found["bfgs"].endswith(", 1 of 1 unfinished")
    rows = {row["optimizer"]: row for row in csv.DictReader(io.StringIO(table(find([tmp_path]), "csv")))}
    marks = [[rows[name][f"poisson3d {word}"] for word in ("interrupted", "unfinished")] for name in ("adam", "bfgs")]
    assert marks == [["1", "0"], ["0", "1"]]


@pytest.mark.parametrize("status", ["converged", "steps", "target error", "target loss", "time", "stagnation"])
def test_runs_that_ended_well_are_not_marked(tmp_path, status):
    made_up(tmp_path / "run", status=status)
    assert cells(find([tmp_path]))["nystrom-gaussian"].endswith("e-04")


@pytest.mark.parametrize("form", ["markdown", "latex"])
def test_tables_and_pages_mark_runs_that_fit_their_points_alone(tmp_path, form):
    wrong = "points exhausted: the loss at other points is 2, 1e+09 times the 2e-09 at those of training; take more"
    for seed in range(3):
        made_up(tmp_path / f"bad{seed}", "adam", seed, diagnosis=[wrong] if seed else [])
        made_up(tmp_path / f"good{seed}", "ngd-full", seed, diagnosis=["the rank is at its cap of 50: raise max_rank"])
    lines = table(find([tmp_path]), form).splitlines()
    assert ["2 of 3 with points exhausted" in line for line in lines if "adam" in line] == [True]
    assert ["exhausted" in line for line in lines if "ngd-full" in line] == [False]
    text = page(find([tmp_path]), fields=False)
    assert text.count(wrong) == 2
    assert text.count("the rank is at its cap") == 3
