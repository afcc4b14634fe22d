"""`continuation`: one problem for several values of a parameter, each begun where the last one ended."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import PRNGKeyArray, PyTree

from natgrad.callbacks import Callback, Callbacks
from natgrad.history import Solution
from natgrad.problem import Problem
from natgrad.solve import check_start
from natgrad.stages.chain import Calls, Chain, Ended, Limits, Record, Stage, steps_per_stage


@dataclass(frozen=True)
class Values:
    """The values in turn, one stage each."""

    problem: Callable[[float], Problem]
    values: tuple[float, ...]
    steps: tuple[int, ...]
    name = "value"

    def next(self, ended: Sequence[Ended]) -> Stage | None:
        if not self.left(ended):
            return None
        value = self.values[len(ended)]
        return Stage({"value": value}, lambda start: self.problem(value), self.steps[len(ended)])

    def judge(self, stage: Stage, records: Sequence[Record], largest_loss: float) -> float:
        return 1.0

    def left(self, ended: Sequence[Ended]) -> int:
        return len(self.values) - len(ended)

    def solution(self, kept: Sequence[Ended]) -> tuple[Callable, dict[str, float]]:
        return kept[-1].u, dict(kept[-1].errors)


def continuation(
    problem_of: Callable[[float], Problem],
    values: Sequence[float],
    solver: Any,
    steps: int | Sequence[int],
    *,
    key: PRNGKeyArray | None = None,
    params: PyTree | None = None,
    resume: Solution | None = None,
    evaluate_every: int = 10,
    target_error: float | None = None,
    target_loss: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    callback: Callback | Sequence[Callback] | None = None,
    checkpoint: Callable[[tuple[PyTree, ...], Any], Any] | None = None,
    ended: Callable[[int, Solution], Any] | None = None,
    progress: bool = True,
    memory: int | float | str | None = None,
    group: int | None = None,
    cache: bool = True,
) -> Solution:
    """Solves a problem for each value of a parameter in turn, from an easy one to the one that is wanted.

        solution = ng.continuation(lambda re: cavity(re), [100, 200, 400], ng.NystromNGD(), steps=100)

    The solution is that of the last value; `params` has the parameters of all values, a tuple. Each record of the
    history has its `value`. A value that is an array of the problem, its `data` say, compiles nothing anew.

    Arguments beyond those of `ng.march`:
        problem_of: gives the problem of a value; its network begins where that of the value before ended, if the shapes
            of the parameters are the same.
        values: different numbers, in the order in which they are taken.
        steps: the most steps of a value, one number for all, or a sequence with a number for each.
    """
    if isinstance(problem_of, Problem) or not callable(problem_of):
        raise ValueError(f"continuation takes a function value -> problem, got {type(problem_of).__name__}")
    known = check_values(values)
    check_start(None, resume and params, resume, checkpoint=checkpoint, ended=ended)  # type: ignore[arg-type]
    chain = Chain(
        Values(problem_of, known, steps_per_stage(steps, len(known))), solver, key,
        Limits(evaluate_every, target_error, target_loss, time_limit, patience),
        Calls(Callbacks(callback), checkpoint, ended), progress, memory, group, cache,
    )  # fmt: skip
    return chain(params, resume)


def check_values(values: Any) -> tuple[float, ...]:
    """The values as floats; ValueError in one line where they are none, or one stands twice in a row."""
    try:
        known = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise ValueError(f"values must be a sequence of numbers, got {values!r}") from None
    if not known or not all(map(math.isfinite, known)):
        raise ValueError(f"values must be finite numbers, at least one, got {list(known)}")
    if len(set(known)) < len(known):
        raise ValueError(f"values must differ from one another, got {list(known)}")
    return known
