"""Why a run ends."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from natgrad.options import Count, Positive, Range, check, plain
from natgrad.problem import Problem

GIVE_UP = 10  # rejected steps in a row, each with more damping than the one before
STOPPED = ("interrupted", "terminated")  # from outside, by Ctrl-C or SIGTERM: what was to follow is not begun
GAIN = 0.01  # the part by which the loss must fall within `patience` steps

LIMITS: dict[str, Any] = {
    "target_error": Positive,
    "target_loss": Annotated[float, Range()],
    "time_limit": Annotated[float, Range(above=0, infinite=True)],
    "patience": Count,
}

Records = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Stop:
    """What ends a run before its last step. `stop(records, elapsed)` names the reason after a step, or says None.

    target error, target loss    at or below (the error is H¹, against values at points L², where it was just evaluated)
    converged                    the step led nowhere, and promised no descent beyond the round-off of the loss
    no descent                   ten steps in a row found none, though they promised some
    time                         `time_limit` seconds of stepping are over
    stagnation                   the loss has not fallen by 1 % within `patience` steps
    """

    target_error: float | None = None
    target_loss: float | None = None
    time_limit: float | None = None
    patience: int | None = None

    def __post_init__(self):
        for name, kind in LIMITS.items():
            if (value := plain(getattr(self, name))) is not None:
                check(name, value, kind)
                object.__setattr__(self, name, value)  # an error of another run may be an array

    def suits(self, problem: Problem) -> None:
        """ValueError where a target makes no sense for the problem."""
        if self.target_error is not None and problem.norms is None:
            raise ValueError("target_error needs an exact solution: give the problem exact=…, or use target_loss")
        if self.target_loss is not None and problem.least_squares and self.target_loss < 0:
            raise ValueError(f"target_loss must not be negative, a sum of squares never is, got {self.target_loss}")

    def __call__(self, records: Records, elapsed: float) -> str | None:
        record = records[-1]
        if self.target_error is not None and headline(record["errors"]) <= self.target_error:
            return "target error"
        if self.target_loss is not None and record["loss"] <= self.target_loss:
            return "target loss"
        if record.get("converged", False):
            return "converged"
        if rejected(records) >= GIVE_UP:
            return "no descent"
        if self.time_limit is not None and elapsed >= self.time_limit:
            return "time"
        if self.patience is not None and len(records) > self.patience:
            before = records[-1 - self.patience]["loss"]
            if before - record["loss"] <= GAIN * abs(before):
                return "stagnation"
        return None


def rejected(records: Records) -> int:
    """How many steps in a row were rejected last."""
    count = 0
    while count < len(records) and not records[-1 - count].get("accepted", True):
        count += 1
    return count


def headline(errors: Mapping[str, float]) -> float:
    """The error that counts: H¹, or L² where there is no other; inf where none was evaluated."""
    return errors.get("h1", errors.get("l2", math.inf))
