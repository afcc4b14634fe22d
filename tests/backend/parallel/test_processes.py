"""Several processes on loopback, through the command line: one run, written once; one that dies ends the others."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

SETTINGS = ("width=4", "depth=1", "interior=31", "boundary=13")
PATIENCE = 300  # seconds for processes that share few cores


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(folder, steps, *more, optimizer="ngd-full"):
    words = [sys.executable, "-m", "natgrad", "run", "poisson3d", "--optimizer", optimizer, "--steps", str(steps)]
    words += [word for setting in SETTINGS for word in ("--set", setting)]
    return [*words, "--out", str(folder), "--quiet", "--no-plots", *more]


@pytest.fixture
def start(tmp_path_factory):
    """Starts a process; what is left of it at the end of the test is killed."""
    home = str(tmp_path_factory.getbasetemp() / "parallel-cache")
    flags = {"XLA_FLAGS": "--xla_backend_optimization_level=0", "NATGRAD_CACHE": home, "JAX_PLATFORMS": "cpu"}
    processes = []

    def launch(words, **environment):
        process = subprocess.Popen(
            words, env={**os.environ, **flags, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield launch
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.communicate()


def together(start, folder, steps, *more, count=2, **options):
    """The processes of one run."""
    where = ("--coordinator", f"127.0.0.1:{free_port()}", "--num-processes", str(count))
    return [start(command(folder, steps, *where, "--process-id", str(i), *more, **options)) for i in range(count)]


def finish(*processes):
    for process in processes:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors[-3000:]


def history(folder):
    try:
        return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    except FileNotFoundError:
        return []


@pytest.mark.slow
def test_two_processes_are_one_run_and_resume_on_other_numbers(tmp_path, start):
    one, two = tmp_path / "one", tmp_path / "two"
    finish(start(command(one, 9)))
    finish(*together(start, two, 5))
    files = ["checkpoint", "config.json", "history.jsonl", "natgrad.json", "result.json"]
    assert sorted(path.name for path in two.iterdir()) == files
    finish(start(command(two, 7, "--resume", "--devices", "3")))
    finish(*together(start, two, 9, "--resume", "--devices", "4"))
    ours, theirs = history(one), history(two)
    assert [record["step"] for record in theirs] == list(range(1, 10))
    for a, b in zip(ours, theirs, strict=True):
        assert abs(a["loss"] - b["loss"]) <= 1e-8 * abs(a["loss"])
    result = json.loads((two / "result.json").read_text())
    assert (result["devices"], result["processes"], result["rows"]) == (4, 2, 44)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["nystrom", "rpcholesky", "kernel"])
def test_two_processes_take_the_steps_of_two_devices(tmp_path, start, optimizer):
    """With the optimizers as they are: their inner solves end where round-off says, which is the same for both."""
    one, two = tmp_path / "one", tmp_path / "two"
    finish(start(command(one, 5, "--devices", "2", optimizer=optimizer)))
    finish(*together(start, two, 5, optimizer=optimizer))
    for a, b in zip(history(one), history(two), strict=True):
        assert abs(a["loss"] - b["loss"]) <= 1e-8 * abs(a["loss"])


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_that_dies_ends_the_other_and_loses_no_checkpoint(tmp_path, start, victim):
    folder = tmp_path / "run"
    processes = together(start, folder, 100_000)
    deadline = time.monotonic() + PATIENCE
    while len(history(folder)) < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    processes[victim].send_signal(signal.SIGKILL)
    died = time.monotonic()
    _, errors = processes[1 - victim].communicate(timeout=PATIENCE)
    assert time.monotonic() - died < 60
    assert processes[1 - victim].returncode == 1
    said = [line for line in errors.splitlines() if line.startswith("natgrad:")]
    assert said == ["natgrad: another process of this run has ended: start all of them again with --resume"]
    assert "Traceback" not in errors
    kept = int(max((folder / "checkpoint").glob("step-*.ckpt")).stem.removeprefix("step-"))
    before = history(folder)[:kept]
    finish(start(command(folder, kept + 3, "--resume")))
    assert history(folder)[:kept] == before
    assert len(history(folder)) == kept + 3


def test_wrong_numbers_of_processes_are_said_in_a_line(tmp_path, start):
    process = start(command(tmp_path / "run", 3, "--coordinator", "127.0.0.1:1"))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.strip() == (
        "natgrad: several processes need all of --coordinator HOST:PORT, --process-id I and --num-processes N"
    )
