"""`solve_many`: several problems of one shape (other seeds, points, data), trained with one compiled program."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from jaxtyping import PRNGKeyArray, PyTree

from natgrad.backend.parallel import agree
from natgrad.backend.xla import on_cpu
from natgrad.batch import Batch, check_alike
from natgrad.gramian.choose import available_memory
from natgrad.history import Solution
from natgrad.options import size
from natgrad.problem import Problem
from natgrad.progress import Progress
from natgrad.solve import begin, check, check_start, compile_programs, planned_for, train
from natgrad.stepping import Stepper
from natgrad.stopping import Stop
from natgrad.training import Training

Callback = Callable[[int, dict[str, Any]], Any]
Checkpoint = Callable[[int, PyTree, Any], Any]


def solve_many(
    problems: Sequence[Problem],
    solver: Any,
    steps: int,
    *,
    keys: Sequence[PRNGKeyArray] | None = None,
    params: Sequence[PyTree] | None = None,
    resume: Sequence[Solution] | None = None,
    evaluate_every: int = 10,
    target_error: float | None = None,
    target_loss: float | None = None,
    time_limit: float | None = None,
    patience: int | None = None,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
    progress: bool = True,
    memory: int | float | str | None = None,
    group: int | None = None,
    cache: bool = True,
    at_once: bool | None = None,
) -> list[Solution]:
    """Trains several problems of one shape; each ends by itself, as in `ng.solve`, and the others go on.

        problems = [zoo.get("burgers").problem(jax.random.key(seed)) for seed in range(10)]
        solutions = ng.solve_many(problems, ng.NystromNGD(), steps=100)

    Arguments beyond those of `ng.solve`, whose `key`, `params` and `resume` are sequences here, one entry a problem:
        callback, checkpoint: called with the number of the problem first.
        memory: what a step of all problems may take, where they are taken at once.
        at_once: one step of all problems at a time, as one program; by default on all devices but processors, where
            the problems are trained one after the other. Then `time` counts the seconds of all of them together.
    """
    problems = list(problems)
    if not problems:
        raise ValueError("solve_many takes at least one problem, got none")
    for problem in problems:
        check(problem, solver, steps=steps, evaluate_every=evaluate_every, group=group)
    check_alike(problems)
    stop = Stop(target_error, target_loss, time_limit, patience)
    stop.suits(problems[0])
    starts = list(zip(*(_each(n, v, len(problems)) for n, v in _named(keys, params, resume)), strict=True))
    for problem, (_, place, before) in zip(problems, starts, strict=True):
        check_start(problem, place, before, callback=callback, checkpoint=checkpoint)
    at_once = (not on_cpu() if at_once is None else at_once) and len(problems) > 1
    planned = planned_for(problems[0], solver, _share(solver, memory, len(problems)) if at_once else memory)
    runs = [
        begin(problem, solver, planned, steps, evaluate_every, stop, start, cache)
        for problem, start in zip(problems, starts, strict=True)
    ]
    for run in runs:
        run.evaluate.program = runs[0].evaluate.program
    return (_at_once if at_once else _in_turn)(runs, callback, checkpoint, progress, group, cache)


def _in_turn(
    runs: Sequence[Training], callback: Callback | None, checkpoint: Checkpoint | None, progress: bool, group, cache
) -> list[Solution]:
    """One after the other; Ctrl-C ends the one it meets and leaves the rest where they are."""
    solutions: list[Solution] = []
    stepper: Stepper | None = None
    for index, run in enumerate(runs):
        hear, keep = (None if call is None else partial(call, index) for call in (callback, checkpoint))
        with Progress(run.problem, run.first, run.last, enabled=progress) as display:
            if solutions and solutions[-1].status == "interrupted":
                run.status = "interrupted"
            else:
                other = None if stepper is None else stepper.on(run.problem)
                stepper = train(run, other, hear, keep, display, group, cache)
            solutions.append(run.solution())
            display.finish(solutions[-1].status, run.records, solutions[-1].diagnosis)
    return solutions


def _at_once(
    runs: Sequence[Training], callback: Callback | None, checkpoint: Checkpoint | None, progress: bool, group, cache
) -> list[Solution]:
    """All in one program; shown is the first that is still on its way."""
    batch = None
    shown = Progress(runs[0].problem, runs[0].first, runs[0].last, enabled=progress)
    with shown as display:
        try:
            batch = Batch([r.problem for r in runs], runs[0].solver, [r.ahead for r in runs], group, cache)
            compile_programs(batch.program, runs, display)
            pace = None
            while any(run.left for run in runs):
                pace = _round(batch, runs, pace, callback, display)
                _settle(batch, runs)
                for index, run in enumerate(runs):
                    if checkpoint is not None and not run.status and run.count:
                        checkpoint(index, *run.ahead)
        except KeyboardInterrupt:
            for run in runs:
                run.status = run.status if run.status or not run.left else "interrupted"
        _settle(batch, runs)
        solutions = [run.solution() for run in runs]
        display.finish(solutions[0].status, runs[0].records, solutions[0].diagnosis)
    return solutions


def _round(
    batch: Batch, runs: Sequence[Training], pace: float | None, callback: Callback | None, display: Progress
) -> float:
    """A group of steps of all that are on their way; the seconds a step took."""
    counts, tick = [min(batch.pace.count(pace), run.left) for run in runs], time.perf_counter()
    reports = batch(counts)
    seconds = agree(time.perf_counter() - tick)
    first = next(index for index, count in enumerate(counts) if count)
    for index, run in enumerate(runs):
        if not counts[index]:
            continue
        for record in run.follow(batch.place(index), reports[index], run.clock + seconds):
            if index == first:
                display.update(record)
            if callback is not None and (wish := callback(index, record)):
                run.status = wish if isinstance(wish, str) else "callback"
    return seconds / max(counts)


def _settle(batch: Batch | None, runs: Sequence[Training]) -> None:
    """Takes the steps again that count, of problems that were stopped amid a group."""
    cuts = [run.cut for run in runs]
    if batch is not None and any(cuts):
        for run, cut, place in zip(runs, cuts, batch.again(cuts), strict=True):
            if cut:
                run.settle(place)


def _named(keys: Any, params: Any, resume: Any) -> list[tuple[str, Any]]:
    return [("keys", keys), ("params", params), ("resume", resume)]


def _each(name: str, values: Any, count: int) -> list[Any]:
    """One value a problem."""
    if values is None:
        return [None] * count
    values = list(values)
    if len(values) != count:
        raise ValueError(f"{name} must have one entry for each of the {count} problems, got {len(values)}")
    return values


def _share(solver: Any, memory: int | float | str | None, count: int) -> int:
    """The bytes that each of so many problems may take."""
    own = getattr(solver, "memory", None) if memory is None else memory
    return (available_memory() if own is None else size("memory", own)) // count
