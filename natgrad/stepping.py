"""A solver's step, compiled once and taken several times a call.

On a GPU a step of ten milliseconds is a thousand kernels, and a third of its time can go by between one step's last
kernel and the next one's first: results are fetched, arguments passed, graphs set up. On a CPU half a step of Adam's is
lost that way. A loop on the device has none of that. Its length is an argument, so one program takes any number of
steps, with the same bits however they are divided over calls.
"""

import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from natgrad.backend import tuning
from natgrad.backend.programs import Program
from natgrad.backend.xla import compiler_options
from natgrad.problem import Problem

Place = tuple[PyTree, PyTree]  # parameters and state
Reports = list[dict[str, Any]]  # of each step


class Stepper:
    """`(params, state), reports = stepper((params, state), count)`: `count` steps, and what each of them reported."""

    def __init__(
        self,
        problem: Problem,
        solver: Any,
        params: PyTree,
        state: PyTree,
        group: int | None = None,
        cache: bool = True,
    ):
        self.problem, self.pace = problem, Pace(problem, group)
        run = _once(solver) if self.pace.most == 1 else _loop(solver, self.pace.most)
        options = compiler_options()
        self.program = Program(run, problem, params, state, np.int32(1), options=options, cache=cache)

    def on(self, problem: Problem) -> "Stepper":
        """The same program for another problem of the same shape."""
        other = copy.copy(self)
        other.problem = problem
        return other

    def __call__(self, start: Place, count: int) -> tuple[Place, Reports]:
        # The program may have been made for another caller, whose functions are equal: the trees are this one's.
        leaves, info = self.program(self.problem, *start, np.int32(count))
        columns = jax.device_get(vars(info))
        reports = [jax.tree.map(lambda column, i=i: column[i], columns) for i in range(count)]
        return jax.tree.unflatten(jax.tree.structure(start), leaves), reports


class Pace:
    """How many steps go into a call: at most `group`, or what takes a quarter of a second."""

    def __init__(self, problem: Problem, group: int | None):
        self.most, self.timed = (most(problem), True) if group is None else (group, False)

    def count(self, seconds: float | None) -> int:
        """For the next call, where `seconds` is what a step of the last one took."""
        if not self.timed:
            return self.most
        return 1 if seconds is None else int(np.clip(tuning.SECONDS / max(seconds, 1e-9), 1, self.most))


def most(problem: Problem) -> int:
    """How many steps a call may take where nobody says."""
    return tuning.STEPS if problem.num_parameters * problem.num_rows <= tuning.STEP_NUMBERS.here() else 1


def _once(solver: Any) -> Any:
    """One step, with a row of what it reported."""

    def run(problem: Problem, params: PyTree, state: PyTree, count: Any) -> Any:
        params, state, info = solver.step(problem, params, state)
        return jax.tree.leaves((params, state)), jax.tree.map(lambda value: jnp.asarray(value)[None], info)

    return run


def _loop(solver: Any, most: int) -> Any:
    """`count` steps, with a row of what they reported for each."""

    def run(problem: Problem, params: PyTree, state: PyTree, count: Any) -> Any:
        step = jax.jit(solver.step)  # traced once, for its shapes and for the loop
        info = jax.eval_shape(step, problem, params, state)[2]
        rows = jax.tree.map(lambda leaf: jnp.zeros((most, *leaf.shape), leaf.dtype), info)

        def body(index, carry):
            params, state, rows = carry
            params, state, info = step(problem, params, state)
            rows = jax.tree.map(lambda row, value: row.at[index].set(value), rows, info)
            return *jax.tree.map(without_weak_types, (params, state)), rows

        params, state, rows = jax.lax.fori_loop(0, count, body, (params, state, rows))
        return jax.tree.leaves((params, state)), rows

    return run


def without_weak_types(leaf: Any) -> Any:
    """The array without JAX's weak type, which a file does not keep: a resumed run compiles the same step."""
    dtype = jnp.result_type(leaf)
    return leaf if jnp.issubdtype(dtype, jax.dtypes.prng_key) else jnp.asarray(leaf, dtype)
