"""history.jsonl: one line per iteration, with a checksum of all lines so far that checkpoints remember."""

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any

from natgrad.storage.files import dumps, named

KEYS = ("step", "time", "loss", "errors", "mu", "rank", "inner_iterations", "inner_residual", "step_size")


class Journal:
    """history.jsonl open for appending, with the length and checksum that checkpoints remember."""

    def __init__(self, path: Path, length: int = 0):
        """Keeps the first `length` bytes of what is there."""
        self.path = path
        with named(path):
            self.file = open(path, "r+b" if path.exists() else "w+b", buffering=0)  # noqa: SIM115
            kept = self.file.read(length)
            self.file.truncate(length)
        last = kept.rfind(b"\n", 0, -1) + 1
        self.length, self.hash = length, hashlib.sha256(kept)
        self.before = last, hashlib.sha256(kept[:last])

    def append(self, record: dict[str, Any]) -> None:
        """One line; it survives the process from here on."""
        self.before = self.length, self.hash.copy()
        line = (dumps({**dict.fromkeys(KEYS), **record}) + "\n").encode()
        with named(self.path):
            rest = memoryview(line)
            while rest:
                rest = rest[self.file.write(rest) :]
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
        with named(self.path):
            os.fsync(self.file.fileno())
        return {"bytes": self.length, "sha256": self.hash.hexdigest()}

    def close(self) -> None:
        self.file.close()


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
    try:
        records = [json.loads(line) for line in data.split(b"\n")[:-1]]
        if not all(map(_is_record, records)):
            raise ValueError
    except (ValueError, RecursionError):
        raise ValueError(f"cannot read {path}: a line is not a record of a step") from None
    return [{key: math.nan if value is None else value for key, value in record.items()} for record in records]


def _is_record(record: Any) -> bool:
    """Whether it has what each line has, in the types that tables and pictures take."""
    if not isinstance(record, dict) or set(KEYS) - set(record) or not isinstance(record["errors"], dict):
        return False
    numbers = [*record["errors"].values(), *(record[name] for name in KEYS if name != "errors")]
    return all(value is None or isinstance(value, int | float) for value in numbers)
