"""Compiled programs in the user's cache folder, for the next process.

JAX has such a cache, which is one object for the whole process: to use it here would be to switch it on for all that
the user compiles, in whatever thread. It writes entries in place, so that another process may read half of one, and
never replaces a damaged one. So natgrad keeps its own programs itself, by `jax.experimental.serialize_executable`, and
leaves JAX's settings alone. Where the user has set JAX's cache, that is used, and not this.

An entry's name is a hash of the program as it was lowered (StableHLO, all constants in it) and of all that the compiler
goes by: options, versions, JAX's settings, flags, the devices, the processor and its instructions. So it is right
whatever the user's functions are. Its file starts with a hash of its content: what is damaged is not used, and written
again. Files appear whole (`os.replace`); those that were not used for longest go when all together exceed `LIMIT`.
Nothing here raises: a folder that cannot be read or written is no folder. Entries are read by pickle: a folder that
belongs to another user is not used.
"""

import contextlib
import hashlib
import importlib
import json
import os
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable

from natgrad.backend.programs import surroundings
from natgrad.backend.xla import on_cpu

LIMIT = 2**30  # bytes of all entries together
WORTH = 0.2  # seconds of compilation from which on a program is kept
SUFFIX = ".program"
_DIGEST = 32


def folder() -> Path | None:
    """Where programs are kept; None where none are: switched off, JAX's own cache in use, several processes, or a
    device other than a processor, whose programs (CUDA graphs among them) have not been tried."""
    if jax.config.jax_compilation_cache_dir or jax.process_count() > 1:  # type: ignore[attr-defined]
        return None
    if not on_cpu():
        return None
    return own_folder()


def keep_by_jax() -> None:
    """JAX's own cache in the same folder, where this one is of no use: several processes, of which one writes what all
    of them run, and GPUs."""
    place = own_folder()
    if place is None or jax.config.jax_compilation_cache_dir:  # type: ignore[attr-defined]
        return
    mend(place / "processes")
    jax.config.update("jax_compilation_cache_dir", str(place / "processes"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def mend(place: Path) -> None:
    """Removes damaged entries from JAX's cache in natgrad's folder; JAX itself would neither use nor replace them.

    An entry is decompressed once: the sizes and times of those that were whole are kept beside them.
    """
    list_ = place / "whole.json"
    try:
        known = json.loads(list_.read_text())
    except (OSError, ValueError):
        known = {}
    found = {}
    for path in place.glob("*-cache"):
        with contextlib.suppress(OSError):
            stat = [path.stat().st_size, path.stat().st_mtime_ns]
            if known.get(path.name) == stat or _whole(path.read_bytes()):
                found[path.name] = stat
            else:
                path.unlink()
    if found != known:
        with contextlib.suppress(OSError):
            part = list_.with_suffix(f".{os.getpid()}.part")
            part.write_text(json.dumps(found))
            os.replace(part, list_)


def _whole(data: bytes) -> bool:
    """Whether an entry of JAX's cache can be decompressed, by the library that compressed it, to its last byte."""
    try:
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            importlib.import_module("zstandard").ZstdDecompressor().decompress(data)
        else:
            zlib.decompress(data)
    except ImportError:
        return True  # as far as can be said here
    except Exception:  # each library has errors of its own
        return False
    return True


def own_folder() -> Path | None:
    """natgrad's folder in the user's caches, or the one NATGRAD_CACHE names; None where it is 0 or cannot be used."""
    asked = os.environ.get("NATGRAD_CACHE", "")
    if asked == "0":
        return None
    try:
        path = Path(asked) if asked else _caches() / "natgrad" / "programs"
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        mine = not hasattr(os, "getuid") or path.stat().st_uid == os.getuid()
        return path if mine and os.access(path, os.R_OK | os.W_OK | os.X_OK) else None
    except (OSError, RuntimeError):
        return None


def name(text: str, arguments: list[Any], options: dict[str, Any], devices: list[Any]) -> str | None:
    """The name of the entry of a program (StableHLO); None where it calls back into this process.

    An argument that the program does not use is not in its text, and the program still insists on its shape.
    """
    if "callback" in text:
        return None
    places = [(device.id, device.process_index, device.device_kind) for device in devices]
    digest = hashlib.sha256(text.encode())
    digest.update(repr((surroundings.of_machine(), arguments, sorted(options.items()), places)).encode())
    return digest.hexdigest()


def load(path: Path, lowered: Any, devices: list[Any]) -> Any | None:
    """The program of an entry; None where there is none, or it is damaged or of no use here."""
    try:
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            path.unlink()  # it would be read in vain by every process to come
            return None
        content = zlib.decompress(data[_DIGEST:])
        program = serialize_executable.deserialize_and_load(
            content, lowered.in_tree, lowered.out_tree, devices[0].client, devices
        )
    except Exception:  # whatever it is, the program is compiled instead
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return program


def save(path: Path, compiled: Any) -> None:
    """Keeps a program; without a word where that cannot be done."""
    part = None
    try:
        content = zlib.compress(serialize_executable.serialize(compiled)[0], level=1)
        handle, part = tempfile.mkstemp(suffix=".part", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        os.replace(part, path)
        evict(path.parent)
    except Exception:
        if part is not None:
            with contextlib.suppress(OSError):
                os.unlink(part)


def evict(place: Path) -> None:
    """Removes the entries that were not used for longest, until the others fit."""
    entries = []
    for path in place.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError):  # another process may have removed it
            stat = path.stat()
            entries.append((stat.st_mtime, stat.st_size, path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= LIMIT:
            break
        with contextlib.suppress(OSError):
            path.unlink()
        total -= size


def _caches() -> Path:
    """The folder for caches of this user."""
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"])
    if sys.platform == "win32" and os.environ.get("LOCALAPPDATA"):
        return Path(os.environ["LOCALAPPDATA"])
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
