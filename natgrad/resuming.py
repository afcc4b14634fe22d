"""What a run can go on with: the solver that made its state, and a problem of the same shapes."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from natgrad.problem import Problem

PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class Origin:
    """A solver, and a problem without its arrays: the shape and dtype of each parameter, the rows of each block, and
    which blocks have points that move.

    Points, data and equations may be others where a run goes on; the state does not know them.
    """

    solver: Any
    kind: str
    params: dict[str, str]
    blocks: dict[str, int]
    moving: tuple[str, ...]

    @classmethod
    def of(cls, problem: Problem, solver: Any) -> "Origin":
        """The origin of a run that begins with this problem and this solver."""
        leaves = jax.tree_util.tree_leaves_with_path(problem.params)
        params = {jax.tree_util.keystr(path): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves}
        rows = {block.name: block.rows for block in problem.features}
        return cls(solver, type(problem).__name__, params, rows, tuple(problem.moving))

    def check(self, before: "Origin") -> None:
        """ValueError where a run that began otherwise cannot go on."""
        found = (
            difference("the kind of problem", self.kind, before.kind)
            or _entries("parameter", self.params, before.params)
            or _entries("the number of rows of block", self.blocks, before.blocks)
            or difference("whether points are drawn anew in blocks", ", ".join(self.moving), ", ".join(before.moving))
            or difference("the solver", self.solver, before.solver)
        )
        if found:
            raise ValueError(f"resume goes on as it began, but {found}: begin anew by params=solution.params")


def difference(name: str, now: Any, before: Any) -> str | None:
    """The first thing in which two objects differ, in words; functions and what is not plain are taken to be equal."""
    if now is before:
        return None
    if type(now) is not type(before):
        return f"{name} is {_word(now)} and was {_word(before)}"
    if isinstance(now, PLAIN):
        return None if now == before else f"{name} is {_word(now)} and was {_word(before)}"
    if isinstance(now, jax.Array | np.ndarray):
        return None if _same(now, before) else f"{name} is another array"
    parts, earlier = _parts(now), _parts(before)
    within = "" if name == "the solver" else f"{name}."
    found = (difference(f"{within}{part}", value, earlier.get(part)) for part, value in parts.items())
    return next((words for words in found if words), None)


def _parts(obj: Any) -> dict[str, Any]:
    """What an object is made of, by name."""
    if isinstance(obj, list | tuple):
        return {"length": len(obj)} | {str(place): value for place, value in enumerate(obj)}
    if dataclasses.is_dataclass(obj):
        return {field.name: getattr(obj, field.name) for field in dataclasses.fields(obj)}
    return {name: value for name, value in getattr(obj, "__dict__", {}).items() if isinstance(value, PLAIN)}


def _same(one: Any, other: Any) -> bool:
    if jax.dtypes.issubdtype(one.dtype, jax.dtypes.prng_key):
        one, other = jax.random.key_data(one), jax.random.key_data(other)
    one, other = np.asarray(one), np.asarray(other)
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def _word(value: Any) -> str:
    return repr(value) if isinstance(value, PLAIN) else type(value).__name__


def _entries(what: str, now: dict[str, Any], before: dict[str, Any]) -> str | None:
    """The first name whose entry is another, in words."""
    for name in dict.fromkeys([*now, *before]):
        if now.get(name) != before.get(name):
            return f"{what} {name} is {now.get(name, 'not there')} and was {before.get(name, 'not there')}"
    return None
