"""`solve_many`: several problems of one shape (other seeds, points, data), trained with one compiled program."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from jaxtyping import PRNGKeyArray, PyTree

from natgrad.backend.parallel import agree
from natgrad.backend.xla import on_cpu
from natgrad.batch import Batch
from natgrad.batch import check_alike as check_alike
from natgrad.callbacks import Callback, Callbacks
from natgrad.gramian.choose import available_memory
from natgrad.history import Solution
from natgrad.options import parse_bytes
from natgrad.problem import Problem
from natgrad.progress import Progress
from natgrad.solve import begin, check, check_start, compile_programs, planned_for, train
from natgrad.stepping import Stepper
from natgrad.stopping import STOPPED, Stop
from natgrad.training import Training

Checkpoint = Callable[[int, PyTree, Any], Any]
Ended = Callable[[int, Solution], Any]


class Calls(NamedTuple):
    """What the caller wants to hear; each is called with the number of the problem first."""

    callback: Callbacks
    checkpoint: Checkpoint | None
    ended: Ended | None

    def close(self, index: int, run: Training) -> Solution:
        """The solution of a run that has ended, told to whoever listens."""
        solution = run.solution()
        if self.ended is not None:
            self.ended(index, solution)
        return solution


def solve_many(
    problems: Sequence[Problem],
    solver: Any,
    steps: int | Sequence[int],
    *,
    keys: Sequence[PRNGKeyArray] | None = None,
    params: Sequence[PyTree] | None = None,
    resume: Sequence[Solution | None] | None = None,
    evaluate_every: int = 10,
    target_error: float | None = None,
    target_loss: float | None = None,
    time_limit: float | Sequence[float | None] | None = None,
    patience: int | None = None,
    callback: Callback | Sequence[Callback] | None = None,
    checkpoint: Checkpoint | None = None,
    ended: Ended | None = None,
    progress: bool = True,
    memory: int | float | str | None = None,
    group: int | None = None,
    cache: bool = True,
    at_once: bool | None = None,
) -> list[Solution]:
    """Trains several problems of one shape; each ends by itself, as in `ng.solve`, and the others go on.

        problems = [zoo.get("burgers").problem(jax.random.key(seed)) for seed in range(10)]
        solutions = ng.solve_many(problems, ng.NystromNGD(), steps=100)

    `keys`, `params` and `resume` are sequences with one entry per problem. Arguments beyond those of `ng.solve`:
        steps, time_limit: one for all, or one entry per problem.
        callback, checkpoint: called with the number of the problem first.
        ended: called with the number of a problem and its solution as soon as it has ended.
        memory: what a step of all problems may take, where they are taken at once.
        at_once: one step of all problems at a time, as one program; by default on all devices but processors, where
            the problems are trained one after the other. Then `time` counts the seconds of all of them together.
    """
    problems, calls = list(problems), Calls(Callbacks(callback, before=1), checkpoint, ended)
    starts = _each(len(problems), keys=keys, params=params, resume=resume)
    ends = _each(len(problems), steps=_one_for_each(steps, problems), time_limit=_one_for_each(time_limit, problems))
    stops = [Stop(target_error, target_loss, limit, patience) for _, limit in ends]
    _check(
        problems, solver, starts, stops, calls, evaluate_every=evaluate_every, group=group, steps=[n for n, _ in ends]
    )
    at_once = taken_at_once(len(problems)) if at_once is None else at_once and len(problems) > 1
    planned = planned_for(problems[0], solver, _share(solver, memory, len(problems)) if at_once else memory)
    runs = [
        begin(problem, solver, planned, count, evaluate_every, stop, start, cache)
        for problem, (count, _), stop, start in zip(problems, ends, stops, starts, strict=True)
    ]
    for run in runs:
        run.evaluate.program = runs[0].evaluate.program
    return (_at_once if at_once else _in_turn)(runs, calls, progress, group, cache)


def taken_at_once(count: int) -> bool:
    """Whether `count` problems are taken at once by default: not by a processor, which one step keeps busy."""
    return count > 1 and not on_cpu()


def _in_turn(runs: Sequence[Training], calls: Calls, progress: bool, group: int | None, cache: bool) -> list[Solution]:
    """One after the other; Ctrl-C or SIGTERM ends the one it meets and leaves the rest where they are."""
    solutions: list[Solution] = []
    stepper: Stepper | None = None
    for index, run in enumerate(runs):
        hear, keep = partial(calls.callback, index), calls.checkpoint and partial(calls.checkpoint, index)
        with Progress(run.problem, run.first, run.last, enabled=progress) as display:
            if solutions and solutions[-1].status in STOPPED:
                run.status = solutions[-1].status
            else:
                other = None if stepper is None else stepper.on(run.problem)
                stepper = train(run, other, hear, keep, display, group, cache)
            solutions.append(calls.close(index, run))
            display.finish(solutions[-1].status, run.records, solutions[-1].diagnosis)
    return solutions


def _at_once(runs: Sequence[Training], calls: Calls, progress: bool, group: int | None, cache: bool) -> list[Solution]:
    """All in one program; shown is the first that is still on its way."""
    batch = None
    solutions: dict[int, Solution] = {}
    shown = Progress(runs[0].problem, runs[0].first, runs[0].last, enabled=progress)
    with shown as display:
        try:
            batch = Batch([r.problem for r in runs], runs[0].solver, [r.ahead for r in runs], group, cache)
            compile_programs(batch.program, runs, display)
            pace = None
            while moving := [index for index, run in enumerate(runs) if run.left]:
                pace = _round(batch, runs, pace, calls.callback, display)
                _take_cut_steps_again(batch, runs)
                for index in moving:
                    if calls.checkpoint is not None and not runs[index].status:
                        calls.checkpoint(index, *runs[index].ahead)
                    if not runs[index].left:
                        solutions[index] = calls.close(index, runs[index])
        except KeyboardInterrupt:
            for run in runs:
                run.status = run.status if run.status or not run.left else "interrupted"
        _take_cut_steps_again(batch, runs)
        for index in sorted({*range(len(runs))} - {*solutions}):
            solutions[index] = calls.close(index, runs[index])
        display.finish(solutions[0].status, runs[0].records, solutions[0].diagnosis)
    return [solutions[index] for index in range(len(runs))]


def _round(batch: Batch, runs: Sequence[Training], pace: float | None, hear: Callbacks, display: Progress) -> float:
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
            again = lambda count, index=index: batch.again([count * (i == index) for i in range(len(runs))])[index]
            run.status = hear(index, record, run.now(again)) or run.status
    return seconds / max(counts)


def _take_cut_steps_again(batch: Batch | None, runs: Sequence[Training]) -> None:
    """Takes the steps again that count, of problems that were stopped amid a group."""
    cuts = [run.cut for run in runs]
    if batch is not None and any(cuts):
        for run, cut, place in zip(runs, cuts, batch.again(cuts), strict=True):
            if cut:
                run.move_to(place)


def _check(
    problems: Sequence[Problem], solver: Any, starts: Sequence[Any], stops: Sequence[Stop], calls: Calls, *,
    steps: Sequence[int], evaluate_every: int, group: int | None,
) -> None:  # fmt: skip
    """ValueError where these cannot be trained, or not together."""
    if not problems:
        raise ValueError("solve_many takes at least one problem, got none")
    for problem, count in zip(problems, steps, strict=True):
        check(problem, solver, steps=count, evaluate_every=evaluate_every, group=group)
    check_alike(problems)
    for problem, stop, (_, place, before) in zip(problems, stops, starts, strict=True):
        stop.suits(problem)
        check_start(problem, place, before, **calls._asdict())


def _one_for_each(value: Any, problems: Sequence[Problem]) -> Any:
    """One value for each problem, where one was given for all."""
    return value if isinstance(value, list | tuple) else [value] * len(problems)


def _each(count: int, **given: Any) -> list[tuple[Any, ...]]:
    """The entries of each problem in the given sequences; None stands for a sequence that was not given."""
    columns = []
    for name, values in given.items():
        columns.append([None] * count if values is None else list(values))
        if len(columns[-1]) != count:
            raise ValueError(f"{name} must have one entry for each of the {count} problems, got {len(columns[-1])}")
    return list(zip(*columns, strict=True))


def _share(solver: Any, memory: int | float | str | None, count: int) -> int:
    """The bytes that each of `count` problems may take."""
    own = getattr(solver, "memory", None) if memory is None else memory
    return (available_memory() if own is None else parse_bytes("memory", own)) // count
