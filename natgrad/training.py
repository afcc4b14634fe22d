"""One problem in training: the steps it takes, what is known of each, and where it ends.

Time counts stepping alone: compilation, error evaluation, display and callbacks are outside the clock. Where a call
takes several steps, they share its seconds, and a run that is to stop amid them takes those up to there again.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import jax
from jaxtyping import PyTree

from natgrad.backend.parallel import agree, everywhere
from natgrad.backend.programs import Program
from natgrad.callbacks import Now
from natgrad.diagnosis import diagnose
from natgrad.history import History, Solution, evaluated
from natgrad.optim.resample import present
from natgrad.problem import Problem
from natgrad.resuming import Origin
from natgrad.stepping import Place, Stepper, without_weak_types
from natgrad.stopping import STOPPED, Stop

# In the record of a step that was not evaluated.
NOTHING = {"validation": math.nan, "training": math.nan, "elsewhere": math.nan, "size": math.nan}
Record = dict[str, Any]


class Training:
    """A run of `solver` on `problem`, `steps` further from `place`, with the records of the steps before.

    Of several stages it is one: there were `offset` steps before its own, the clock stands at `clock`, and each
    of its records has its `labels`.
    After a group of steps `ahead` is where it ended, and `behind` where it began, after the step `start`.
    """

    def __init__(
        self,
        problem: Problem,
        solver: Any,
        place: Place,
        records: list[Record],
        *,
        steps: int,
        every: int,
        stop: Stop,
        origin: Origin,
        cache: bool = True,
        offset: int = 0,
        clock: float = 0.0,
        labels: Mapping[str, Any] | None = None,
    ):
        self.problem, self.solver, self.stop, self.origin = problem, solver, stop, origin
        self.offset, self.labels = offset, dict(labels or {})
        params, state = jax.tree.map(without_weak_types, place)
        self.behind = self.ahead = params, state
        self.records, self.start, self.count = records, len(records), 0
        self.first, self.last, self.every = len(records), len(records) + steps, every
        self.begun = self.clock = records[-1]["time"] if records else clock
        self.loss = records[-1]["loss"] if records else math.nan
        self.status: str | None = None
        self.compile_time, self.compiled = 0.0, "new"
        self.evaluate = Evaluation(problem, params, state, cache)

    @property
    def done(self) -> int:
        """The steps taken in this stage, those of earlier runs included."""
        return len(self.records)

    @property
    def left(self) -> int:
        """The steps up to the next evaluation or the end; 0 where it is over."""
        return 0 if self.status else min(self.last - self.done, self.every - self.done % self.every)

    def steps(self, stepper: Stepper, checkpoint: Callable[[PyTree, Any], Any] | None = None) -> Iterator[Record]:
        """The record of each step, until the last one or until there is a `status`, which the caller may set, too."""
        pace: float | None = None
        while self.left:
            count, tick = min(stepper.pace.count(pace), self.left), time.perf_counter()
            ahead, reports = stepper(self.ahead, count)
            end = agree(self.clock + time.perf_counter() - tick)
            pace = (end - self.clock) / count
            yield from self.follow(ahead, reports, end)
            if checkpoint is not None and not self.status:
                checkpoint(*self.ahead)

    def follow(self, ahead: Place, reports: list[Record], end: float) -> Iterator[Record]:
        """The records of a group of steps that ended `ahead`, the clock at `end`; the last one is that of a stop."""
        self.behind, self.ahead, self.start, self.count = self.ahead, ahead, self.done, len(reports)
        pace = (end - self.clock) / self.count
        for number, report in enumerate(reports, 1):
            self.loss = float(report.pop("loss") + report["change"])
            if not math.isfinite(self.loss):
                self.status = "not finite"
                return
            step, self.clock = self.start + number, end - (self.count - number) * pace
            seen = self.evaluate(*ahead, self.loss) if self._due(step) else NOTHING
            record = {"step": self.offset + step, "time": self.clock, "loss": self.loss, "errors": {}, **seen, **report}
            record |= self.labels
            self.records.append(record)
            self.status = self.stop(self.records, self.clock - self.begun)
            yield record
            if self.status:
                return

    @property
    def cut(self) -> int:
        """The steps of the last group that count, where it was stopped amid it and `ahead` is too far; else 0."""
        kept = self.done - self.start
        return kept if kept < self.count else 0

    def now(self, again: Callable[[int], Place]) -> Now:
        """Where it is after the last record; `again(n)` takes n steps of the last call once more."""
        ahead, kept, whole = self.ahead, self.done - self.start, self.done - self.start == self.count
        return Now(self.problem, self._due(self.done), lambda: (ahead if whole else again(kept))[0])

    def _due(self, step: int) -> bool:
        """Whether a step is evaluated, and then the last of its call."""
        return step % self.every == 0 or step == self.last

    def move_to(self, place: Place) -> None:
        """Says where the last record left a training that was cut."""
        self.ahead, self.count = place, self.done - self.start

    def solution(self) -> Solution:
        """What there is, evaluated if it was not."""
        params, state = self.ahead if self.done - self.start == self.count else self.behind
        status = self.status or "steps"
        final: Record = self.records[-1] if self.records else {"errors": {}, **NOTHING}
        if self.records or status not in STOPPED:  # else nothing was done, and nothing is worth waiting for
            if not math.isfinite(self.loss):
                self.loss = self.evaluate.loss(params, state)
            if not evaluated(final):
                final.update(self.evaluate(params, state, self.loss))
        return Solution(
            u=self.problem.solution(params),
            params=params,
            state=state,
            history=History(self.records),
            loss=self.loss,
            errors=final["errors"],
            status=status,
            steps=self.done,
            time=self.clock,
            compile_time=self.compile_time,
            validation=final.get("validation", math.nan),
            diagnosis=diagnose(self.records, self.problem, self.solver),
            compiled=self.compiled,
            origin=self.origin,
        )


class Evaluation:
    """What is evaluated now and then: errors and the validation loss, by one program."""

    def __init__(self, problem: Problem, params: PyTree, state: PyTree, cache: bool):
        self.problem, self.cache = problem, cache

        def both(problem: Problem, params: PyTree, state: PyTree) -> Any:
            return problem.errors(params), present(problem, state).validate(params) | problem.solution_size(params)

        some = problem.norms is not None or problem.validated
        self.program = self._program(both, params, state) if some else None

    def __call__(self, params: PyTree, state: PyTree, loss: float) -> Record:
        """What an evaluation adds to the record of a step with this loss."""
        if self.program is None:
            return {"errors": {}, **NOTHING}
        errors, checks = map(_floats, self.program(self.problem, params, self._weights(state)))
        if "validation" in checks:  # fresh points: the loss of the step's own points is what the display shows
            checks["training"] = min(loss, checks.get("training", loss))
        return {"errors": errors, **NOTHING, **checks}

    def loss(self, params: PyTree, state: PyTree) -> float:
        """L(θ), where no step has told it."""
        alone = lambda problem, params, state: present(problem, state).loss(params)
        return float(self._program(alone, params, state)(self.problem, params, self._weights(state)))

    def _program(self, fn: Callable, params: PyTree, state: PyTree) -> Program:
        return Program(partial(everywhere, fn), self.problem, params, self._weights(state), cache=self.cache)

    def _weights(self, state: PyTree) -> PyTree:
        """What an evaluation needs of the state: weights if it has found them, points if it has drawn them."""
        return state if self.problem.auto or self.problem.moving else None


def _floats(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}
