"""A run that dies at any moment goes on as if nothing had happened; damaged checkpoints are refused."""

import contextlib
import json
import os
import random
import signal
import threading

import pytest

from natgrad.experiment import checkpoint
from natgrad.experiment.journal import Journal
from natgrad.experiment.run import run
from natgrad.storage import files
from tests.experiment.small_runs import assert_same_run, config, history, timeless

pytestmark = pytest.mark.usefixtures("compiled")
EVERY = ["ngd-full", "ngd-matrix-free", "nystrom-gaussian", "nystrom-sampling", "rpcholesky"]
EVERY += ["bfgs", "ssbroyden", "lbfgs", "adam"]
QUICK = ["nystrom-gaussian", "adam"]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in EVERY if name not in QUICK]
STEPS = 12


class Crash(BaseException):
    """Ends a run where it stands, as a kill would: nothing in the library catches it."""


def train(folder, optimizer="adam", said=None, **options):
    say = (lambda text: None) if said is None else said.append
    warn = say if said is None else (lambda text: said.append(f"natgrad: {text}"))
    resume, force = options.pop("resume", False), options.pop("force", False)
    return run(config(optimizer, **options), folder, resume=resume, force=force, quiet=True, say=say, warn=warn)


@pytest.fixture(scope="module")
def wholes(tmp_path_factory, compiled):
    """Uninterrupted runs, one an optimizer, made when asked for."""
    home, made = tmp_path_factory.mktemp("whole"), {}

    def get(optimizer="adam"):
        if optimizer not in made:
            made[optimizer] = home / optimizer
            train(made[optimizer], optimizer)
        return made[optimizer]

    return get


@pytest.fixture
def always(monkeypatch):
    """A checkpoint after every step."""
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))


def crash_after(monkeypatch, owner, name, calls):
    """Lets a function work `calls` times, then dies instead."""
    original, count = getattr(owner, name), [0]

    def dying(*args, **kwargs):
        count[0] += 1
        if count[0] > calls:
            raise Crash
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, dying)
    return original


@pytest.mark.parametrize("optimizer", [*QUICK, *SLOW])
@pytest.mark.parametrize("often", [True, False])
def test_crash_and_resume(tmp_path, monkeypatch, wholes, optimizer, often):
    """At a random step, with checkpoints at every step and at the paced ones."""
    whole = wholes(optimizer)
    if often:
        monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
    steps = random.Random(f"{optimizer}{often}").randrange(1, STEPS)
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", steps)
        with pytest.raises(Crash):
            train(tmp_path / "run", optimizer)
    assert not (tmp_path / "run" / "result.json").exists()
    train(tmp_path / "run", optimizer, resume=True)
    assert_same_run(whole, tmp_path / "run")


@pytest.mark.parametrize(
    ("owner", "name", "calls"),
    [
        (os, "replace", 0),  # before config.json
        (os, "replace", 1),  # before the first checkpoint
        (os, "replace", 4),
        (os, "fsync", 9),
        (checkpoint, "pack", 3),
        (files, "dumps", 5),
        (Journal, "mark", 2),
        (Journal, "amend", 0),
        (Journal, "close", 0),
    ],
)
def test_crash_while_writing(tmp_path, monkeypatch, wholes, always, owner, name, calls):
    """In the middle of a file, between two files, at the end: what is there is whole, and the rest is done again."""
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        crash_after(patch, owner, name, calls)
        with contextlib.suppress(Crash):
            train(folder)
    started = (folder / "config.json").exists()
    for path in folder.rglob("*.json"):
        json.loads(path.read_text())
    train(folder, resume=started)
    assert_same_run(wholes(), folder)
    assert not list(folder.rglob("*.part"))


def test_a_half_written_line_is_cut_off(tmp_path, monkeypatch, wholes):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", 7)
        with pytest.raises(Crash):
            train(folder)
    with open(folder / "history.jsonl", "a") as file:
        file.write('{"step": 8, "ti')
    train(folder, resume=True)
    assert_same_run(wholes(), folder)


