"""`march`: time windows, one network each, every one begun where the last one ended."""

from collections.abc import Callable, Sequence
from typing import Any

from jaxtyping import PRNGKeyArray, PyTree

from natgrad.callbacks import Callback, Callbacks
from natgrad.history import Solution
from natgrad.problem import Problem
from natgrad.solve import check_start
from natgrad.stages.chain import Calls, Chain, Limits
from natgrad.stages.times import course


def march(
    problem: Callable[[float, float, Callable | None], Problem],
    solver: Any,
    times: Sequence[float] | int | str,
    steps: int | Sequence[int],
    *,
    interval: tuple[float, float] | None = None,
    tolerance: float | None = None,
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
    """Trains an evolution equation window by window; Ctrl-C ends it early and keeps what there is.

        solution = ng.march(heat, ng.NystromNGD(), times=4, steps=50)  # heat = ng.Evolution(…)
        solution.u(jnp.array([0.3, 0.5]))  # at t = 0.3, x = 0.5

    The solution is one function of (t, x…): at a joint it is the later window's. Each record of the history has
    `window`, `t0` and `t1`, and the errors of its window; `solution.errors` are those over all windows. `params` has
    the parameters of all windows, a tuple; `state` is that of the last one.

    Arguments beyond those of `ng.solve`:
        problem: an `ng.Evolution`, or any function `(t0, t1, start)` that gives the problem of a window. `start` is the
            trained network of the window before, a function of points (t, x…), and None in the first window.
        times: the ends of the windows t₀ < … < t_n; or how many windows of equal length there are; or "auto": a window
            that is not solved in its steps is halved, and after an easy one they get longer.
        steps: the most steps of a window, one number for all, or a sequence with a number for each.
        interval: the first and the last time, where `times` does not say them and `problem` has none.
        tolerance: with "auto" a window is solved when its loss at other points is at most this part of the largest
            loss; 1e-6 by default.
        params: where the first window begins; the others begin where the one before ended.
        resume: the solution of an earlier march to go on from, in whatever window it was left.
        target_error, target_loss, patience: end a window. `time_limit` ends all.
        callback: as in `ng.solve`; a true value ends all.
        checkpoint: called with the parameters of all windows so far, a tuple, and the state.
        ended: called with the number of a window, from 0, and its solution as soon as it has ended.
    """
    if isinstance(problem, Problem) or not callable(problem):
        raise ValueError(
            f"march takes an ng.Evolution or a function (t0, t1, start) -> problem, got {type(problem).__name__}"
        )
    way = course(problem, times, steps, interval, tolerance)
    check_start(None, resume and params, resume, checkpoint=checkpoint, ended=ended)  # type: ignore[arg-type]
    chain = Chain(
        way, solver, key, Limits(evaluate_every, target_error, target_loss, time_limit, patience),
        Calls(Callbacks(callback), checkpoint, ended), progress, memory, group, cache,
    )  # fmt: skip
    return chain(params, resume)
