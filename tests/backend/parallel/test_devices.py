"""Several devices compute what one does, with the same random numbers, and send each other sums, never Jacobians."""

import json
import os
import subprocess
import sys

import pytest

FLAGS = "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0"


def ask(task, *args, timeout=900):
    """What a task of the worker gives, in a process with eight devices."""
    words = [sys.executable, "-m", "tests.backend.parallel.worker", task, *map(json.dumps, args)]
    environment = {**os.environ, "XLA_FLAGS": FLAGS, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_products_are_those_of_one_device():
    """Three devices, which divide no number of points here."""
    found = ask("products", "poisson", 3)
    assert len(found) == 24
    assert max(found.values()) < 1e-13, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ritz", "feinn_energy", "feinn_least_squares"])
def test_products_of_energies_and_finite_elements(name):
    found = ask("products", name, 3)
    assert max(found.values()) < 1e-12, found


def test_the_loss_at_other_points_is_that_of_one_device():
    found = ask("validation", 3)
    assert set(found) == {"validation", "training"}
    assert max(found.values()) < 1e-13, found


def test_iterates_are_those_of_one_device():
    rows = ask("iterates", "full", [1, 4], 5)
    assert [count for count, _, _ in rows] == [1, 4]
    assert all(distance < 1e-8 for _, distance, _ in rows), rows


@pytest.mark.slow
def test_windows_are_those_of_one_device():
    rows = ask("march", [1, 2, 4])
    assert max(max(row) for row in rows) < 1e-8, rows


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "nystrom",
        "signs",
        "uniform",
        "sampling",
        "rpcholesky",
        "full",
        "kernel",
        "kernel_batched",
        "kernel_nystrom",
        "polish",
        "adam",
    ],
)
def test_iterates_of_every_solver(name):
    rows = ask("iterates", name, [1, 2, 4, 8], 5)
    assert all(distance < 1e-8 for _, distance, _ in rows), rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nystrom", "rpcholesky", "full", "kernel"])
def test_errors_after_a_hundred_steps(name):
    """280 points, 33 parameters, H¹ errors of 2e-3: parameters are then up to 10 % apart, errors are not."""
    rows = ask("iterates", name, [1, 2, 4, 8], 100, 8, 1, 200, 80)
    errors = [error for _, _, error in rows]
    assert max(errors) < 3e-3, rows
    assert max(errors) < 1.1 * min(errors), rows


@pytest.mark.parametrize("way", [pytest.param("fresh", marks=pytest.mark.slow), "adaptive"])
def test_points_drawn_at_every_step_are_the_same(way):
    assert ask("moving_points", 4, way) < 1e-8


def test_weights_found_in_training_are_the_same():
    assert max(ask("balanced", 4, "full")) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nystrom", "kernel", "adam"])
def test_weights_found_in_training_by_every_kind_of_solver(name):
    assert max(ask("balanced", 3, name)) < 1e-8


def test_devices_exchange_sums_and_never_the_jacobian():
    told = ask("collectives", 4)
    found, q, p = told["found"], told["q"], told["p"]
    assert set(found) == {"all-reduce"}, found  # no gather of anything
    assert max(found["all-reduce"]) <= 8 * p < q * p / 8
