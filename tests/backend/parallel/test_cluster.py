"""Processes that join by what their launcher tells: Slurm's environment on loopback, preemption, nothing to go by."""

import json
import os
import signal
import socket
import sys
import time

import pytest

from natgrad.backend import cluster
from natgrad.experiment.joining import join
from tests.backend.parallel.test_processes import PATIENCE, command, finish, history, start  # noqa: F401

SIGNS = [sign for signs in cluster.SIGNS.values() for sign in signs]


def job():
    """The number of a job whose port, as JAX makes it from the number, is free."""
    for number in range(os.getpid() % 4096, 2**13):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", number % 2**12 + 65535 - 2**12 + 1)):
                return str(number)
    raise AssertionError("no free port")


def srun(start, words, count=2):  # noqa: F811
    """What `srun --ntasks=count` starts."""
    shared = {"SLURM_JOB_ID": job(), "SLURM_STEP_NODELIST": "localhost", "SLURM_NTASKS": str(count)}
    places = [{"SLURM_PROCID": str(i), "SLURM_LOCALID": str(i)} for i in range(count)]
    return [start(words, **shared, **place) for place in places]


@pytest.mark.slow
def test_a_preempted_job_goes_on_with_fewer_processes(tmp_path, start):  # noqa: F811
    """SIGTERM reaches all, twice each, as launchers send it; all end at one step, saved, with exit code 143."""
    folder = tmp_path / "run"
    processes = srun(start, command(folder, 100_000, "--distributed"))
    deadline = time.monotonic() + PATIENCE
    while len(history(folder)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    for _ in range(2):
        for process in processes:
            process.send_signal(signal.SIGTERM)
    errors = [process.communicate(timeout=PATIENCE)[1] for process in processes]
    assert [process.returncode for process in processes] == [143, 143], errors
    assert [text.count("natgrad: stopping after this step") for text in errors] == [1, 0]
    result = json.loads((folder / "result.json").read_text())
    assert (result["status"], result["processes"], result["devices"]) == ("terminated", 2, 2)
    before = history(folder)
    assert result["steps"] == len(before) == int(max((folder / "checkpoint").glob("*")).stem.removeprefix("step-"))
    finish(start(command(folder, result["steps"] + 3, "--resume")))
    assert history(folder)[:-3] == before


SCRIPT = """
import jax, natgrad as ng
from tests.backend.parallel.worker import poisson

mesh = ng.devices(distributed=True)
assert ng.devices(2, distributed=True) == mesh
solution = ng.solve(ng.shard(poisson(), mesh), ng.FullNGD(), steps=3, progress=False)
print(jax.process_index(), jax.process_count(), mesh.size, solution.errors["h1"], solution.u(jax.numpy.ones(2)).item())
"""


@pytest.mark.slow
def test_a_script_is_run_by_all(start):  # noqa: F811
    processes = srun(start, [sys.executable, "-c", SCRIPT])
    (one, errors), (other, _) = [process.communicate(timeout=PATIENCE) for process in processes]
    one, other = (text.splitlines()[-1].split() for text in (one, other))  # what Gloo says aside
    assert one[:3] == ["0", "2", "2"], errors
    assert other == ["1", *one[1:]]


@pytest.fixture
def nowhere(monkeypatch):
    """An environment without a launcher."""
    for sign in (*SIGNS, "OMPI_MCA_orte_hnp_uri", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(sign, raising=False)


def test_nothing_to_go_by_is_said_with_what_was_looked_for(nowhere, monkeypatch, tmp_path, start):  # noqa: F811
    process = start(command(tmp_path / "run", 3, "--distributed"))
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2
    assert errors.startswith("natgrad: no launcher of several processes was found; looked for ")
    assert all(f"{name} (no {signs[0]})" in errors for name, signs in cluster.SIGNS.items())
    assert errors.count("\n") == 1
    monkeypatch.setenv("SLURM_JOB_ID", "7")  # a batch script without srun
    assert "Slurm (no SLURM_STEP_NODELIST)" in cluster._nothing()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("signs", "how"),
    [
        ({}, {"cluster_detection_method": None}),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, {"cluster_detection_method": None}),
        ({"CUDA_VISIBLE_DEVICES": "3"}, {"cluster_detection_method": None, "local_device_ids": 0}),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, {"cluster_detection_method": "mpi4py"}),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_orte_hnp_uri": "1.0;tcp://::1"}, {"cluster_detection_method": None}),
    ],
)
def test_what_jax_is_told(nowhere, monkeypatch, signs, how):
    """Open MPI 5 says who takes part by mpi4py; a process that sees one GPU takes it, whatever its number."""
    asked = []
    monkeypatch.setattr(cluster, "_initialize", lambda **given: asked.append(given))
    monkeypatch.setattr(cluster, "find_spec", lambda name: name)
    for name, value in signs.items():
        monkeypatch.setenv(name, value)
    cluster.join()
    assert asked == [how]


def test_open_mpi_5_without_mpi4py_is_said_in_a_line(nowhere, monkeypatch):
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="install mpi4py"):
        cluster.join()


def test_what_a_launcher_says_is_told_in_a_line(nowhere, monkeypatch):
    """JAX's own complaints of Kubernetes, say, go over many lines."""

    def complain(**how):
        raise RuntimeError("Kubernetes API Error: 403\nthe account may not read pods")

    monkeypatch.setattr(cluster, "_initialize", complain)
    with pytest.raises(ValueError, match="the processes cannot join: Kubernetes API Error: 403 the account"):
        cluster.join()


def test_joining_comes_before_all_else(nowhere, monkeypatch):
    """JAX is in use in this process already."""
    signs = zip(cluster.SIGNS["Slurm"], (job(), "localhost", "1", "0", "0"), strict=True)
    for name, value in signs:
        monkeypatch.setenv(name, value)
    import jax

    jax.devices()
    with pytest.raises(ValueError, match="before all other use of JAX"):
        cluster.join()


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"coordinator": "localhost:1"}, "--distributed asks the launcher"),
        ({"devices": 4}, "--distributed takes all devices"),
    ],
)
def test_what_contradicts_distributed_is_refused(asked, complaint):
    given = {"devices": None, "coordinator": None, "process_id": None, "num_processes": None, **asked}
    with pytest.raises(ValueError, match=complaint):
        join(distributed=True, **given)