def interrupted(folder, monkeypatch, steps, number=signal.SIGTERM, **options):
    """A run that is sent a signal in the middle of a step."""
    original, count = Journal.append, [0]

    def append(self, record):
        count[0] += 1
        if count[0] == steps:
            os.kill(os.getpid(), number)
        original(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", append)
        return train(folder, **options)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
def test_signals_end_a_run_cleanly(tmp_path, monkeypatch, wholes, number, status):
    folder = tmp_path / "run"
    before = signal.getsignal(number)
    result = interrupted(folder, monkeypatch, 5, number, evaluate_every=4)
    assert signal.getsignal(number) is before
    assert result["status"] == status
    assert result["steps"] == 5 == len(history(folder))
    assert set(result["errors"]) == {"l2", "h1"}
    assert checkpoint.read(checkpoint.files(folder / "checkpoint")[0])[0]["step"] == 5
    said = []
    train(folder, resume=True, said=said)
    assert "going on from step 5" in said[0]
    train(tmp_path / "whole", evaluate_every=4)
    assert_same_run(tmp_path / "whole", folder)


def test_stopping_early_and_dying_before_the_result(tmp_path, monkeypatch):
    """The last record, evaluated out of turn, is the same; and the resumed run does not step past its target."""
    train(tmp_path / "free")
    errors = [record["errors"]["h1"] for record in history(tmp_path / "free")]
    options = {"target_error": errors[5]}
    done = train(tmp_path / "whole", **options)
    assert done["status"] == "target error"
    with monkeypatch.context() as patch:
        crash_after(patch, checkpoint.Writer, "save", 1)
        with pytest.raises(Crash):
            train(tmp_path / "run", **options)
    train(tmp_path / "run", resume=True, **options)
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    (tmp_path / "run" / "result.json").unlink()
    again = train(tmp_path / "run", resume=True, **options)
    assert again["status"] == "target error"
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_finished_run_has_nothing_to_resume(tmp_path, wholes):
    said = []
    content = (wholes() / "history.jsonl").read_bytes()
    result = train(wholes(), resume=True, said=said)
    assert "nothing to resume" in said[0]
    assert result == json.loads((wholes() / "result.json").read_text())
    assert (wholes() / "history.jsonl").read_bytes() == content


def test_more_steps(tmp_path):
    """A finished run goes on when asked for more; one with a schedule is another run then."""
    train(tmp_path / "run", "ngd-full", steps=6)
    result = train(tmp_path / "run", "ngd-full", steps=9, resume=True)
    assert result["steps"] == 9
    train(tmp_path / "whole", "ngd-full", steps=9)
    assert timeless(tmp_path / "run") == timeless(tmp_path / "whole")
    train(tmp_path / "adam", "adam", steps=3)
    with pytest.raises(ValueError, match=r"solver\.total is 3 there and 5 here"):
        train(tmp_path / "adam", "adam", steps=5, resume=True)


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "truncated":
        data = data[: len(data) // 2]
    elif how == "header cut":
        data = data[:30]
    elif how == "empty":
        data = b""
    elif how == "bit flipped":
        data[-len(data) // 3] ^= 4
    elif how == "header flipped":
        data[data.index(b'"step"') + 8] ^= 1
    elif how == "other format":
        data = b"PK" + data
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("how", ["truncated", "header cut", "empty", "bit flipped", "header flipped", "other format"])
def test_damaged_checkpoints_are_refused_and_the_one_before_is_used(tmp_path, monkeypatch, wholes, always, how):
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 6)
    last, before = checkpoint.files(folder / "checkpoint")
    damage(last, how)
    said = []
    train(folder, resume=True, said=said)
    assert said[0] == f"natgrad: {last.name} is damaged: its checksum does not match"
    assert before.name in said[1]
    assert "\n" not in "".join(said)
    assert_same_run(wholes(), folder)


def test_checkpoints_of_other_runs_are_refused(tmp_path, monkeypatch, wholes, always):
    folder, other = tmp_path / "run", tmp_path / "other"
    interrupted(folder, monkeypatch, 6)
    interrupted(other, monkeypatch, 7, seed=1)
    foreign = checkpoint.files(other / "checkpoint")[0]
    (folder / "checkpoint" / foreign.name).write_bytes(foreign.read_bytes())
    said = []
    train(folder, resume=True, said=said)
    assert said[0] == f"natgrad: {foreign.name} belongs to another run: its fingerprint differs"
    assert_same_run(wholes(), folder)


def test_a_history_that_was_edited_is_noticed(tmp_path, monkeypatch, always):
    folder = tmp_path / "run"
    interrupted(folder, monkeypatch, 6)
    lines = (folder / "history.jsonl").read_text().splitlines(keepends=True)
    (folder / "history.jsonl").write_text("".join([*lines[:2], lines[2].replace("3", "4"), *lines[3:]]))
    content = (folder / "history.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"no checkpoint in .* can be used: choose another --out to start over"):
        train(folder, resume=True)
    assert (folder / "history.jsonl").read_bytes() == content


def test_runs_outside_the_main_thread(tmp_path):
    """Signals cannot be handled there; training can."""
    results = []
    thread = threading.Thread(target=lambda: results.append(train(tmp_path / "run", steps=2)))
    thread.start()
    thread.join()
    assert results[0]["status"] == "steps"
