"""history.jsonl, a line an iteration, and the plateau of a history.

A plateau is the first iteration after which the error does not fall by more than 10 % within a window of 10 % of all
iterations (section 5.3 of the paper). A start without progress is none: the error must have fallen by 10 % before.
"""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from natgrad.experiment.files import dumps

KEYS = ("step", "time", "loss", "errors", "mu", "rank", "inner_iterations", "inner_residual", "step_size")
WINDOW, GAIN = 0.1, 0.1


class Journal:
    """history.jsonl open for appending, with the length and checksum that checkpoints remember."""

    def __init__(self, path: Path, length: int = 0):
        """Keeps the first `length` bytes of what is there."""
        self.file = open(path, "r+b" if path.exists() else "w+b")  # noqa: SIM115
        _lock(self.file, path)
        kept = self.file.read(length)
        last = kept.rfind(b"\n", 0, -1) + 1
        self.length, self.hash = length, hashlib.sha256(kept)
        self.before = last, hashlib.sha256(kept[:last])
        self.file.truncate(length)

    def append(self, record: dict[str, Any]) -> None:
        """One line; it survives the process from here on."""
        self.before = self.length, self.hash.copy()
        line = (dumps({**dict.fromkeys(KEYS), **record}) + "\n").encode()
        self.file.write(line)
        self.file.flush()
        self.length += len(line)
        self.hash.update(line)

    def amend(self, record: dict[str, Any]) -> None:
        """The last line anew."""
        self.length, self.hash = self.before
        self.file.seek(self.length)
        self.file.truncate()
        self.append(record)

    def mark(self) -> dict[str, Any]:
        """What a checkpoint remembers; the lines are on the disk before it is."""
        os.fsync(self.file.fileno())
        return {"bytes": self.length, "sha256": self.hash.hexdigest()}

    def close(self) -> None:
        self.file.close()


def _lock(file: Any, path: Path) -> None:
    """One process a run."""
    try:
        import fcntl
    except ImportError:  # not on this system: nothing to lock with
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ValueError(f"another process is writing the run in {path.parent}: wait for it or choose --out") from None


def matches(path: Path, mark: dict[str, Any]) -> bool:
    """Whether the history still begins with what a checkpoint saw."""
    try:
        with open(path, "rb") as file:
            data = file.read(mark["bytes"])
    except OSError:
        return False
    return len(data) == mark["bytes"] and hashlib.sha256(data).hexdigest() == mark["sha256"]


def read(path: Path, length: int = -1) -> list[dict[str, Any]]:
    """The records of a history (of its first `length` bytes)."""
    with open(path, "rb") as file:
        return parse(file.read(length), path)


def parse(data: bytes, path: Path) -> list[dict[str, Any]]:
    """The records in the bytes of a history; what is null becomes NaN, a last half line is left out."""
    lines = data.split(b"\n")[:-1]
    try:
        records = [json.loads(line) for line in lines]
        if any(set(KEYS) - set(record) for record in records):
            raise ValueError
    except (ValueError, TypeError):
        raise ValueError(f"cannot read {path}: a line is not a record of a step") from None
    return [{key: math.nan if value is None else value for key, value in record.items()} for record in records]


def plateau(steps: Any, times: Any, errors: Any) -> dict[str, Any]:
    """{step, time, error} of the plateau, from arrays with an entry an iteration (NaN: error not evaluated).

    Where a run still improves at its end, the best of its iterations counts as the plateau.
    """
    seen = [i for i, error in enumerate(errors) if math.isfinite(error)]
    if not seen:
        return {"step": None, "time": None, "error": None}
    window = WINDOW * steps[-1]
    for i in seen:
        ahead = [errors[j] for j in seen if steps[i] < steps[j] <= steps[i] + window]
        if steps[i] + window > steps[seen[-1]]:
            break
        begun = errors[i] <= (1 - GAIN) * errors[seen[0]]
        if begun and ahead and min(ahead) >= (1 - GAIN) * errors[i]:
            return {"step": int(steps[i]), "time": float(times[i]), "error": float(errors[i])}
    best = min(seen, key=lambda j: errors[j])
    return {"step": int(steps[best]), "time": float(times[best]), "error": float(errors[best])}
