"""Compiled programs, used again: within a process by what they mean, in later ones by what they are.

A program is a function of pytrees and the arrays it was first called with. Compiling one takes seconds, so

1. memory: what was compiled in this process for the same function, structure, shapes and surroundings is used again.
   JAX's own cache compares functions by identity, which is both too strict (a builder called twice makes two lambdas)
   and too loose (a function that reads a global stays the same object when the global changes). Here the key is made of
   values: fingerprints of the function and of all that is static in the arguments (`fingerprint`), shapes, dtypes and
   places of the arrays, compiler options, JAX's settings and natgrad itself (`surroundings`). What has no certain
   value is not shared.
2. disk: what another process compiled is used, if it is the same program to the last constant (`disk`).

Programs take and give flat lists of arrays, so that one serves callers whose functions are equal but other objects; a
caller's own trees are put around the arrays. The memory holds the `MOST` programs used last, and of the user's objects
none but what the compiler made constants of: no points, no parameters, no functions.

    program = Program(fn, problem, params)          # nothing happens yet
    compile_together(program, other)                # compiles both at the same time
    program(problem, params)
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jaxtyping import PyTree

from natgrad.backend import blas
from natgrad.backend.programs import disk, surroundings
from natgrad.backend.programs.fingerprint import fingerprint
from natgrad.backend.programs.identity import Unshareable

MOST = 12  # programs kept in memory, a step of 40 MB (docs/compilation.md) and smaller ones
COMPILATIONS = {"new": 0, "disk": 0, "memory": 0}  # how often a program came from where, in this process


class Compiled(NamedTuple):
    """What the compiler made of a function."""

    run: Callable[..., list[Any]]  # lists of arrays to lists of arrays
    out: Any  # the structure of what the function gives
    one_thread: bool  # whether its factorizations are small, and LAPACK's threads would be in the way


_memory: OrderedDict[bytes, Compiled] = OrderedDict()
_lock = threading.Lock()


def clear_cache() -> None:
    """Forgets the compiled programs of this process: `ng.clear_cache()`. Those on disk stay."""
    with _lock:
        _memory.clear()


class Program:
    """`fn(*args)`, compiled when first called, for arguments of the structure, shapes and places of these.

    `origin` says where it came from: "new", "disk" or "memory". With `cache=False` it is compiled anew, whatever is
    there.
    """

    def __init__(self, fn: Callable, *args: PyTree, options: dict[str, Any] | None = None, cache: bool = True):
        self.fn: Any = fn
        self.args, self.options, self.cache = args, dict(options or {}), cache
        self.origin = "new"
        self.compiled: Compiled | None = None
        self._out: Any = None
        self._key: bytes | None = None
        self._lowered: Any = None

    def __call__(self, *args: PyTree) -> PyTree:
        if self.compiled is None:
            compile_together(self)
        assert self.compiled is not None
        leaves = jax.tree.leaves(args)
        if not self.compiled.one_thread:
            return jax.tree.unflatten(self.compiled.out, self.compiled.run(*leaves))
        with blas.one_thread():
            return jax.tree.unflatten(self.compiled.out, jax.block_until_ready(self.compiled.run(*leaves)))

    def look_up(self) -> bool:
        """Takes the program from memory, or lowers it; True where it is there."""
        leaves, tree = jax.tree.flatten(self.args)
        self._key = _key(self.fn, tree, leaves, self.options) if self.cache else None
        found = None
        if self._key is not None:
            with _lock:
                found = _memory.get(self._key)
                if found is not None:
                    _memory.move_to_end(self._key)
        if found is not None:
            self._found(found, "memory")
            return True
        fn, out = self.fn, []

        def flat(*leaves: Any) -> list[Any]:
            results, structure = jax.tree.flatten(fn(*jax.tree.unflatten(tree, leaves)))
            out.append(structure)
            return results

        self._lowered = jax.jit(flat).lower(*leaves)
        self._out = out[-1]
        return False

    def compile(self) -> None:
        """Takes the lowered program from disk, or compiles it."""
        devices = _devices(self.args)
        cpu = devices[0].platform == "cpu"
        text = self._lowered.as_text() if cpu else ""
        place = disk.folder() if self.cache and cpu else None
        arguments = [_place(leaf) for leaf in jax.tree.leaves(self.args)]
        path = None
        if place is not None:
            path = place / f"{disk.name(text, arguments, self.options, devices)}{disk.SUFFIX}"
        run = disk.load(path, self._lowered, devices) if path is not None else None
        origin = "disk"
        if run is None:
            origin = "new"
            run, seconds = _timed(lambda: self._lowered.compile(self.options or None))
            if path is not None and seconds >= disk.WORTH:
                disk.save(path, run, self._lowered)
        compiled = Compiled(run, self._out, cpu and blas.small(text))
        if self._key is not None:
            with _lock:
                _memory[self._key] = compiled
                while len(_memory) > MOST:
                    _memory.popitem(last=False)
        self._found(compiled, origin)

    def _found(self, compiled: Compiled, origin: str) -> None:
        self.compiled, self.origin = compiled, origin
        self.fn, self.args, self._lowered = None, (), None  # nothing of the user's is held
        with _lock:
            COMPILATIONS[origin] += 1


def compile_together(*programs: Program) -> None:
    """Compiles those that are not: the compiler runs in a thread while the next program is traced and compiled."""
    seen, threads = surroundings.settings(), []
    for place, program in enumerate(programs):
        if program.compiled is not None or program.look_up():
            continue
        if place == len(programs) - 1 or jax.process_count() > 1:  # processes compile in the same order
            program.compile()
        else:
            threads.append(threading.Thread(target=_compile_alike, args=(program, seen)))
            threads[-1].start()
    for thread in threads:
        thread.join()
    for program in programs:
        if program.compiled is None:
            program.compile()


def _compile_alike(program: Program, seen: Any) -> None:
    """Compiles in this thread, if it sees the settings of the other; what fails here, fails there again and is told."""
    try:
        if surroundings.settings() == seen:
            program.compile()
    except Exception:
        return


def _key(fn: Any, tree: Any, leaves: list[Any], options: dict[str, Any]) -> bytes | None:
    """What a program means; None where that is not certain."""
    devices = [device.id for device in _devices(leaves)]
    try:
        places = [_place(leaf) for leaf in leaves]
        return fingerprint(fn, tree, places, devices, sorted(options.items()), surroundings.here())
    except Unshareable:
        return None


def _place(leaf: Any) -> tuple[Any, ...]:
    """Shape, type and place of an argument. One that is the same on all devices may lie on one at first."""
    kind = jax.typeof(leaf)
    place = ""
    if isinstance(leaf, jax.Array) and not leaf.sharding.is_fully_replicated:
        place = str(leaf.sharding)
    return kind.shape, str(kind.dtype), bool(getattr(kind, "weak_type", False)), place


def _devices(args: PyTree) -> list[Any]:
    """The devices a program runs on, in their order."""
    arrays = [leaf for leaf in jax.tree.leaves(args) if isinstance(leaf, jax.Array)]
    for leaf in arrays:
        if isinstance(leaf.sharding, jax.sharding.NamedSharding):
            return list(leaf.sharding.mesh.devices.flat)
    for leaf in arrays:
        if leaf.committed:
            return sorted(leaf.sharding.device_set, key=lambda device: device.id)
    default: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
    return [default] if isinstance(default, jax.Device) else jax.local_devices(backend=default)[:1]


def _timed(fn: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    return fn(), time.perf_counter() - started
