"""Tables that took long to compute, kept in the user's cache folder for the next process.

The name of a file is a hash of the module that computed it and of the parameters: another method or another number
makes another file. What is damaged is computed again. `NATGRAD_CACHE=0` keeps nothing.
"""

import contextlib
import hashlib
import inspect
import io
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from natgrad.backend.programs.disk import own_folder
from natgrad.storage.files import write

Tables = dict[str, np.ndarray]


def kept(compute: Callable[..., Mapping[str, np.ndarray]], **parameters: float | int | str) -> Tables:
    """`compute(**parameters)`, arrays by name, from disk where they are there already."""
    path = place(compute, parameters)
    if path is not None and path.exists():
        with contextlib.suppress(Exception):  # whatever it is, the tables are computed instead
            return read(path)
    tables = {name: np.asarray(table) for name, table in compute(**parameters).items()}
    if path is not None:
        with contextlib.suppress(OSError):  # a full disk is no reason to stop
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **tables)  # type: ignore[arg-type]
            path.parent.mkdir(exist_ok=True)
            data = buffer.getvalue()
            write(path, hashlib.sha256(data).digest(), data)
    return tables


def read(path: Path) -> Tables:
    """The tables of a file, whose first 32 bytes are the hash of the others."""
    data = path.read_bytes()
    if hashlib.sha256(data[32:]).digest() != data[:32]:
        raise ValueError(f"cannot read {path}: it is damaged")
    with np.load(io.BytesIO(data[32:])) as file:
        return dict(file)


def place(compute: Callable, parameters: Mapping[str, float | int | str]) -> Path | None:
    """The file for these tables; None where nothing is kept."""
    folder = own_folder()
    if folder is None:
        return None
    module = inspect.getmodule(compute)
    source = inspect.getsource(compute if module is None else module)
    digest = hashlib.sha256(repr((source, compute.__name__, sorted(parameters.items()))).encode()).hexdigest()
    return folder / "references" / f"{compute.__name__}-{digest[:24]}.tables"
