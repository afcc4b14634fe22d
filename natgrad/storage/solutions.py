"""Networks and solutions in a file, and what such a file gives back.

The file has the arrays of the parameters first, then those of the solver's state, each in the order of jax.tree.leaves,
so that they fit into a template; and a description of the network, of the parameters and of the state
(`natgrad.storage.trees`), or the reason why there is none.
"""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import PyTree

from natgrad.storage import container
from natgrad.storage.files import writable, write
from natgrad.storage.trees import Describer, rebuild

KINDS = ("network", "solution")
NAMES = {"u": "network", "params": "network"}  # in messages
TREES = ("params", "state", "u", "history", "origin")  # of a solution, the fields that are written by themselves


def save_network(path: Path | str, network: Any) -> Path:
    """Writes a network."""
    params = eqx.filter(network, eqx.is_inexact_array)
    if not callable(network) or not jax.tree.leaves(params):
        raise ValueError(f"save takes a network with parameters, or a solution, got {type(network).__name__}")
    return _save(path, "network", params, None, {"u": network})


def save_solution(path: Path | str, solution: Any) -> Path:
    """Writes a solution, the solver's state and history included."""
    names = [field.name for field in dataclasses.fields(solution) if field.name not in TREES]
    others = {name: getattr(solution, name) for name in names}
    trees = {"u": solution.u, "params": solution.params, "state": solution.state, "told": others}
    origin, solver = solution.origin, getattr(solution.origin, "solver", None)
    origin = origin and dataclasses.replace(origin, solver=None)
    trees |= {"origin": origin, "solver": solver, "records": solution.history.records}
    return _save(path, "solution", solution.params, solution.state, trees)


def _save(path: Path | str, kind: str, params: PyTree, state: PyTree, trees: dict[str, Any]) -> Path:
    path = checked(path)
    first, second = jax.tree.leaves(params), jax.tree.leaves(state)
    describe = Describer([*first, *second])
    header: dict[str, Any] = {name: describe.try_to(tree, NAMES.get(name, name)) for name, tree in trees.items()}
    header["leaves"] = [len(first), len(second)]
    write(path, *container.parts(kind, header, container.pack(describe.arrays)))
    return path


def checked(path: Path | str) -> Path:
    """The path, if a file of natgrad's can be there; ValueError where something else is."""
    path = writable(path, force=True)
    if path.is_symlink() or (path.exists() and container.kind_of(path) not in KINDS):
        raise ValueError(f"{path} is there already, and natgrad did not save it: choose another name")
    return path


class Saved:
    """A file that was read and checked."""

    def __init__(self, path: Path | str, *kinds: str):
        self.path = Path(path)
        self.kind, self.header, payload = container.read(self.path, *(kinds or KINDS))
        self.arrays = container.unpack(payload)

    def get(self, name: str, instead: str = "", otherwise: Any = None) -> Any:
        """A part by its description; where that is missing `otherwise`, or an error with what would do `instead`."""
        try:
            described = self.header[name]
            if not isinstance(described, dict) or "missing" not in described:
                return rebuild(described, self.arrays)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ValueError(f"cannot read {self.path.name}: {error}") from None
        if otherwise is not None:
            return otherwise
        raise ValueError(f"{self.path.name} cannot be loaded by itself ({described['missing']}): {instead}")

    def params(self, like: PyTree) -> PyTree:
        """The parameters in the structure of others."""
        return self._filled(self.arrays[: self.header["leaves"][0]], like, "the network's parameters")

    def state(self, like: PyTree) -> PyTree:
        """The solver's state in the structure of another one."""
        first, second = self.header["leaves"]
        return self._filled(self.arrays[first : first + second], like, "the solver's state")

    def network(self, like: Any = None) -> Any:
        """The network, made of its description or of another one with the same parameters."""
        if like is None:
            whole = ", or what it solves, ng.load_solution(path, problem).u" if self.kind == "solution" else ""
            u = self.get("u", f"give a network of the same make, ng.load(path, like=network){whole}")
            if not callable(u):
                raise ValueError(f"cannot read {self.path.name}: it holds no network")
            return u
        if not callable(like):
            raise ValueError(f"like is a network of the same make as the one in the file, got {type(like).__name__}")
        params, rest = eqx.partition(like, eqx.is_inexact_array)
        return eqx.combine(self.params(params), rest)

    def _filled(self, values: list[np.ndarray], like: PyTree, what: str) -> PyTree:
        ours = [f"{a.dtype}{list(a.shape)}" for a in values]
        theirs = [f"{a.dtype}{list(a.shape)}" for a in map(container.data, jax.tree.leaves(like))]
        if ours != theirs:
            pairs = zip([*ours, "nothing"], [*theirs, "nothing"], strict=False)
            here, there = next(pair for pair in pairs if pair[0] != pair[1])
            raise ValueError(f"{self.path.name} does not fit: {what} have {here} where the template has {there}")
        return container.fill_tree(self.path.name, values, like)
