"""The training of runs: history, checkpoints and signals around `natgrad.solve_many`."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from natgrad.backend.parallel import agree, first
from natgrad.callbacks import Callbacks, Now
from natgrad.experiment.checkpoint import Writer
from natgrad.experiment.config import Prepared
from natgrad.experiment.journal import Journal
from natgrad.experiment.staged import values_in_turn
from natgrad.experiment.statuses import SIGNALS
from natgrad.many import solve_many, taken_at_once
from natgrad.solve import Solution, evaluated
from natgrad.stages import continuation, march
from natgrad.stopping import STOPPED


class Opened:
    """A run whose files are open: its history and checkpoints as it is trained; without a journal it writes nothing."""

    def __init__(
        self,
        prepared: Prepared,
        key: Any,
        start: Solution | None,
        journal: Journal | None,
        writer: Writer,
        trackers: Sequence[Any] = (),
    ):
        self.prepared, self.key, self.start, self.journal, self.writer = prepared, key, start, journal, writer
        self.trackers = Callbacks(trackers)
        self.now: dict[str, Any] = {"step": 0, "time": 0.0, "evaluated": False, "stopped": False}
        self.done, self.begun = (start.steps, start.time) if start else (0, 0.0)
        if start is not None and self.done:
            self.now.update(start.history.records[-1])
            self.now["evaluated"] = evaluated(self.now)

    @property
    def steps(self) -> int:
        """Those that are left."""
        return self.prepared.record["steps"] - self.done

    @property
    def seconds(self) -> float | None:
        """Those that are left; None where there is no limit."""
        limit = self.prepared.record["time_limit"]
        return None if limit is None else limit - self.begun

    def hear(self, entry: dict[str, Any], place: Now, asked: Callable[[], int]) -> str | None:
        """Takes the record of a step; `asked` says which signal asks to stop after it, if one does."""
        self.trackers(entry, place)
        self.now.update(entry)
        self.now["evaluated"] = evaluated(entry)
        if self.journal is not None:
            self.journal.append(entry)
        number = int(agree(asked()))
        self.now["stopped"] = number > 0
        return SIGNALS[signal.Signals(number)] if number else None

    def save(self, params: Any, state: Any, status: str | None = None) -> None:
        """Writes a checkpoint if one is due; at the end, with a status, always."""
        now = self.now
        if self.journal is not None and (status is not None or self.writer.due(now["time"] - self.begun)):
            self.writer.save(now["step"], now["time"], status, self.journal.mark(), (params, state))

    def amend(self, solution: Solution) -> None:
        """The last record, which was evaluated once the run, or its window, had ended."""
        finished = solution.status not in STOPPED
        out_of_turn = solution.steps and not self.now["evaluated"] and evaluated(solution.history.records[-1])
        if self.journal is not None and finished and out_of_turn:
            self.journal.amend(solution.history.records[-1])
            self.now["evaluated"] = True

    def end(self, solution: Solution) -> None:
        """The last record and the last checkpoint."""
        self.amend(solution)
        if solution.status not in STOPPED or self.now["stopped"]:
            self.save(solution.params, solution.state, solution.status)
        self.trackers.ended(solution)


def train(runs: Sequence[Opened], quiet: bool, ended: Callable[[int, Solution], Any]) -> None:
    """Trains runs of one shape; `ended` is called with the number of each and its solution once both are saved."""
    with interruptions() as asked:

        def end(index: int, solution: Solution) -> None:
            runs[index].end(solution)
            ended(index, solution)

        if runs[0].prepared.stages is not None:
            for index, run in enumerate(runs):
                end(index, _in_stages(run, quiet, asked))
            return
        problems, record = [run.prepared.problem for run in runs], runs[0].prepared.record
        solve_many(
            problems,
            runs[0].prepared.solver,
            [run.steps for run in runs],
            keys=[run.key for run in runs],
            resume=[run.start for run in runs],
            evaluate_every=record["evaluate_every"],
            target_error=record["target_error"],
            time_limit=[run.seconds for run in runs],
            callback=lambda index, entry, place: runs[index].hear(entry, place, asked),
            checkpoint=lambda index, params, state: runs[index].save(params, state),
            ended=end,
            progress=not quiet,
            memory=sys.maxsize if taken_at_once(len(runs)) else None,  # the plan is made, each run's share in mind
        )


def _in_stages(run: Opened, quiet: bool, asked: Callable[[], int]) -> Solution:
    """The training of a run in windows of time, or of one that takes the values of an option in turn."""
    record, stages = run.prepared.record, cast(Callable, run.prepared.stages)
    if "windows" in record:
        train = partial(march, stages, times=record["windows"])
    else:
        train = partial(continuation, stages, values_in_turn(record))
    return train(
        solver=run.prepared.solver,
        steps=record["steps"],
        key=run.key,
        resume=run.start,
        evaluate_every=record["evaluate_every"],
        target_error=record["target_error"],
        time_limit=run.seconds,
        callback=lambda entry, place: run.hear(entry, place, asked),
        checkpoint=run.save,
        ended=lambda index, solution: run.amend(solution),
        progress=not quiet,
    )


@contextmanager
def interruptions() -> Iterator[Callable[[], int]]:
    """Ctrl-C and SIGTERM end a run after the step it is in; after either, Ctrl-C ends it at once.

    A second SIGTERM changes nothing: launchers send it to a process twice, once each and once to all.
    """
    got: list[int] = []

    def handler(number: int, frame: Any) -> None:
        got.append(number)
        if len(got) == 1 and first():
            print("natgrad: stopping after this step; Ctrl-C stops at once", file=sys.stderr, flush=True)
        elif len(got) > 1 and number == signal.SIGINT:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield lambda: max(got, default=0)
    finally:
        for number, old in before.items():
            signal.signal(number, old)
