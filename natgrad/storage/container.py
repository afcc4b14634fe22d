"""The one format of what was trained: two lines, a header, arrays.

    natgrad solution 1
    SHA-256 of all that follows
    the header: JSON in one line
    an .npz of the arrays

The first line says what the file is for, and the version of that. Nothing in it is code and nothing is pickled: arrays
are plain, random keys are kept by their data.
"""

import hashlib
import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from natgrad.storage.files import dumps

FORMATS = {"checkpoint": 1, "network": 1, "solution": 1}
FIRST = re.compile(rb"natgrad (\w+) (\d+)\n")
LONGEST = 2**20  # bytes of a line that is read without the rest


def parts(kind: str, header: Any, payload: memoryview) -> tuple[bytes | memoryview | str, ...]:
    """What a file consists of, one after the other."""
    line = dumps(header).encode() + b"\n"
    checksum = hashlib.sha256(line)
    checksum.update(payload)
    return f"natgrad {kind} {FORMATS[kind]}\n", checksum.hexdigest(), "\n", line, payload


def kind_of(path: Path) -> str | None:
    """What a file of natgrad's is for, by its first line; None for any other file."""
    with open(path, "rb") as file:
        first = FIRST.fullmatch(file.readline(LONGEST))
    return first[1].decode() if first and first[1].decode() in FORMATS else None


def read(path: Path, *kinds: str) -> tuple[str, dict[str, Any], bytes]:
    """Kind, header and arrays of a file of one of these kinds, checked; ValueError, in one line, for any other."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None
    first = FIRST.match(data)
    kind, version = (first[1].decode(), int(first[2])) if first else ("", 0)
    if kind in kinds and version > FORMATS[kind]:
        raise ValueError(f"{path.name} is of format {version}, this natgrad reads format {FORMATS[kind]}")
    checksum, _, body = data[first.end() if first else 0 :].partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != checksum:
        foreign = kind not in FORMATS and kinds != ("checkpoint",)  # a checkpoint is known by its name
        wrong = "was not saved by natgrad" if foreign else "is damaged: its checksum does not match"
        raise ValueError(f"{path.name} {wrong}")
    if kind not in kinds or version < 1:
        raise ValueError(f"{path.name} is no {' or '.join(kinds)} of natgrad's, but a {kind or 'file without a kind'}")
    header, _, payload = body.partition(b"\n")
    return kind, json.loads(header), payload


def pack(arrays: Iterable[Any]) -> memoryview:
    """The bytes of arrays; random keys by their data."""
    buffer = io.BytesIO()
    plain = [np.asarray(data(array)) for array in arrays]
    if strange := next((array.dtype for array in plain if array.dtype.kind not in "biufc"), None):
        raise ValueError(f"a file cannot hold arrays of {strange}: cast them to float32 first")  # an .npz forgets it
    np.savez(buffer, *plain)
    return buffer.getbuffer()


def unpack(payload: bytes | memoryview) -> list[np.ndarray]:
    """The arrays of `pack`."""
    with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
        return [arrays[f"arr_{i}"] for i in range(len(arrays.files))]


def fill_tree(name: str, values: Sequence[np.ndarray], like: PyTree) -> PyTree:
    """Arrays in the structure of a tree; ValueError where they are of other shapes or dtypes than its leaves."""
    leaves, structure = jax.tree.flatten(like)
    if [(v.shape, v.dtype) for v in values] != [(np.shape(data(a)), data(a).dtype) for a in leaves]:
        raise ValueError(f"{name} does not fit: its arrays have other shapes than this run's")
    restored = [
        wrap(value, str(jax.random.key_impl(leaf))) if is_key(leaf) else exact(value)
        for leaf, value in zip(leaves, values, strict=True)
    ]
    return jax.tree.unflatten(structure, restored)


def exact(value: np.ndarray) -> jax.Array:
    """The array in JAX, without a change of its dtype."""
    if jax.dtypes.canonicalize_dtype(value.dtype) != value.dtype:
        raise ValueError(f"it is in {value.dtype}: call jax.config.update('jax_enable_x64', True) first")
    return jnp.asarray(value)


def wrap(value: np.ndarray, kind: str) -> jax.Array:
    """A random key of its data."""
    return jax.random.wrap_key_data(jnp.asarray(value), impl=kind)


def is_key(leaf: Any) -> bool:
    """Whether an array holds random keys."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def data(leaf: Any) -> Any:
    """The numbers of an array; of random keys their data."""
    leaf = jnp.asarray(leaf) if not hasattr(leaf, "dtype") else leaf
    return jax.random.key_data(leaf) if is_key(leaf) else leaf
