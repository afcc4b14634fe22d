"""What a status means: for the shell, and for whether a run can go on."""

from types import SimpleNamespace

import pytest

from natgrad.experiment.run import nothing_left
from natgrad.experiment.statuses import exit_code

LIMITS = {"steps": 100, "time_limit": None, "target_error": None}


@pytest.mark.parametrize(
    ("status", "code", "ended"),
    [
        ("steps", 0, False),
        ("converged", 0, True),
        ("target error", 0, True),
        ("interrupted", 130, False),
        ("terminated", 143, False),
        ("not finite", 1, True),
        ("no descent", 1, True),
    ],
)
def test_statuses(status, code, ended):
    assert exit_code(status) == code
    assert nothing_left(SimpleNamespace(status=status, steps=5, time=1.0), LIMITS, LIMITS) is ended


def test_a_limit_that_is_moved_lets_a_run_go_on():
    """But not one that more steps cannot change."""
    moved = LIMITS | {"target_error": 1e-9}
    for status, ended in (("target error", False), ("converged", True), ("no descent", True)):
        assert nothing_left(SimpleNamespace(status=status, steps=5, time=1.0), moved, LIMITS) is ended
