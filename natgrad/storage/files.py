"""Files that are written whole or not at all: a temporary name in the same folder, fsync, then a rename."""

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write(path: Path, *data: bytes | memoryview | str) -> None:
    """Replaces a file by the data, one after the other; a reader, or a crash, finds the old content or the new one."""
    path = Path(path)
    with named(path):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                for part in data:
                    file.write(part.encode() if isinstance(part, str) else part)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def writable(path: Path | str, force: bool, name: str = "name", forced: str = "force=True") -> Path:
    """The path itself, if a file can be there and none is, or one that may go; `name` and `forced` say how to ask."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        folder = "is a folder: give the name of a file"
        raise ValueError(f"{path} {folder if path.is_dir() else 'lies in a folder that does not exist: make it first'}")
    if path.exists() and not force:
        raise ValueError(f"{path} exists: choose another {name}, or {forced} to replace it")
    return path


@contextmanager
def named(path: Path) -> Iterator[None]:
    """An OSError that happens inside says which file was to be read or written: a full disk does not by itself."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def write_json(path: Path, value: Any) -> None:
    """Readable JSON, standard to the letter."""
    write(path, dumps(value, indent=2) + "\n")


def dumps(value: Any, **options: Any) -> str:
    """JSON of numbers, NumPy scalars and containers; what is not finite becomes null."""
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, **options)


def plain(value: Any) -> Any:
    """The same value in Python's own types."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int | str | bool | None):
        return value
    return str(value)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; ValueError, in one line, where there is none."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from error
    return parse_json(data, path)


def parse_json(data: bytes, path: Path) -> dict[str, Any]:
    """A JSON object from the bytes of a file."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"cannot read {path}: it is not valid JSON") from error
    if not isinstance(value, dict):
        raise ValueError(f"cannot read {path}: it is not a JSON object")
    return value
