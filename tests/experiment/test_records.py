"""Archives of runs: the same bytes from the same files, and read like the folders that they were."""

import gzip

import pytest

from natgrad.experiment import plots
from natgrad.experiment.records import content, pack
from natgrad.experiment.report import page
from natgrad.experiment.runs import FILES, find, load
from natgrad.experiment.tables import document
from tests.experiment.made_up import made_up


@pytest.fixture
def home(tmp_path):
    """Two runs, one of them unfinished, one below the other's parent."""
    made_up(tmp_path / "home" / "adam" / "seed0", "adam")
    (made_up(tmp_path / "home" / "nystrom") / "result.json").unlink()
    return tmp_path / "home"


def archive(home, path):
    pack(path, {file.relative_to(home).as_posix(): data for file, data in content(home, *FILES).items()})
    return path


def test_an_archive_is_read_like_its_folder(home, tmp_path):
    packed = archive(home, tmp_path / "runs.tar.xz")
    runs, again = find([home]), find([packed])
    assert [run.folder.relative_to(packed) for run in again] == [run.folder.relative_to(home) for run in runs]
    assert [(r.config, r.result, r.records) for r in again] == [(r.config, r.result, r.records) for r in runs]
    for form in ("markdown", "csv", "latex"):
        assert document(again, form) == document(runs, form)
    assert page(again, fields=False) == page(runs, fields=False)
    for path in plots.plot(again, tmp_path / "one", fields=False):
        plots.plot(runs, tmp_path / "two", fields=False)
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_runs_are_found_once_in_folders_and_archives(home, tmp_path):
    packed = archive(home, tmp_path / "runs.tar.xz")
    assert len(find([packed, packed, home])) == 4


def test_the_same_files_make_the_same_bytes(home, tmp_path):
    first = archive(home, tmp_path / "a.tar.xz").read_bytes()
    for path in home.rglob("*.json"):
        path.touch()
        path.chmod(0o600)
    shuffled = dict(reversed(content(home, *FILES).items()))
    pack(tmp_path / "b.tar.xz", {path.relative_to(home).as_posix(): data for path, data in shuffled.items()})
    assert (tmp_path / "b.tar.xz").read_bytes() == first


def test_what_was_compressed_reads_the_same(home, tmp_path):
    history = home / "nystrom" / "history.jsonl"
    plain = content(home, "history.jsonl")
    (history.parent / "history.jsonl.gz").write_bytes(gzip.compress(history.read_bytes()))
    history.unlink()
    assert content(home, "history.jsonl") == plain
    (history.parent / "history.jsonl.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(ValueError, match=r"cannot read .*nystrom/history\.jsonl\.gz"):
        find([home])


def test_only_what_is_asked_for_is_read(home):
    (home / "nystrom" / "checkpoint").mkdir()
    (home / "nystrom" / "checkpoint" / "step-1.ckpt").write_bytes(b"large")
    assert {path.name for path in content(home, "config.json", "step-*.ckpt")} == {"config.json", "step-1.ckpt"}
    assert {path.name for path in content(home, *FILES)} == set(FILES)


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"x" * 99])
def test_a_damaged_archive_is_named(home, tmp_path, damage):
    packed = archive(home, tmp_path / "runs.tar.xz")
    packed.write_bytes(damage(packed.read_bytes()))
    with pytest.raises(ValueError, match=r"cannot read .*runs\.tar\.xz: it is not a whole archive"):
        find([packed])


def test_archives_have_a_name_that_says_so(tmp_path):
    with pytest.raises(ValueError, match=r"must end with \.tar\.xz"):
        pack(tmp_path / "runs.zip", {"a.json": b"{}"})
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_run_is_not_loaded(home):
    with pytest.raises(ValueError, match=r"no run in .*home: it lacks config\.json and history\.jsonl"):
        load(home)
    assert load(home / "nystrom").status == "unfinished"
