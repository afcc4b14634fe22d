"""Several problems trained one after the other, each from the parameters of the one before: one history, one display.

What is to come follows from what was, stage by stage, and that is all in the records: a chain that was interrupted is
walked through again up to the stage it was in, without training, and goes on there with the same bits.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Protocol

import jax
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.callbacks import Callbacks
from natgrad.diagnosis import diagnose
from natgrad.history import History, Solution
from natgrad.problem import Problem
from natgrad.progress import Progress
from natgrad.solve import begin, check, check_start, planned_for, train
from natgrad.stopping import Stop
from natgrad.training import Training

#: How a stage may end before its last step, with the next one to follow.
GOES_ON = ("target error", "target loss", "converged", "stagnation", "no descent")
Record = dict[str, Any]
Checkpoint = Callable[[tuple[PyTree, ...], Any], Any]


@dataclass(frozen=True)
class Stage:
    """One problem of several: how it is built from the solution before, its most steps, and what its records say."""

    labels: Mapping[str, Any]
    build: Callable[[Callable | None], Problem]
    steps: int


@dataclass(frozen=True)
class Ended:
    """A stage that is over; where `factor` is less than one it was in vain."""

    stage: Stage
    records: Sequence[Record]
    factor: float
    params: PyTree
    u: Callable
    errors: Mapping[str, float]
    squares: Mapping[str, float] | None  # of the exact solution
    diagnosis: tuple[str, ...]


class Course(Protocol):
    """What stages there are, and what comes of them."""

    #: What one of them is called, in sentences.
    name: str

    def next(self, ended: Sequence[Ended]) -> Stage | None:
        """The stage after these; None after the last."""

    def judge(self, stage: Stage, records: Sequence[Record], largest_loss: float) -> float:
        """Less than one where a stage was in vain; `largest_loss` is that of all stages so far."""

    def left(self, ended: Sequence[Ended]) -> int:
        """How many stages are to come, as far as is known."""

    def solution(self, kept: Sequence[Ended]) -> tuple[Callable, dict[str, float]]:
        """The function that the stages make up, and its errors."""


@dataclass(frozen=True)
class Limits:
    """What ends a stage (`time_limit`: what ends all of them), and how often it is evaluated."""

    every: int = 10
    target_error: float | None = None
    target_loss: float | None = None
    time_limit: float | None = None
    patience: int | None = None

    def stop(self, elapsed: float) -> Stop:
        """The limits of a stage that begins `elapsed` seconds after the first."""
        left = None if self.time_limit is None else max(self.time_limit - elapsed, 1e-9)
        return Stop(self.target_error, self.target_loss, left, self.patience)


@dataclass(frozen=True)
class Calls:
    """What the caller wants to hear."""

    callback: Callbacks
    checkpoint: Checkpoint | None = None
    ended: Callable[[int, Solution], Any] | None = None


@dataclass
class Chain:
    """All stages of a course, trained; `chain(params, resume)` gives the solution."""

    course: Course
    solver: Any
    key: PRNGKeyArray | None
    limits: Limits
    calls: Calls
    progress: bool
    memory: int | float | str | None
    group: int | None
    cache: bool
    ended: list[Ended] = field(default_factory=list)
    planned: Any = None
    last: Solution | None = None  # of the stage trained last
    display: Progress | None = None
    compile_time: float = 0.0
    compiled: str = ""  # where the first program came from
    begun: float = 0.0
    status: str | None = None

    def __call__(self, params: PyTree | None, resume: Solution | None) -> Solution:
        records = [] if resume is None else resume.history.records
        self.begun = records[-1]["time"] if records else 0.0
        groups = [list(group) for _, group in groupby(records, self._labels)]
        places = [] if resume is None else list(resume.params)
        with ExitStack() as stack:
            while self.status is None and (stage := self.course.next(self.ended)) is not None:
                try:
                    problem = self._built(stage)
                except KeyboardInterrupt:
                    if not self.ended:
                        raise
                    self.status = "interrupted"
                    break
                known = groups.pop(0) if groups else []
                self._fits(stage, known)
                if known and resume is not None and (groups or self._complete(stage, known)):
                    self._pass(stage, problem, known, places)
                    continue
                before = None if not known else self._before(resume, problem, places.pop(0), known)
                self._train(stack, stage, problem, params, before)
            if groups:
                more = dict(self._labels(groups[0][0]))
                raise ValueError(f"resume has a {self.course.name} that is not asked for: {more}")
            solution = self._solution(resume)
        self.calls.callback.ended(solution)
        return solution

    @property
    def kept(self) -> list[Ended]:
        return [one for one in self.ended if one.factor >= 1]

    @property
    def records(self) -> list[Record]:
        return [record for one in self.ended for record in one.records]

    def _labels(self, record: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple((name, record.get(name)) for name in self.course.next([]).labels)  # type: ignore[union-attr]

    def _fits(self, stage: Stage, known: Sequence[Record]) -> None:
        """ValueError where the run to go on with had another stage here."""
        if known and dict(self._labels(known[0])) != dict(stage.labels):
            was, now = dict(self._labels(known[0])), dict(stage.labels)
            raise ValueError(f"resume goes on as it began, but a {self.course.name} is {now} and was {was}")

    def _built(self, stage: Stage) -> Problem:
        """The problem of a stage; the solver is planned for the first one, and for others where they differ."""
        kept = self.kept
        problem = stage.build(kept[-1].u if kept else None)
        check(problem, self.solver, steps=stage.steps, evaluate_every=self.limits.every, group=self.group)
        self.limits.stop(0.0).suits(problem)
        first = self.planned is None
        self.planned = planned_for(problem, self.solver if first else self.planned, self.memory if first else None)
        return problem

    def _warm(self, problem: Problem, params: PyTree | None) -> PyTree:
        """Where a stage begins: at the parameters of the one before, where they fit, else at its own."""
        kept = self.kept
        if not kept:
            check_start(problem, params, None)
            return problem.params if params is None else params
        return _placed(kept[-1].params, problem, problem.params)

    def _before(self, resume: Any, problem: Problem, params: PyTree, known: list[Record]) -> Solution:
        """Where a stage was left."""
        return replace(resume, params=_placed(params, problem, params), history=History(known))

    def _train(
        self, stack: ExitStack, stage: Stage, problem: Problem, params: PyTree | None, before: Solution | None
    ) -> None:
        """One stage, from its beginning or from where it was interrupted."""
        records, kept = self.records, tuple(one.params for one in self.kept)
        clock = records[-1]["time"] if records else 0.0
        own = [] if before is None else before.history.records
        key = jax.random.fold_in(host.key(host.SOLVER) if self.key is None else self.key, len(self.ended))
        warm = None if before is not None else self._warm(problem, params)
        stop = self.limits.stop((own[-1]["time"] if own else clock) - self.begun)
        run = begin(
            problem, self.solver, self.planned, stage.steps - len(own), self.limits.every, stop, (key, warm, before),
            self.cache, offset=len(records), clock=clock, labels=stage.labels,
        )  # fmt: skip
        display, save = self._shown(stack, run, stage), self.calls.checkpoint
        keep = None if save is None else lambda params, state: save((*kept, params), state)
        train(run, None, self.calls.callback, keep, display, self.group, self.cache)
        solution = run.solution()
        self.compile_time += run.compile_time
        self.compiled = self.compiled or run.compiled
        self.status = None if run.status in (None, *GOES_ON) else run.status
        if self.ended and not run.records:
            return  # interrupted before its first step
        self.last = solution
        if self.calls.ended is not None:
            self.calls.ended(len(self.ended), solution)
        self._end(stage, problem, run.records, solution.params, solution.diagnosis)

    def _shown(self, stack: ExitStack, run: Training, stage: Stage) -> Progress:
        """The display, which all stages share."""
        before = run.offset + run.first
        if self.display is None:
            display = Progress(run.problem, before, run.offset + run.last, enabled=self.progress)
            self.display = stack.enter_context(display)
        self.display.until(run.offset + run.last + (self.course.left(self.ended) - 1) * stage.steps)
        return self.display

    def _pass(self, stage: Stage, problem: Problem, records: list[Record], places: list[PyTree]) -> None:
        """A stage of the run that goes on, which was over."""
        kept = self._judge(stage, records) >= 1
        own = problem.params
        params = _placed(places.pop(0), problem, own) if kept else own
        self._end(stage, problem, records, params, diagnose(records, problem, self.planned))

    def _complete(self, stage: Stage, records: Sequence[Record]) -> bool:
        """Whether the last stage of a run that goes on has nothing left to do."""
        stop = replace(self.limits.stop(0.0), time_limit=None)
        return len(records) >= stage.steps or stop(records, 0.0) is not None

    def _judge(self, stage: Stage, records: Sequence[Record]) -> float:
        if self.status is not None or not records:  # interrupted: it is the last, in vain or not
            return 1.0
        return self.course.judge(stage, records, max(record["loss"] for record in [*self.records, *records]))

    def _end(
        self, stage: Stage, problem: Problem, records: list[Record], params: PyTree, diagnosis: tuple[str, ...]
    ) -> None:
        """Puts a stage to those that ended. What others need of it lies on no particular device."""
        factor = self._judge(stage, records)
        params = jax.tree.map(lambda leaf: host.array(np.asarray(leaf)), params)
        squares = getattr(problem.norms, "squares", None)
        errors = records[-1]["errors"] if records else {}
        self.ended.append(
            Ended(
                stage, records, factor, params, problem.solution(params), errors, squares and squares(), diagnosis
            )
        )  # fmt: skip

    def _solution(self, resume: Solution | None) -> Solution:
        """All of it."""
        kept, last, records = self.kept, self.last, self.records
        of: Any = resume if last is None else last  # without a stage to train there was a run to go on with
        status = self.status or (of.status if last is not None or of.status in GOES_ON else "steps")
        u, errors = self.course.solution(kept)
        sentences = [f"{_called(self.course, one)}: {line}" for one in kept for line in one.diagnosis]
        if self.display is not None:
            self.display.finish(status, records, sentences)
        return replace(
            of, u=u, params=tuple(one.params for one in kept), history=History(records), errors=errors, status=status,
            steps=len(records), time=records[-1]["time"] if records else 0.0, compile_time=self.compile_time,
            compiled=self.compiled or of.compiled,
            diagnosis=tuple(sentences), loss=records[-1]["loss"] if records else math.nan,
        )  # fmt: skip


def _placed(params: PyTree, problem: Problem, otherwise: PyTree) -> PyTree:
    """Trained arrays in the problem's own network, whose fixed parts may be others (a lift, say), where they fit."""
    arrays, (own, structure) = jax.tree.leaves(params), jax.tree.flatten(problem.params)
    shapes = lambda leaves: [(leaf.shape, leaf.dtype) for leaf in leaves]
    return jax.tree.unflatten(structure, arrays) if shapes(arrays) == shapes(own) else otherwise


def _called(course: Course, one: Ended) -> str:
    return f"{course.name} {next(iter(one.stage.labels.values())):.6g}"


def steps_per_stage(steps: Any, count: int) -> tuple[int, ...]:
    """The steps of each stage, of one number for all or one for each."""
    known = tuple(steps) if isinstance(steps, list | tuple) else (steps,) * count
    if len(known) != count:
        raise ValueError(f"steps must be one number, or one for each of {count}, got {len(known)}")
    return known
