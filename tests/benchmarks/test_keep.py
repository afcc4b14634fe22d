"""The kept runs: one table of all, made from the archives, and nothing in them is ever replaced."""

import csv
import io
import json

import pytest

from benchmarks.keep import COLUMNS, RESULTS, TABLE, keep, table
from natgrad.experiment.records import content
from natgrad.experiment.runs import find
from tests.experiment.made_up import made_up


def test_the_table_is_that_of_the_archives():
    text = (RESULTS / TABLE).read_text()
    assert text == table(RESULTS)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert all(row["command"] and row["versions"] and row["error"] for row in rows)
    records = {(row["archive"], row["record"]) for row in rows}
    assert len(records) == len(rows)
    readme = (RESULTS / "README.md").read_text()
    for name in {row["archive"] for row in rows}:
        assert f"| `{name}` | {sum(row['archive'] == name for row in rows)} |" in readme
    assert f"| `{TABLE}` | {len(rows)} |" in readme
    assert all(f"`{column}`" in readme for column in COLUMNS)


def test_records_are_added_and_never_replaced(tmp_path):
    archive = tmp_path / "kept.tar.xz"
    made_up(tmp_path / "one" / "seed0", seed=0)
    (tmp_path / "one" / "seed0" / "plots").mkdir()
    (tmp_path / "one" / "seed0" / "plots" / "loss.png").write_bytes(b"picture")
    made_up(tmp_path / "two" / "seed1", seed=1)
    keep(tmp_path / "one", archive)
    before = content(archive, "*")
    keep(tmp_path / "two", archive)
    keep(tmp_path / "one", archive)  # again: nothing new
    after = content(archive, "*")
    assert before.items() < after.items()
    files = ("config.json", "history.jsonl", "natgrad.json", "result.json")
    assert sorted(str(path.relative_to(archive)) for path in after) == [
        f"{s}/{f}" for s in ("seed0", "seed1") for f in files
    ]
    assert [run.config["seed"] for run in find([archive])] == [0, 1]
    (tmp_path / "one" / "seed0" / "result.json").write_text("{}")
    with pytest.raises(ValueError, match=r"another seed0/result\.json already"):
        keep(tmp_path / "one", archive)
    assert content(archive, "*") == after
    (tmp_path / "none").mkdir()
    with pytest.raises(ValueError, match="no records"):
        keep(tmp_path / "none", archive)


def test_a_row_has_what_the_record_says(tmp_path):
    made_up(tmp_path / "runs" / "a", "adam", seed=3)
    keep(tmp_path / "runs", tmp_path / "runs.tar.xz")
    history = [{"step": 5, "time": 1.0, "wall": 9.0, "l2": 0.5}, {"step": 9, "time": 2.0, "wall": 10.0, "l2": 0.25}]
    peer = {
        "peer": "jinns",
        "problem": "heat2d",
        "setting": "ngd",
        "seed": 0,
        "versions": {"jinns": "1"},
        "status": "time",
    }
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "x.json").write_text(json.dumps({**peer, "command": "c", "python": "3", "history": history}))
    keep(tmp_path / "peers", tmp_path / "peers.tar.xz")
    other, run = csv.DictReader(io.StringIO(table(tmp_path)))
    (found,) = find([tmp_path / "runs"])
    assert (run["archive"], run["record"], run["optimizer"], run["seed"]) == ("runs.tar.xz", "a", "adam", "3")
    assert float(run["error"]) == found.end
    assert float(run["plateau_error"]) == found.plateau["error"]
    assert run["command"] == "natgrad run poisson3d --optimizer adam --seed 3"
    assert (other["package"], other["optimizer"], other["steps"], other["norm"]) == ("jinns", "ngd", "9", "l2")
    assert (float(other["error"]), float(other["seconds"])) == (0.25, 2.0)
    assert other["versions"] == "python 3, jinns 1"
