"""What is not natgrad's is never overwritten or deleted; what natgrad computed is not lost."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from natgrad.experiment import checkpoint, run, single
from natgrad.experiment.folder import LOCK, MARKER, Folder, held
from natgrad.experiment.journal import Journal
from natgrad.storage.files import write
from tests.experiment.made_up import made_up
from tests.experiment.small_runs import assert_same_run, config, history
from tests.experiment.test_resume import Crash, always, crash_after, interrupted, train, wholes  # noqa: F401

pytestmark = pytest.mark.usefixtures("compiled")


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def strangers(folder):
    """A folder of the user's with names that a run has too."""
    for name in ("plots/thesis.png", "checkpoint/step-000000001.ckpt", "history.jsonl", "result.json", "config.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    return contents(folder)


@pytest.mark.parametrize("how", [{}, {"force": True}, {"resume": True}])
def test_a_folder_of_the_user_is_left_alone(tmp_path, how):
    before = strangers(tmp_path / "z")
    with pytest.raises(ValueError, match="natgrad did not make it: choose another --out"):
        train(tmp_path / "z", **how)
    assert contents(tmp_path / "z") == before


def test_an_old_run_without_a_marker_is_a_strangers(tmp_path):
    before = contents(made_up(tmp_path / "run"))
    (tmp_path / "run" / MARKER).unlink()
    with pytest.raises(ValueError, match="natgrad did not make it"):
        train(tmp_path / "run", force=True)
    assert contents(tmp_path / "run").items() <= before.items()


def test_an_empty_folder_is_fine_and_a_mistake_leaves_no_trace(tmp_path):
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "new" / "deep"):
        with pytest.raises(ValueError, match="less than the problem's own arrays"):
            train(folder, memory="1kB")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]
    assert train(tmp_path / "empty", steps=1)["steps"] == 1


def test_force_removes_what_the_manifest_lists(tmp_path):
    folder = tmp_path / "run"
    train(folder, steps=3)
    mine = ["notes.txt", "plots/thesis.png", "checkpoint/step-999999999.ckpt", "checkpoint/.thesis.part"]
    for name in mine:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
    listed = json.loads((folder / MARKER).read_text())["files"]
    assert not set(mine) & set(listed)
    result = train(folder, steps=2, force=True)
    assert result["steps"] == 2 == len(history(folder))
    assert all((folder / name).read_text() == "mine" for name in mine)
    left = {path.relative_to(folder).as_posix() for path in contents(folder)} - set(mine) - {MARKER}
    assert left == set(json.loads((folder / MARKER).read_text())["files"])
    assert {name for name in left if "ckpt" in name} == {
        "checkpoint/step-000000001.ckpt",
        "checkpoint/step-000000002.ckpt",
    }


def test_a_strangers_file_in_the_place_of_one_of_the_runs(tmp_path):
    """Found before anything is removed."""
    folder = tmp_path / "run"
    train(folder, steps=2)
    marker = json.loads((folder / MARKER).read_text())
    marker["files"].remove("result.json")
    (folder / MARKER).write_text(json.dumps(marker))
    before = contents(folder)
    for how in ({"force": True}, {"resume": True}):
        with pytest.raises(ValueError, match=r"result\.json is there already, and natgrad did not make it"):
            train(folder, steps=2, **how)
    assert contents(folder) == before


@pytest.mark.parametrize("how", [{"force": True}, {"resume": True}])
@pytest.mark.parametrize(
    ("name", "kind"), [("checkpoint", "file"), ("history.jsonl", "folder"), ("config.json", "folder")]
)
def test_all_is_checked_before_anything_is_written(tmp_path, name, kind, how):
    folder = tmp_path / "run"
    train(folder, steps=3)
    shutil.rmtree(folder / name) if kind == "file" else (folder / name).unlink()
    (folder / name).write_text("mine") if kind == "file" else (folder / name).mkdir()
    before = contents(folder)
    with pytest.raises(ValueError, match=f"{name} is a {kind}, and natgrad needs a (folder|file) there"):
        train(folder, steps=3, **how)
    assert contents(folder) == before


@pytest.mark.parametrize("how", [{"force": True}, {"resume": True}])
def test_a_link_is_not_written_through(tmp_path, how):
    """Appending to history.jsonl would be appending to the diary."""
    folder = tmp_path / "run"
    train(folder, steps=3)
    (tmp_path / "diary.txt").write_text("mine")
    (folder / "history.jsonl").unlink()
    (folder / "history.jsonl").symlink_to(tmp_path / "diary.txt")
    with pytest.raises(ValueError, match=r"history\.jsonl is a link, and natgrad did not make it"):
        train(folder, steps=5, **how)
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_a_strangers_plots_are_no_hindrance(tmp_path, capsys):
    folder = tmp_path / "run"
    (train(folder, steps=2))
    (folder / "plots").mkdir()
    (folder / "plots" / "thesis.png").write_text("mine")
    again = config("adam", steps=2)
    result = single.train_one(again, folder, resume=False, force=True, quiet=True, plots=True)
    assert result["steps"] == 2
    assert "no pictures: " in capsys.readouterr().err
    assert contents(folder / "plots") == {folder / "plots" / "thesis.png": b"mine"}


