"""Windows of time: given ones, as many as one likes of equal length, or lengths that the errors at other points choose.

`Auto`: with r = V / max L, the loss V at independent points over the largest loss of the march, a window ends with

    r > tolerance            in vain: half as long, from the same start (a window of total/1024 is taken as it is)
    r ≤ tolerance / 1000     the next one is twice as long

The first one is a quarter of the total. Windows divide what is left evenly, so that none is a sliver.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from natgrad.options import Positive, check
from natgrad.problem import Windows
from natgrad.problem.evolution import check_interval
from natgrad.stages.chain import Ended, Record, Stage, steps_per_stage

FIRST, SHORTEST = 1 / 4, 1 / 1024  # of the total
TOLERANCE, EASY = 1e-6, 1e-3
MOST = 10_000  # windows
Problems = Callable[[float, float, Callable | None], Any]


def _stage(problem: Problems, number: int, t0: float, t1: float, steps: int) -> Stage:
    """Records say which window it is, and when it begins and ends."""
    return Stage({"window": number, "t0": t0, "t1": t1}, lambda start: problem(t0, t1, start), steps)


def joined(kept: Sequence[Ended]) -> tuple[Windows, dict[str, float]]:
    """u over all of time, and its errors there."""
    times = [kept[0].stage.labels["t0"], *(one.stage.labels["t1"] for one in kept)]
    return Windows([one.u for one in kept], times), errors_of_all(kept)


def errors_of_all(kept: Sequence[Ended]) -> dict[str, float]:
    """Relative errors of all windows as one: squares of errors and of solutions add up."""
    if not all(one.squares and one.errors for one in kept):
        return {}
    errors = {}
    for name in kept[0].errors:
        sizes = [(one.squares or {}).get(name, 0.0) for one in kept]
        error = sum(one.errors[name] ** 2 * (size or 1.0) for one, size in zip(kept, sizes, strict=True))
        errors[name] = math.sqrt(error / (sum(sizes) or 1.0))
    return errors


@dataclass(frozen=True)
class Given:
    """Windows between given times."""

    problem: Problems
    times: tuple[float, ...]
    steps: tuple[int, ...]
    name = "window"

    def next(self, ended: Sequence[Ended]) -> Stage | None:
        number, windows = len(ended), list(pairwise(self.times))
        return _stage(self.problem, number + 1, *windows[number], self.steps[number]) if self.left(ended) else None

    def judge(self, stage: Stage, records: Sequence[Record], largest_loss: float) -> float:
        return 1.0

    def left(self, ended: Sequence[Ended]) -> int:
        return len(self.times) - 1 - len(ended)

    def solution(self, kept: Sequence[Ended]) -> tuple[Windows, dict[str, float]]:
        return joined(kept)


@dataclass(frozen=True)
class Auto:
    """Windows as long as the given steps can train."""

    problem: Problems
    interval: tuple[float, float]
    steps: int
    tolerance: float = TOLERANCE
    name = "window"

    @property
    def total(self) -> float:
        return self.interval[1] - self.interval[0]

    def next(self, ended: Sequence[Ended]) -> Stage | None:
        start, number, length = self._place(ended)
        if not (count := self._count(start, length)):
            return None
        end = self.interval[1] if count == 1 else start + (self.interval[1] - start) / count
        return _stage(self.problem, number + 1, start, end, self.steps)

    def left(self, ended: Sequence[Ended]) -> int:
        start, _, length = self._place(ended)
        return self._count(start, length)

    def judge(self, stage: Stage, records: Sequence[Record], largest_loss: float) -> float:
        length = stage.labels["t1"] - stage.labels["t0"]
        known = [r["validation"] for r in records if math.isfinite(r.get("validation", math.nan))]
        relative_loss = (known[-1] if known else records[-1]["loss"]) / largest_loss
        if relative_loss > self.tolerance and length / 2 >= SHORTEST * self.total:
            return 0.5
        return 2.0 if relative_loss <= EASY * self.tolerance else 1.0

    def solution(self, kept: Sequence[Ended]) -> tuple[Windows, dict[str, float]]:
        return joined(kept)

    def _place(self, ended: Sequence[Ended]) -> tuple[float, int, float]:
        """Where the next window begins, how many there were, and how long it may be."""
        start, number, length = self.interval[0], 0, FIRST * self.total
        for one in ended:
            length = one.factor * (one.stage.labels["t1"] - one.stage.labels["t0"])
            if one.factor >= 1:
                start, number = one.stage.labels["t1"], number + 1
        return start, number, length

    def _count(self, start: float, length: float) -> int:
        """How many windows of this length are left."""
        return math.ceil((self.interval[1] - start) / length * (1 - 1e-9))


def course(
    problem: Problems, times: Any, steps: Any, interval: tuple[float, float] | None, tolerance: float | None
) -> Given | Auto:
    """What was asked for, checked."""
    if isinstance(times, str) and times != "auto":
        raise ValueError(f'times must be "auto", a number of windows or a sequence of times, got {times!r}')
    if tolerance is not None and not isinstance(times, str):
        raise ValueError('tolerance belongs to times="auto": leave it out')
    if not isinstance(times, str | int | np.integer):
        if interval is not None:
            raise ValueError("times says where the windows are, and interval does too: leave interval out")
        known = check_times(times)
        _within(known, getattr(problem, "interval", None))
        return Given(problem, known, steps_per_stage(steps, len(known) - 1))
    if (interval := getattr(problem, "interval", None) if interval is None else interval) is None:
        raise ValueError(f"times={times!r} needs the total time: give interval=(start, end)")
    start, end = check_interval(interval)
    if isinstance(times, str):
        if tolerance is not None:
            check("tolerance", tolerance, Positive)
        return Auto(problem, (start, end), steps_per_stage(steps, 1)[0], TOLERANCE if tolerance is None else tolerance)
    if isinstance(times, bool) or not 1 <= times <= MOST:
        raise ValueError(f"the number of windows must be an integer from 1 to {MOST}, got {times!r}")
    return Given(problem, check_times(np.linspace(start, end, times + 1)), steps_per_stage(steps, int(times)))


def parse_windows(text: str) -> int | str | list[float]:
    """What `--windows` says: a number of windows, times separated by commas, or auto."""
    try:
        return text if text == "auto" else [float(part) for part in text.split(",")] if "," in text else int(text)
    except ValueError:
        raise ValueError(
            f"--windows takes a number of windows, times separated by commas, or auto, got {text!r}"
        ) from None


def windows_text(times: int | str | Sequence[float] | None) -> str | None:
    """What `--windows` would say for these times; None where there are no windows."""
    return ",".join(map(repr, times)) if isinstance(times, list | tuple) else None if times is None else str(times)


def _within(times: Sequence[float], interval: tuple[float, float] | None) -> None:
    """ValueError where times are outside the interval of the problem, or do not begin with its initial values."""
    if interval is None:
        return
    start, end = interval
    if times[0] != start:
        raise ValueError(f"times must begin at {start:g}, where the initial values are, got {times[0]:g}")
    if times[-1] > end:
        raise ValueError(f"times must not be outside the problem's interval ({start:g}, {end:g}), got {times[-1]:g}")


def check_times(times: Any) -> tuple[float, ...]:
    """t_0 < … < t_n as floats; ValueError in one line where they are not."""
    try:
        known = tuple(float(time) for time in times)
    except (TypeError, ValueError):
        raise ValueError(f"times must be a sequence of numbers, got {times!r}") from None
    if len(known) < 2:
        raise ValueError(f"times must be at least two, the start and the end of a window, got {len(known)}")
    if len(known) > MOST + 1:
        raise ValueError(f"times make {len(known) - 1} windows: at most {MOST}")
    if wrong := [time for time in known if not math.isfinite(time)]:
        raise ValueError(f"times must be finite, got {wrong[0]}")
    if back := [pair for pair in pairwise(known) if pair[0] >= pair[1]]:
        raise ValueError(f"times must increase, got {back[0][1]:g} after {back[0][0]:g}")
    return known
