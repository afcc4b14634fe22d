"""What a program depends on beside its function and its arguments: settings, devices, natgrad itself, the CPU.

All of JAX's settings take part, by their values in this thread: some change what is traced, most do not, and a
compilation too many costs seconds where one too few gives wrong numbers.
"""

import os
import platform
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib

from natgrad.backend.programs.fingerprint import fingerprint
from natgrad.backend.programs.identity import token

FOLDERS = ("_cache_dir", "_dump_", "_dump", "_log_", "_logging", "cache_max_size", "persistent_cache")
LOOP = ("solve", "training", "resuming", "history", "stopping", "progress")
OTHER_ROOMS = (*LOOP, "zoo", "experiment", "cli", "interop", "__main__")


def settings() -> tuple[tuple[str, str], ...]:
    """JAX's settings as this thread sees them, those aside that say where files are."""
    names = [name for name in sorted(jax.config.values) if not any(word in name for word in FOLDERS)]
    return tuple((name, repr(getattr(jax.config, name, None))) for name in names)


def here() -> bytes:
    """The surroundings of a program in this process."""
    return fingerprint(settings(), str(jax.sharding.get_abstract_mesh()), len(jax.devices()), _natgrad())


def of_machine() -> list[str]:
    """What the machine code depends on in any process: versions, devices, flags and the processor."""
    device = jax.devices()[0]
    client: Any = device.client
    flags = [f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith(("XLA_", "LIBTPU_"))]
    return [
        jax.__version__, jaxlib.__version__, platform.python_version(), client.platform, client.platform_version,
        device.device_kind, str(len(jax.devices())), *flags, processor(), repr(settings()),
    ]  # fmt: skip


@cache
def processor() -> str:
    """The processor's kind and instructions: a program for one is wrong or crashes on another."""
    facts = [platform.machine(), platform.system(), platform.processor()]
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    facts += [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))]
    return "\n".join(facts)


def _natgrad() -> tuple[Any, ...]:
    """natgrad's own functions, classes and constants, as they are: one may have been changed to try something out."""
    found: list[Any] = []
    for name in sorted(name for name in sys.modules if name.partition(".")[0] == "natgrad"):
        module = sys.modules[name]
        room = name.split(".")[1:]
        if (room[:1] and room[0] in OTHER_ROOMS) or room[:2] == ["backend", "programs"] or module is None:
            continue
        for key, value in vars(module).items():
            if isinstance(value, types.FunctionType):
                found += [key, token(value), token(value.__code__)]
            elif isinstance(value, type):
                found += [key, token(value, forever=True)]
                if value.__module__ == name:
                    inside = vars(value).values()
                    found += [token(part.__code__) for part in inside if isinstance(part, types.FunctionType)]
            elif isinstance(value, bool | int | float | str | tuple | type(None)) and not key.startswith("__"):
                found += [key, repr(value)]
    return tuple(found)
