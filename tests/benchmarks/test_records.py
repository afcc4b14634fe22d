"""Records: what runs, what is kept of it, and a page whose numbers are those of the files."""

import csv

import pytest

from benchmarks import records
from benchmarks.records import COLUMNS, archive, collect, command, listing, page, published, rows, verdict, wanted
from natgrad import zoo
from natgrad.experiment.runs import find
from tests.experiment.made_up import made_up


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A table of records that is not that of the repository."""
    monkeypatch.setattr(records, "TABLE", tmp_path / "records.csv")
    return tmp_path / "records.csv"


def test_the_page_is_that_of_the_files():
    text = records.PAGE.read_text()
    assert page(text) == text, "python -m benchmarks.records --page"
    for line in ("| `burgers`: Burgers, ν = 0.01/π | 8.0e-9 in 60 s |", "8.3e-9 (vRBA + SSBroyden)"):
        assert line in text
    assert text.count("not yet run") >= sum(
        not any(row["problem"] == name for row in records.table()) for name in published()
    )
    assert tuple(csv.DictReader(records.TABLE.open()).fieldnames) == COLUMNS
    with pytest.raises(ValueError, match="once each"):
        page(text.replace("<!-- runs: end -->", ""))


def test_records_of_known_problems_name_presets_that_exist():
    for record in published().values():
        presets = [*zoo.get(record.problem).presets] if record.problem in zoo.names() else []
        if any(preset.startswith("record") for preset in presets):
            assert record.preset in presets, record.name
    assert {r.problem for r in published().values()} >= {"burgers", "helmholtz2d", "cavity"}
    assert all(r.target > 0 and r.seconds > 0 for r in published().values())


def test_a_name_is_a_command(tmp_path):
    (helmholtz,) = wanted(["helmholtz_66"])
    words = command(helmholtz, 2, tmp_path, ["--time-limit", "60"])
    assert " ".join(words) == (
        "run helmholtz2d --preset record_66 --optimizer polish --seed 2 "
        f"--out {tmp_path}/helmholtz_66/seed2 --no-plots --time-limit 60"
    )
    assert len(wanted(["all"])) == len(published()) == 18
    (other,) = wanted(["poisson3d:small"])
    assert (other.name, other.problem, other.preset, other.target) == ("poisson3d-small", "poisson3d", "small", None)
    made_up(tmp_path / "poisson3d-small" / "seed0")
    assert command(other, 0, tmp_path, [])[-1] == "--resume"
    with pytest.raises(ValueError, match=r"no record helmholtz: there are|no record burger: there are burgers"):
        wanted(["burger"])


def test_what_ended_is_packed_and_a_failure_is_a_line(tmp_path, capsys):
    made_up(tmp_path / "burgers" / "seed0", steps=40)
    (made_up(tmp_path / "kdv" / "seed0", steps=40) / "result.json").unlink()
    archive(tmp_path)
    assert [run.folder.name for run in find([tmp_path / "records.tar.xz"])] == ["seed0"]
    records.run_all(wanted(["poisson3d:nothing"]), [0, 1], tmp_path, 2, [])
    lines = sorted(capsys.readouterr().out.splitlines())
    assert len(lines) == 2
    assert lines[1].startswith("poisson3d-nothing seed 1: failed (2): natgrad: unknown preset 'nothing'")


def test_collecting_replaces_the_rows_of_what_was_run_again(tmp_path, results):
    for seed, floor in enumerate((3e-9, 1.5e-8, 6e-9)):
        made_up(tmp_path / "one" / "burgers" / f"seed{seed}", seed=seed, steps=300, floor=floor, second=0.1)
    made_up(tmp_path / "one" / "kdv" / "seed0", steps=100, floor=1e-3)
    collect(tmp_path / "one")
    found = list(csv.DictReader(results.open()))
    assert [(row["problem"], row["seed"]) for row in found] == [
        ("burgers", "0"),
        ("burgers", "1"),
        ("burgers", "2"),
        ("kdv", "0"),
    ]
    # relative L² is a third of the H¹ error there: 1e-9, 5e-9, 2e-9
    assert [row["error"] for row in found[:3]] == ["1.00e-09", "5.00e-09", "2.00e-09"]
    assert found[0]["norm"] == "l2"
    archive(tmp_path / "one")
    assert list(rows(tmp_path / "one" / records.ARCHIVE)) == list(rows(tmp_path / "one"))
    assert found[0]["command"].startswith("natgrad run poisson3d --optimizer nystrom")
    assert 17 < float(found[0]["reached"]) < 19.5
    assert found[3]["reached"] == ""
    known = published()
    assert verdict(known["burgers"], found[:3]) == "met"
    assert verdict(known["kdv"], found[3:]) == "**missed**, 3,480 times the target"
    assert verdict(known["wave"], []) == "not yet run"
    late = [{**row, "reached": "600.0"} for row in found[:3]]
    assert verdict(known["burgers"], late) == "reached, but after 600 s"
    table = records.compared()
    assert (
        "| 2.0e-9 in 30 s, 1.0e-9 to 5.0e-9 in 3 seeds | met | 8.3e-9 (vRBA + SSBroyden) | 4.1 times smaller |" in table
    )
    assert "**4.2e6 times larger**" in table
    assert table.count("not yet run") == len(known) - 2
    assert "burgers, seed 1: 5.00e-09" in listing()
    assert "On cpu: none" in listing()
    made_up(tmp_path / "two" / "kdv" / "seed5", seed=5, steps=100, floor=1e-4)
    collect(tmp_path / "two")
    assert [row["seed"] for row in csv.DictReader(results.open())] == ["0", "1", "2", "5"]
    made_up(tmp_path / "three" / "poisson3d-small" / "seed0")
    with pytest.raises(ValueError, match="has runs of poisson3d-small: a record is one of burgers"):
        list(rows(tmp_path / "three"))
