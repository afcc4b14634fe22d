"""The plateau rule of the paper on histories whose plateau is known."""

import math

import numpy as np
import pytest

from natgrad.experiment.plateau import plateau


def of(errors, every=1):
    """The plateau of errors recorded every so many of the iterations."""
    steps = np.arange(1, len(errors) * every + 1)
    full = np.full(steps.size, np.nan)
    full[every - 1 :: every] = errors
    return plateau(steps, 0.5 * steps, full)


def test_a_curve_that_falls_and_stays():
    errors = [10.0 ** (-k / 10) for k in range(50)] + [1e-5] * 50
    found = of(errors)
    # The window is 10 of 100 iterations: step 51 is the first to stand at 1e-5, and nothing later is better.
    assert found == {"step": 51, "time": 25.5, "error": 1e-5}


def test_a_pause_shorter_than_the_window_is_none():
    errors = [1.0] * 9 + [10.0 ** (-k / 10) for k in range(41)] + [1e-5] * 50
    assert of(errors)["step"] == 51
    assert of([2.0] + [1.0] * 12 + errors[9:])["step"] == 2


def test_a_start_without_progress_is_none():
    errors = [10.0 ** (-k / 10) for k in range(50)] + [1e-5] * 50
    assert of([1.0] * 30 + errors)["error"] == 1e-5
    assert of([1.0, 1.5] * 20 + errors)["error"] == 1e-5
    assert of([0.7] * 40) == {"step": 1, "time": 0.5, "error": 0.7}


@pytest.mark.parametrize(("factor", "expected"), [(0.89, 1), (0.91, 0)])
def test_ten_percent(factor, expected):
    """An improvement by more than 10 % within the window goes on, one by less is a plateau."""
    errors = [2.0] + [1.0] * 5 + [factor] * 94
    assert (of(errors)["step"] > 6) == bool(expected)


def test_still_improving_at_the_end():
    errors = [0.8**k for k in range(40)]
    assert of(errors)["step"] == 40
    assert of(errors)["error"] == errors[-1]


def test_errors_now_and_then():
    errors = [10.0 ** (-k / 2) for k in range(10)] + [1e-5] * 10
    found = of(errors, every=5)
    assert found["step"] == 55
    assert found["error"] == 1e-5


def test_without_errors():
    assert of([math.nan] * 4) == {"step": None, "time": None, "error": None}
    assert plateau([], [], []) == {"step": None, "time": None, "error": None}


def test_one_iteration():
    assert of([0.3]) == {"step": 1, "time": 0.5, "error": 0.3}
