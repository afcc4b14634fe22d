"""kill -9, for real: processes that are killed at random moments and resumed end like one that never was."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from tests.experiment.small_runs import NYSTROM, SETTINGS, assert_same_run, history

ENVIRONMENT = {"XLA_FLAGS": "--xla_backend_optimization_level=0"}
PATIENCE = 300  # seconds for a process to get somewhere


def command(folder, optimizer, steps, *more):
    settings = (*SETTINGS, *(NYSTROM if optimizer.startswith("nystrom") else ()))
    words = [sys.executable, "-m", "natgrad", "run", "poisson3d", "--optimizer", optimizer, "--steps", str(steps)]
    words += [word for setting in settings for word in ("--set", setting)]
    return [*words, "--out", str(folder), "--quiet", "--no-plots", *more]


@pytest.fixture
def environment(tmp_path_factory):
    home = tmp_path_factory.getbasetemp() / "kill-cache"
    return {**os.environ, **ENVIRONMENT, "NATGRAD_CACHE": str(home)}


def lines(folder):
    try:
        return (folder / "history.jsonl").read_bytes().count(b"\n")
    except OSError:
        return 0


def killed(words, environment, folder, chance, steps):
    """Starts a process and kills it: some of them before the first step, most at a random number of steps."""
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE)
    started, before = time.monotonic(), lines(folder)
    goal = 0 if chance.random() < 0.15 else before + chance.randrange(1, max(2, (steps - before) // 2))
    delay = chance.uniform(0, 0.02) if goal else chance.uniform(0, 6)
    while process.poll() is None and lines(folder) < goal and time.monotonic() - started < PATIENCE:
        time.sleep(0.001)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert b"Traceback" not in errors, errors.decode()


def survive(tmp_path, environment, optimizer, steps, kills, seed):
    whole, folder = tmp_path / "whole", tmp_path / "run"
    code = subprocess.run(command(whole, optimizer, steps), env=environment, timeout=PATIENCE).returncode
    taken = len(history(whole))  # a run may end before, where there is no descent left
    chance = random.Random(seed)
    for _ in range(kills):
        resume = ["--resume"] if (folder / "config.json").exists() else []
        if (folder / "result.json").exists():
            break
        killed(command(folder, optimizer, steps, *resume), environment, folder, chance, taken)
    resume = ["--resume"] if (folder / "config.json").exists() else []
    last = subprocess.run(command(folder, optimizer, steps, *resume), env=environment, timeout=PATIENCE)
    assert last.returncode == code < 2
    assert_same_run(whole, folder)


def test_kill_and_resume(tmp_path, environment):
    survive(tmp_path, environment, "adam", 2000, kills=2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("optimizer", "steps"),
    [
        ("nystrom-gaussian", 300),
        ("ngd-full", 300),
        ("rpcholesky", 300),
        ("lbfgs", 600),
        ("ssbroyden", 600),
        ("adam", 4000),
    ],
)
def test_kill_and_resume_many_times(tmp_path, environment, optimizer, steps):
    survive(tmp_path, environment, optimizer, steps, kills=4, seed=optimizer)
