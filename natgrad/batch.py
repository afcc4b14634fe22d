"""Steps of several problems of one shape, in one program.

On a GPU a step of a thousand parameters leaves most of the device idle, and ten of them take hardly longer than one:
there `jax.vmap` of the step takes all at the same time. Its price: loops go on until the last problem is done with
them, and of branches all are computed. On a processor, which one step keeps busy, they are taken one after the other.

What is the same in all problems (a mesh, a grid of evaluation points) is there once.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from natgrad.backend.programs import Program
from natgrad.backend.programs.fingerprint import fingerprint
from natgrad.backend.programs.identity import Unshareable
from natgrad.backend.xla import compiler_options
from natgrad.problem import Problem
from natgrad.stepping import Pace, Place, Reports, without_weak_types


class Batch:
    """`batch(counts)` takes counts[i] steps of problem i, and gives what they reported; `place(i)` is where it is.

    `again(counts)` takes steps of the last call once more, for problems that stop amid them.
    """

    def __init__(
        self, problems: Sequence[Problem], solver: Any, places: Sequence[Place], group: int | None, cache: bool
    ):
        self.problems, self.structure = problems, jax.tree.structure(places[0])
        self.pace = Pace(problems[0], group)
        shared = [_same(leaves) for leaves in zip(*map(jax.tree.leaves, problems), strict=True)]
        columns = zip(*map(jax.tree.leaves, problems), strict=True)
        self.data = [leaves[0] if once else jnp.stack(leaves) for leaves, once in zip(columns, shared, strict=True)]
        self.now = self.before = [jnp.stack(leaves) for leaves in zip(*map(jax.tree.leaves, places), strict=True)]
        counts = np.ones(len(problems), np.int32)
        run = _together(solver, self.pace.most, jax.tree.structure(problems[0]), self.structure, tuple(shared))
        self.program = Program(run, self.data, self.now, counts, options=compiler_options(), cache=cache)
        self.picker = Program(_pick, self.now, np.int32(0), cache=cache)

    def __call__(self, counts: Sequence[int]) -> list[Reports]:
        self.before = self.now
        self.now, columns = self._run(self.before, counts)
        columns = jax.device_get(columns)
        row = lambda i, k: jax.tree.map(lambda column: column[i, k], columns)
        return [[row(i, k) for k in range(count)] for i, count in enumerate(counts)]

    def place(self, index: int) -> Place:
        """Parameters and state of one problem."""
        return self._place(self.now, index)

    def again(self, counts: Sequence[int]) -> list[Place]:
        """Where problem i is after counts[i] of the last call's steps."""
        stacked, _ = self._run(self.before, counts)
        return [self._place(stacked, index) for index in range(len(counts))]

    def _run(self, start: Any, counts: Sequence[int]) -> Any:
        return self.program(self.data, start, np.asarray(counts, np.int32))

    def _place(self, stacked: Any, index: int) -> Place:
        return jax.tree.unflatten(self.structure, self.picker(stacked, np.int32(index)))


def _together(solver: Any, most: int, problem: Any, place: Any, shared: tuple[bool, ...]) -> Any:
    """`counts` steps of each problem, all at a time; one that has taken its own stays where it is."""

    def run(data: Any, start: Any, counts: Any) -> Any:
        def alone(data: Any, leaves: Any) -> Any:
            params, state = jax.tree.unflatten(place, leaves)
            params, state, info = solver.step(jax.tree.unflatten(problem, data), params, state)
            return jax.tree.leaves(jax.tree.map(without_weak_types, (params, state))), vars(info)

        step = jax.jit(jax.vmap(alone, ([None if once else 0 for once in shared], 0)))
        info = jax.eval_shape(step, data, start)[1]
        rows = jax.tree.map(lambda leaf: jnp.zeros((leaf.shape[0], most, *leaf.shape[1:]), leaf.dtype), info)

        def body(index, carry):
            leaves, rows = carry
            new, info = step(data, leaves)
            live = lambda old, new: jnp.where((index < counts).reshape(-1, *[1] * (new.ndim - 1)), new, old)
            rows = jax.tree.map(lambda row, value: row.at[:, index].set(value), rows, info)
            return [live(*pair) for pair in zip(leaves, new, strict=True)], rows

        return jax.lax.fori_loop(0, jnp.max(counts), body, (start, rows))

    return run


def _pick(stacked: Any, index: Any) -> Any:
    return [leaf[index] for leaf in stacked]


def _same(leaves: Sequence[Any]) -> bool:
    """Whether all problems have the same array in one place."""
    first = leaves[0]
    if all(leaf is first for leaf in leaves):
        return True
    if jax.dtypes.issubdtype(first.dtype, jax.dtypes.prng_key):
        return False
    return all(np.array_equal(first, leaf) for leaf in leaves[1:])


def check_alike(problems: Sequence[Problem]) -> None:
    """ValueError where problems are not of one shape, with the first thing that differs."""
    first = problems[0]
    for number, problem in enumerate(problems[1:], 1):
        if found := _difference(problem, first):
            raise ValueError(f"problems that are trained together have one shape, but problem {number} {found}")


def _difference(problem: Problem, first: Problem) -> str | None:
    """What problem 0 has otherwise, in words."""
    if type(problem) is not type(first):
        return f"is {type(problem).__name__} and problem 0 is {type(first).__name__}"
    mine, its = ([block.name for block in p.features] for p in (problem, first))
    if mine != its:
        return f"has the blocks {', '.join(mine)} and problem 0 has {', '.join(its)}"
    for block, other in zip(problem.features, first.features, strict=True):
        if block.rows != other.rows:
            return f"has {block.rows} rows in block {block.name!r} and problem 0 has {other.rows}"
    pairs = zip(_arrays(problem).items(), _arrays(first).items(), strict=False)
    for (path, shape), (where, there) in pairs:
        if (path, shape) != (where, there):
            return f"has {path} of {shape} and problem 0 has {where} of {there}"
    structure, other = (jax.tree.structure(p) for p in (problem, first))
    if not bool(structure == other) and not _equal(structure, other):  # type: ignore[operator]
        return "differs from problem 0 in a function, a network or an option: only arrays may be others"
    if any(block.mesh is not None for block in problem.features):
        return "is spread over several devices: train it by ng.solve"
    return None


def _arrays(problem: Problem) -> dict[str, str]:
    leaves = jax.tree_util.tree_leaves_with_path(problem)
    return {jax.tree_util.keystr(path): f"{leaf.dtype}{list(leaf.shape)}" for path, leaf in leaves}


def _equal(one: Any, other: Any) -> bool:
    """Whether two structures mean the same, function by function."""
    try:
        return fingerprint(one) == fingerprint(other)
    except Unshareable:
        return False
