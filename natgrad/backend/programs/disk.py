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
import io
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Sequence
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


def name(text: str, arguments: list[Any], options: dict[str, Any], devices: list[Any]) -> str:
    """The name of the entry of a program (StableHLO).

    An argument that the program does not use is not in its text, and the program still insists on its shape.
    """
    places = [(device.id, device.process_index, device.device_kind) for device in devices]
    digest = hashlib.sha256(text.encode())
    digest.update(repr((surroundings.of_machine(), arguments, sorted(options.items()), places)).encode())
    return digest.hexdigest()


class Pickler(serialize_executable._JaxPjrtPickler):
    """JAX's pickler of a compiled program, with the calls into this process (large products are NumPy's) by number."""

    def __init__(self, file: Any, calls: Sequence[Any]):
        super().__init__(file)
        self.calls = {id(call): number for number, call in enumerate(calls)}

    def persistent_id(self, obj: Any) -> Any:
        number = self.calls.get(id(obj))
        return super().persistent_id(obj) if number is None else ("call", number)


class Unpickler(serialize_executable._JaxPjrtUnpickler):
    """The way back: the calls are those of the same program as this process lowered it."""

    def __init__(self, file: Any, devices: list[Any], calls: Sequence[Any]):
        super().__init__(file, devices[0].client, devices)
        self.calls = list(calls)

    def persistent_load(self, pid: Any) -> Any:
        if pid[0] == "call":
            return self.calls[pid[1]]
        if pid[0] == "exec" and self.calls:
            return self.backend.deserialize_executable(
                pid[1], executable_devices=self.execution_devices, host_callbacks=self.calls
            )
        return super().persistent_load(pid)


def calls_of(lowered: Any) -> Sequence[Any]:
    """The functions of this process that a lowered program calls, in the order of its text."""
    return lowered._lowering.compile_args["host_callbacks"]


def load(path: Path, lowered: Any, devices: list[Any]) -> Any | None:
    """The program of an entry; None where there is none, or it is damaged or of no use here."""
    try:
        data = path.read_bytes()
        if hashlib.sha256(data[_DIGEST:]).digest() != data[:_DIGEST]:
            path.unlink()  # it would be read in vain by every process to come
            return None
        file = io.BytesIO(zlib.decompress(data[_DIGEST:]))
        unloaded, arguments, no_kwargs = Unpickler(file, devices, calls_of(lowered)).load()
        arguments = lowered.in_tree.unflatten(arguments)
        program = jax.stages.Compiled(unloaded.load(), [], arguments, lowered.out_tree, no_kwargs=no_kwargs)
    except Exception:  # whatever it is, the program is compiled instead
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return program


def save(path: Path, compiled: Any, lowered: Any) -> None:
    """Keeps a program; without a word where that cannot be done."""
    part = None
    try:
        buffer = io.BytesIO()
        whole = compiled._executable._unloaded_executable, jax.tree.leaves(compiled.args_info), compiled._no_kwargs
        Pickler(buffer, calls_of(lowered)).dump(whole)
        content = zlib.compress(buffer.getvalue(), level=1)
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
