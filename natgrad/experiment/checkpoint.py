"""Checkpoints: parameters and solver state in a file that is whole or not there, and never costs more than it may.

The format is that of all that natgrad saves (`natgrad.storage.container`), with the header

    {"step", "time", "status", "fingerprint", "history": {"bytes", "sha256"}, "config"}

and the leaves in the order of jax.tree.leaves. `config` is a copy of config.json. The last two are kept, so that one is
left where the other is damaged; files that the run did not write are left alone, whatever their names. Writing is
paced: a checkpoint is due once all of them together, this one included, have taken less than 2 % of the time spent
stepping (the first is written at once).
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from natgrad.experiment.folder import Folder
from natgrad.experiment.staged import staged
from natgrad.storage import container
from natgrad.storage.container import LONGEST

KEEP = 2
SHARE = 0.02  # of the stepping time
HOME = "checkpoint"  # the folder in the run's
Like = Callable[[dict[str, Any]], PyTree]  # header ↦ a tree of the structure of what was saved


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds: the header and the tree."""

    step: int
    time: float
    status: str | None  # why the run ended here; None for one that goes on
    history: dict[str, Any]  # length and checksum of history.jsonl up to here
    tree: PyTree


class Writer:
    """Writes the checkpoints of a run into its folder, and knows what they cost.

    `kept` are those of an earlier process that are good, the newest first: they go where newer ones take their place.
    """

    def __init__(self, folder: Folder | None, record: dict[str, Any], kept: Iterable[Path] = ()):
        self.folder, self.record = folder, record
        self.kept = [path.name for path in kept]
        self.spent, self.last, self.count = 0.0, 0.0, 0

    def due(self, stepping: float) -> bool:
        """Whether another one, as dear as the last, stays within its share of the seconds spent stepping."""
        return self.count == 0 or self.spent + self.last <= SHARE * stepping

    def save(self, step: int, clock: float, status: str | None, history: dict[str, Any], tree: PyTree) -> None:
        """Writes one and drops all but the last `KEEP` of this run's."""
        assert self.folder is not None
        started = time.perf_counter()
        header = {"step": step, "time": clock, "status": status, "fingerprint": self.record["fingerprint"]}
        if staged(self.record):  # a tuple of parameters, one entry per stage
            header["stages"] = len(tree[0])
        header |= {"history": history, "config": self.record}
        name = self._name(step)
        self.folder.claim(f"{HOME}/{name}", instead_of=[entry for entry in self.folder.files if entry.startswith(HOME)])
        self.folder.write(f"{HOME}/{name}", *container.parts("checkpoint", header, pack(tree)))
        self.kept = [name, *(other for other in self.kept if other != name)]
        self.folder.remove(f"{HOME}/{old}" for old in self.kept[KEEP:])
        del self.kept[KEEP:]
        self.count += 1
        self.last = time.perf_counter() - started
        self.spent += self.last

    def _name(self, step: int) -> str:
        """The name of the checkpoint of a step, another one where a stranger's file has it."""
        assert self.folder is not None
        names = chain([f"step-{step:09d}.ckpt"], (f"step-{step:09d}-{n}.ckpt" for n in count(2)))
        free = lambda name: f"{HOME}/{name}" in self.folder.files or not (self.folder.path / HOME / name).exists()
        return next(filter(free, names))


def files(folder: Path) -> list[Path]:
    """The files of a folder that are named as checkpoints are, the latest step first."""
    return sorted(folder.glob("step-*.ckpt"), key=lambda path: (_step(path), path.name), reverse=True)


def _step(path: Path) -> int:
    """The step a file says it is of; where it cannot be read, what its name says."""
    try:
        with open(path, "rb") as file:
            lines = [file.readline(LONGEST) for _ in range(3)]
        step = json.loads(lines[2])["step"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        step = None
    digits = "".join(c for c in path.stem.split("-")[1] if c.isdigit())
    return step if isinstance(step, int) else int(digits[:18] or 0)


def pack(tree: PyTree) -> memoryview:
    """The leaves of a tree; random keys by their data."""
    return container.pack(jax.tree.leaves(tree))


def load(path: Path, fingerprint: str, like: Like) -> Checkpoint:
    """A checkpoint with the structure of `like(header)`; ValueError, in one line, where it is damaged or of another
    run."""
    header, arrays = _open(path, fingerprint)
    fields = {name: header[name] for name in ("step", "time", "status", "history")}
    return Checkpoint(**fields, tree=container.fill_tree(path.name, arrays, like(header)))


def load_first(path: Path, fingerprint: str, like: Like) -> PyTree:
    """The first part alone of the tree that was saved: of (parameters, state) the parameters."""
    header, arrays = _open(path, fingerprint)
    tree = like(header)
    return container.fill_tree(path.name, arrays[: len(jax.tree.leaves(tree))], tree)


def unpack(payload: bytes | memoryview, like: PyTree) -> PyTree:
    """What `pack` made a tree of the structure of `like` into."""
    return container.fill_tree("checkpoint", container.unpack(payload), like)


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """The header and the payload, checked."""
    return container.read(path, "checkpoint")[1:]


def _open(path: Path, fingerprint: str) -> tuple[dict[str, Any], list[np.ndarray]]:
    header, payload = read(path)
    if header.get("fingerprint") != fingerprint:
        raise ValueError(f"{path.name} belongs to another run: its fingerprint differs")
    return header, container.unpack(payload)
