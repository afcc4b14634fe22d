"""What a run writes down, in every package's environment alike: the standard library is all it needs.

{"peer", "problem", "setting", "seed", "versions", …, "setup": seconds before the first step, "status",
 "history": [{"step", "time", "wall", "l2", …}, …]}
"""

import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any


class Recorder:
    """The clock and the history of one run. The clock runs from its making, and stands still while `paused`."""

    def __init__(self, **facts: Any):
        self.facts, self.history = facts, list[dict[str, Any]]()
        self.status, self._paused = "running", 0.0
        self._setup: float | None = None
        self._started = time.perf_counter()

    @property
    def wall(self) -> float:
        """Seconds since the start, without pauses."""
        return time.perf_counter() - self._started - self._paused

    @property
    def time(self) -> float:
        """Seconds of `wall` since `ready`."""
        return 0.0 if self._setup is None else self.wall - self._setup

    def ready(self) -> None:
        """Everything is compiled: stepping begins."""
        self._setup = self.wall

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Time that does not count: the evaluation of errors."""
        started = time.perf_counter()
        yield
        self._paused += time.perf_counter() - started

    def add(self, step: int, errors: dict[str, float], time: float | None = None, **more: Any) -> None:
        """One row, now; `time` where the run has a clock of its own for stepping."""
        wall = self.wall
        stepping = self.time if time is None else time
        self._setup = wall - stepping if self._setup is None else self._setup
        self.history.append({"step": step, "time": stepping, "wall": wall, **errors, **more})

    def save(self, path: Path) -> None:
        """Writes the file whole or not at all."""
        result = {
            **self.facts,
            "status": self.status,
            "setup": self._setup,
            "command": " ".join(_bare(word) for word in ["python", *sys.orig_argv[1:]]),
            "python": platform.python_version(),
            "history": self.history,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
            json.dump(_plain(result), file, ensure_ascii=False, indent=1)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path)


def versions(*names: str) -> dict[str, str]:
    """The installed versions of packages, of those that are."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def first(history: list[dict[str, Any]], error: float, norm: str, clock: str) -> float | None:
    """Seconds on a clock ("time" or "wall") at the first row with an error at or below the given one."""
    for row in history:
        if row.get(norm) is not None and row[norm] <= error:
            return row[clock]
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _bare(word: str) -> str:
    """A word of a command line; of a path, which is one machine's alone, the end."""
    return Path(word).name if Path(word).is_absolute() else word