@pytest.mark.parametrize("damage", ["removed", "emptied", "cut", "a key changed", "another's"])
def test_a_lost_config_is_taken_from_the_checkpoint(tmp_path, monkeypatch, wholes, always, damage):  # noqa: F811
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 6)
    path = folder / "config.json"
    text = path.read_text()
    if damage == "removed":
        path.unlink()
    elif damage == "another's":
        interrupted(tmp_path / "other", monkeypatch, 3, seed=1)
        path.write_bytes((tmp_path / "other" / "config.json").read_bytes())
    else:
        path.write_text({"emptied": "", "cut": text[:99]}.get(damage, text.replace('"seed": 0', '"seed": 3')))
    with pytest.raises(ValueError, match="holds a run already: --resume goes on with it"):
        train(folder)
    said = []
    train(folder, resume=True, said=said)
    assert "config.json" in said[0]
    assert "the copy in step-000000006.ckpt takes its place" in said[0]
    assert_same_run(wholes(), folder)
    assert json.loads(path.read_text())["fingerprint"] == json.loads(text)["fingerprint"]


def test_a_lost_config_without_a_copy_destroys_nothing(tmp_path):
    folder = made_up(tmp_path / "run")
    (folder / "config.json").unlink()
    before = contents(folder)
    with pytest.raises(ValueError, match="no checkpoint has a copy: choose another --out"):
        train(folder, resume=True)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda c: c | {"steps": "ten"}, "steps is 'ten'"),
        (lambda c: c | {"options": []}, r"options is \[\]"),
        (lambda c: {k: v for k, v in c.items() if k != "set"}, "it lacks set"),
        (lambda c: c | {"problem": "poison3d"}, "was changed"),
        (lambda c: c | {"options": {"problem": {"wdth": 3}, "solver": {}}}, "was changed"),
        (lambda c: [c], "not a JSON object"),
        (lambda c: c | {"format": 7}, "is of format 7, this natgrad reads format 1"),
        (lambda c: c | {"set": [3]}, r"set is \[3\]"),
    ],
)
def test_an_edited_config_is_told_in_a_line(tmp_path, edit, message):
    path = made_up(tmp_path / "run") / "config.json"
    path.write_text(json.dumps(edit(json.loads(path.read_text()))))
    with pytest.raises(ValueError, match=message) as caught:
        train(tmp_path / "run", resume=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}"])
def test_a_lost_marker_is_proven_by_the_checkpoints(tmp_path, monkeypatch, wholes, always, content):  # noqa: F811
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 6)
    (folder / MARKER).write_text(content) if content else (folder / MARKER).unlink()
    with pytest.raises(ValueError, match=r"natgrad did not make it|natgrad\.json"):
        train(folder, force=True)
    train(folder, resume=True)
    assert_same_run(wholes(), folder)


@pytest.mark.parametrize("stray", ["nonsense", "a copy"])
def test_strays_among_the_checkpoints_are_left_alone(tmp_path, monkeypatch, wholes, always, stray):  # noqa: F811
    """The newest good ones are kept, whatever the names of the others."""
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 5)
    last = checkpoint.files(folder / "checkpoint")[0]
    for name in ("step-999999999.ckpt", "step-000000008.ckpt"):
        (folder / "checkpoint" / name).write_bytes(last.read_bytes() if stray == "a copy" else b"mine")
    content = (folder / "checkpoint" / "step-999999999.ckpt").read_bytes()
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", 5)
        with pytest.raises(Crash):
            train(folder, resume=True)
    said = []
    train(folder, resume=True, said=said)
    assert any("going on from step 10" in line for line in said)
    for name in ("step-999999999.ckpt", "step-000000008.ckpt"):
        assert (folder / "checkpoint" / name).read_bytes() == content
    own = [path for path in checkpoint.files(folder / "checkpoint") if path.read_bytes() != content]
    assert [path.name for path in own] == ["step-000000012.ckpt", "step-000000011.ckpt"]
    assert json.loads((folder / "result.json").read_text())["steps"] == 12
    if stray == "nonsense":
        for name in ("step-999999999.ckpt", "step-000000008.ckpt"):
            (folder / "checkpoint" / name).unlink()
        assert_same_run(wholes(), folder)


def test_checkpoints_that_are_gone_are_told(tmp_path, monkeypatch, always):  # noqa: F811
    """The history of many steps is not begun anew because of it."""
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 6)
    shutil.rmtree(folder / "checkpoint")
    before = contents(folder)
    with pytest.raises(ValueError, match=r"the checkpoints of the run in .* are gone: choose another --out"):
        train(folder, resume=True)
    assert contents(folder) == before


