"""Who hears of a run as it goes: one callback or several, each with the record of each step.

    callback(record)          a dict of numbers, as in the history
    callback(record, now)     and `now`, which makes `now.params` and `now.network` when they are asked for

A callback that returns something true ends the run; one with a method `ended(solution)` is told of the end. The
trackers of `natgrad.interop.trackers` are such callbacks.
"""

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from jaxtyping import PyTree

from natgrad.problem import Problem
from natgrad.problem.base import Network, Sealed

Callback = Callable[..., Any]


class Now:
    """Where a run is after a step, for the time of the call.

    A call of the device takes several steps, and has the parameters of the last: amid them, asking for `params` takes
    the steps up to there again, with the same bits. At steps that are `due`, multiples of `evaluate_every` and the last
    of all, they are there for nothing.
    """

    def __init__(self, problem: Problem, due: bool, params: Callable[[], PyTree]):
        self.problem, self.due, self._params = problem, due, params

    @cached_property
    def params(self) -> PyTree:
        """The parameters, a tree as in `Solution.params`."""
        return self._params()

    @cached_property
    def network(self) -> Network:
        """The network with these parameters; `now.network.nu.value` is an unknown number of an inverse problem."""
        u = self.problem.network(self.params)
        return u.module if isinstance(u, Sealed) else u


class Callbacks:
    """One callback or a list of them as one; `before` counts the arguments that come before the record."""

    def __init__(self, given: Callback | Sequence[Callback] | None, before: int = 0):
        each: list[Any] = [] if given is None else list(given) if isinstance(given, list | tuple) else [given]
        if wrong := [one for one in each if not callable(one)]:
            raise ValueError(f"callback must be a function, or a list of functions, got {type(wrong[0]).__name__}")
        if classes := [one.__name__ for one in each if isinstance(one, type)]:
            raise ValueError(f"callback takes an object, and {classes[0]} is a class: write {classes[0]}(…)")
        self.each = [(one, _required(one) > before + 1) for one in each]

    def __call__(self, *given: Any) -> str | None:
        """The status of a run that is to end, from the first who wishes it; everybody is told. `now` is given last."""
        wishes = [one(*(given if wants else given[:-1])) for one, wants in self.each]
        wish = next((word for word in wishes if word), None)
        return wish if wish is None or isinstance(wish, str) else "callback"

    def ended(self, solution: Any) -> None:
        """Tells those who want to know."""
        for one, _ in self.each:
            if callable(listener := getattr(one, "ended", None)):
                listener(solution)


def _required(function: Callback) -> int:
    """How many arguments a function must be given; 1 where it does not say."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)
