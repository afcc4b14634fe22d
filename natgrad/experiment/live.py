"""Runs that go on, read while they do: of a history what has come since the last look, and whether anyone still writes.

Only ever reads. Where a run was resumed or started over, and the last line that was read is another one now, its
history is read anew.
"""

import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from natgrad.experiment.checkpoint import HOME
from natgrad.experiment.folder import LOCK, MARKER
from natgrad.experiment.journal import parse
from natgrad.experiment.plateau import plateau
from natgrad.experiment.recovery import config_of, result_of
from natgrad.experiment.runs import Run

SILENT = 300.0  # seconds without a record after which a run of another machine counts as silent
ERRORS = ("h1", "l2")
NAMES = ("step", "time", "loss", "validation", "mu", "rank", "inner_iterations", "step_size", "gradient_norm")


@dataclass(frozen=True)
class Live(Run):
    """A run as it stands, by columns; `records` has the last one alone."""

    columns: dict[str, list[float]] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # those of the columns that were asked for

    def column(self, name: str) -> np.ndarray:
        if name not in self.arrays:
            self.arrays[name] = np.asarray(self.columns.get(name, []), float)
        return self.arrays[name]

    @cached_property
    def plateau(self) -> dict[str, Any]:
        """None before the run has ended."""
        return super().plateau if self.result else plateau([], [], [])


class Follower:
    """One run folder. `refresh` reads on; `run` is what there is, or `why_unreadable` says it in a line."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.run: Live | None = None
        self.why_unreadable = ""
        self.standing = ""
        self._forget()

    def refresh(self) -> bool:
        """Whether anything has changed."""
        before = self.run, self.why_unreadable, self.standing
        try:
            owned = owner(self.folder)  # before the result, which a run writes before it lets go of the folder
            config, result = config_of(self.folder), result_of(self.folder)
            moved = self._read_on()
            if self.run is None or moved or (config, result) != (self.run.config, self.run.result):
                self.run = Live(self.folder, config, result, self.last, self.columns)
            self.standing, self.why_unreadable = result.get("status") or standing(owned, self._age()), ""
        except (ValueError, OSError) as error:
            self._forget()
            self.run, self.why_unreadable, self.standing = None, " ".join(str(error).split()), "unreadable"
        return before[0] is not self.run or before[1:] != (self.why_unreadable, self.standing)

    def _forget(self) -> None:
        self.end, self.tail = 0, b""  # how far it was read, and the last line up to there
        self.columns: dict[str, list[float]] = {name: [] for name in (*NAMES, *ERRORS)}
        self.last: list[dict[str, Any]] = []

    def _read_on(self) -> bool:
        """Takes the lines that are new; whether there were any."""
        path = self.folder / "history.jsonl"
        if not path.exists():
            moved = self.end > 0
            self._forget()
            return moved
        with open(path, "rb") as file:
            file.seek(self.end - len(self.tail))
            data = file.read()
            if again := not data.startswith(self.tail):
                self._forget()
                file.seek(0)
                data = file.read()
        data = data[len(self.tail) : data.rfind(b"\n") + 1]
        for record in parse(data, path):
            for name in NAMES:
                self.columns[name].append(record.get(name, np.nan))
            for name in ERRORS:
                self.columns[name].append(record["errors"].get(name, np.nan))
            self.last = [record]
        if data:
            self.end, self.tail = self.end + len(data), data[data.rfind(b"\n", 0, -1) + 1 :]
        return again or bool(data)

    def _age(self) -> float:
        """Seconds since the run last wrote."""
        names = ("config.json", "history.jsonl")
        return time.time() - max(
            (self.folder / name).stat().st_mtime for name in names if (self.folder / name).exists()
        )


def owner(folder: Path) -> bool | None:
    """Whether the process that holds a folder is there; None where that cannot be said from here."""
    try:
        host, pid = (folder / LOCK).read_text().split()
    except FileNotFoundError:
        return False if find_spec("fcntl") else None  # without it nothing is ever locked
    except ValueError:  # of an older natgrad, or not written yet
        return None
    if host != socket.gethostname():
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def standing(owned: bool | None, age: float) -> str:
    """What is to be said of a run without a result."""
    if owned is None:
        return "running" if age < SILENT else "silent"
    return "running" if owned else "dead"


def below(place: Path) -> Iterator[Path]:
    """The run folders in a folder, itself included; there are none in a run folder."""
    for folder, inner, files in os.walk(place):
        inner.sort()
        if "config.json" in files and (MARKER in files or "history.jsonl" in files):
            inner.clear()
            yield Path(folder)
        elif HOME in inner:
            inner.remove(HOME)


def names(folders: Sequence[Path], places: Sequence[Path]) -> dict[Path, str]:
    """What each run is called: its path in the place that was given; where several were, the whole of it."""
    if len(places) > 1:
        return {folder: str(folder) for folder in folders}
    return {f: str(f.relative_to(places[0])) if f != places[0] else f.resolve().name for f in folders}