@pytest.mark.parametrize("content", ["", "nonsense", '{"status": "steps"}', "another's"])
def test_a_damaged_result_is_made_anew(tmp_path, content):
    folder = tmp_path / "run"
    result = train(folder, steps=4)
    if content == "another's":
        train(tmp_path / "other", steps=4, seed=2)
        content = (tmp_path / "other" / "result.json").read_text()
    (folder / "result.json").write_text(content)
    said = []
    again = train(folder, steps=4, resume=True, said=said)
    assert "it is written anew" in said[0]
    assert {name: again[name] for name in ("status", "steps", "errors", "loss")} == {
        name: result[name] for name in ("status", "steps", "errors", "loss")
    }


def test_two_processes_do_not_share_a_folder(tmp_path, monkeypatch):
    """Another one that starts while this one is between its look and its first file: it waits for nothing, and goes."""
    folder, met = tmp_path / "run", []
    original = run.prepare

    def delayed(*args):
        if not met:
            met.append("trying")
            with pytest.raises(ValueError, match=r"another process is writing into .*: wait for it or choose --out"):
                train(folder)
            met.append("refused")
        return original(*args)

    monkeypatch.setattr(run, "prepare", delayed)
    assert train(folder, steps=3)["steps"] == 3
    assert met == ["trying", "refused"]
    assert len(history(folder)) == 3
    assert not (folder / LOCK).exists()


def test_a_lock_ends_with_its_process(tmp_path):
    """One that was killed does not lock the next one out; one that is alive does."""
    code = (
        "import sys, time\nfrom natgrad.experiment.folder import held\n"
        f"with held({str(tmp_path / 'run')!r}, 'run'):\n    print('in', flush=True)\n    time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"in\n"
        with pytest.raises(ValueError, match="another process is writing into"), held(tmp_path / "run", "run"):
            pass
    finally:
        other.kill()
        other.communicate()
    assert (tmp_path / "run" / LOCK).exists()
    with held(tmp_path / "run", "run") as folder:
        folder.claim("config.json")
    assert not (tmp_path / "run" / LOCK).exists()


def test_warnings_are_said_though_quiet(tmp_path, monkeypatch, always, capsys):  # noqa: F811
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 4)
    checkpoint.files(folder / "checkpoint")[0].write_bytes(b"")
    capsys.readouterr()
    single.train_one(config("adam"), folder, resume=True, force=False, quiet=True, plots=False)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "natgrad: step-000000004.ckpt is damaged: its checksum does not match\n"


def test_a_diagnosis_is_said_though_quiet(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("natgrad.diagnosis.FAR", 0.0)
    monkeypatch.setattr("natgrad.diagnosis.SMALL", 0.0)
    single.train_one(config("adam", steps=3), tmp_path / "run", resume=False, force=False, quiet=True, plots=False)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("natgrad: points exhausted")


def full(*args):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize(("where", "name"), [("fsync", "natgrad.json"), ("write", "history.jsonl")])
def test_a_full_disk_names_the_file(tmp_path, monkeypatch, where, name):
    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        original = Journal.__init__

        def made(self, *args):
            original(self, *args)
            self.file.close()
            self.file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115

        monkeypatch.setattr(Journal, "__init__", made)
    with pytest.raises(OSError, match="No space left") as caught:
        train(tmp_path / "run", steps=2)
    assert caught.value.filename == str(tmp_path / "run" / name)


def test_the_command_line_names_the_full_disk(tmp_path, monkeypatch, capsys):
    from natgrad.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "run",
                "poisson3d",
                "--set",
                "width=4",
                "--set",
                "interior=30",
                "--set",
                "boundary=12",
                "--out",
                "run",
                "--quiet",
            ]
        )
    assert stop.value.code == 2
    assert capsys.readouterr().err == "natgrad: run/natgrad.json: No space left on device\n"


def test_outputs_replace_only_their_own(tmp_path):
    """Pictures, tables and spectra: a name that a stranger's file has is refused before any of them is written."""
    with held(tmp_path / "pictures", "pictures") as folder:
        folder.draw(lambda workshop: [made(workshop / "a.png", "1")])
    (tmp_path / "pictures" / "b.png").write_text("mine")
    with held(tmp_path / "pictures", "pictures") as folder:
        folder.draw(lambda workshop: [made(workshop / "a.png", "2")])
        with pytest.raises(ValueError, match=r"b\.png is there already, and natgrad did not make it"):
            folder.draw(lambda workshop: [made(workshop / "a.png", "3"), made(workshop / "b.png", "3")])
    assert (tmp_path / "pictures" / "a.png").read_text() == "2"
    assert (tmp_path / "pictures" / "b.png").read_text() == "mine"
    Folder.open(tmp_path / "pictures", "pictures").dissolve()
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["b.png"]


def made(path, text):
    write(path, text)
    return path


def test_a_series_may_lie_among_its_runs_and_nothing_else(tmp_path):
    made_up(tmp_path / "runs" / "one", steps=3)
    (tmp_path / "runs" / "two").mkdir()
    assert not Folder.open(tmp_path / "runs", "series").marked
    (tmp_path / "runs" / "table.md").write_text("mine")
    with pytest.raises(ValueError, match="other things in it"):
        Folder.open(tmp_path / "runs", "series")
