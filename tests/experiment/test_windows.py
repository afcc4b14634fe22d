"""`natgrad run … --windows`: one folder for all windows, which goes on in whatever window it was killed."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.cli import command
from natgrad.experiment import checkpoint
from natgrad.experiment.config import Config
from natgrad.experiment.export import export
from natgrad.experiment.fields import panels
from natgrad.experiment.journal import Journal
from natgrad.experiment.movie import of_run
from natgrad.experiment.run import run
from natgrad.experiment.runs import load
from natgrad.stages import times
from tests.experiment.small_runs import assert_same_run, history
from tests.experiment.test_resume import Crash, crash_after

pytestmark = pytest.mark.usefixtures("compiled")
SETTINGS = ("width=4", "depth=1", "interior=30", "initial=12", "boundary=12")
STEPS = 5


def train(folder, windows="3", resume=False, **options):
    config = Config("reaction", "ngd-full", steps=STEPS, settings=SETTINGS, windows=windows, **options)
    return run(config, folder, resume=resume, quiet=True, say=lambda text: None, warn=lambda text: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, compiled):
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(folder)
    return folder


def test_one_folder_of_all_windows(whole):
    result, config = (json.loads((whole / name).read_text()) for name in ("result.json", "config.json"))
    assert (result["status"], result["steps"], result["windows"], config["windows"]) == ("steps", 15, 3, 3)
    assert [list(g)[-1]["step"] for _, g in itertools.groupby(history(whole), lambda r: r["window"])] == [5, 10, 15]
    assert "--windows" in result["command"]
    assert result["plateau"]["error"] == result["errors"]["l2"]


@pytest.mark.parametrize("steps", [2, 7, 10, 14])
def test_crash_and_resume_in_any_window(tmp_path, monkeypatch, whole, steps):
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", steps)
        with pytest.raises(Crash):
            train(tmp_path / "run")
    assert len(history(tmp_path / "run")) == steps
    train(tmp_path / "run", resume=True)
    assert_same_run(whole, tmp_path / "run")


def test_crash_of_windows_that_choose_their_length(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SHARE", float("inf"))
    monkeypatch.setattr(times, "TOLERANCE", 0.1)
    train(tmp_path / "whole", "auto")
    assert len({record["window"] for record in history(tmp_path / "whole")}) > 2
    with monkeypatch.context() as patch:
        crash_after(patch, Journal, "append", 12)
        with pytest.raises(Crash):
            train(tmp_path / "run", "auto")
    train(tmp_path / "run", "auto", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_what_has_ended_is_left_as_it_is(whole):
    before = (whole / "result.json").read_text()
    train(whole, resume=True)
    assert (whole / "result.json").read_text() == before
    (whole / "result.json").unlink()
    train(whole, resume=True)
    assert json.loads((whole / "result.json").read_text())["errors"] == json.loads(before)["errors"]


def test_another_number_of_windows_is_another_run(whole):
    with pytest.raises(ValueError, match="windows is 3 there and 4 here"):
        train(whole, "4", resume=True)
    with pytest.raises(ValueError, match="windows is 3 there and None here"):
        train(whole, None, resume=True)


def test_the_function_is_read_back_and_drawn(whole):
    u = load(whole).function()
    assert u.times == pytest.approx((0, 1 / 3, 2 / 3, 1))
    assert u(jnp.array([0.0, 0.5])) == u.functions[0](jnp.array([0.0, 0.5]))
    assert [panel.title for panel in panels(load(whole))[0]] == ["u", "exact u", "difference"]


def test_windows_are_exported_and_move(whole, tmp_path):
    """As one function of all times."""
    Image = pytest.importorskip("PIL.Image")
    (file,) = export(load(whole), tmp_path / "u.npz", resolution=4, times=(0.1, 0.9))
    u = load(whole).function()
    with np.load(file) as data:
        for number, time, values in zip((0, 2), data["times"], data["u"], strict=True):
            x = np.insert(data["points"], 0, time, axis=1)
            np.testing.assert_allclose(values, jax.vmap(u.functions[number])(x), atol=1e-12)
    with Image.open(of_run(tmp_path / "u.gif", load(whole), times=2)) as picture:
        assert picture.n_frames == 2


def test_a_target_that_is_reached_between_evaluations(tmp_path, monkeypatch):
    """The last line of a window has its errors, in the history too."""
    train(tmp_path / "run", evaluate_every=STEPS + 1)
    ends = [list(group)[-1] for _, group in itertools.groupby(history(tmp_path / "run"), lambda r: r["window"])]
    assert all(line["errors"] for line in ends)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reaction", "--windows", "0"], "the number of windows must be an integer from 1 to 10000, got 0"),
        (["reaction", "--windows", "many"], "--windows takes a number of windows, times separated by commas, or auto"),
        (["reaction", "--windows", "0,0.5,0.5"], "times must increase, got 0.5 after 0.5"),
        (["reaction", "--windows", "0,2"], "times must not be outside the problem's interval (0, 1), got 2"),
        (["reaction", "--windows", "0,nan"], "times must be finite, got nan"),
        (["poisson3d", "--windows", "2"], "poisson3d has no windows of time"),
        (["reaction", "--windows", "2", "--seeds", "0:2", "--together"], "leave --together out"),
    ],
)
def test_bad_windows_end_in_one_line(tmp_path, capfd, words, said):
    small = [word for setting in SETTINGS for word in ("--set", setting)] if words[0] == "reaction" else []
    assert command(["run", *words, *small, "--out", str(tmp_path / "run")]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert said in lines[0]
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.slow
def test_killed_in_each_window(tmp_path):
    """kill -9, for real, once in each of three windows."""
    words = [sys.executable, "-m", "natgrad", "run", "reaction", "--optimizer", "ngd-full", "--windows", "3"]
    words += ["--steps", "300", "--quiet", "--no-plots", *(w for s in SETTINGS for w in ("--set", s))]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "NATGRAD_CACHE": str(tmp_path / "cache")}
    start = lambda name, *more: subprocess.Popen([*words, "--out", str(tmp_path / name), *more], env=environment)
    assert start("whole").wait(300) == 0
    for window in (1, 2, 3):
        process = start("run", *(["--resume"] if window > 1 else []))
        goal, since = 300 * window - 150, time.monotonic()
        path = tmp_path / "run" / "history.jsonl"
        while process.poll() is None and time.monotonic() - since < 300:
            if path.exists() and path.read_bytes().count(b"\n") >= goal:
                break
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert start("run", "--resume").wait(300) == 0
    assert_same_run(tmp_path / "whole", tmp_path / "run")
