"""The solve of a run: history, checkpoints and signals around `natgrad.solve`."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from natgrad.backend.parallel import agree
from natgrad.experiment.checkpoint import Writer
from natgrad.experiment.config import Prepared
from natgrad.experiment.journal import Journal
from natgrad.solve import Solution, evaluated, solve


def train(
    prepared: Prepared, key: Any, start: Solution | None, journal: Journal | None, writer: Writer, quiet: bool
) -> Solution:
    """Trains from `start` on; a process without a journal writes nothing."""
    record = prepared.record
    now: dict[str, Any] = {"step": 0, "time": 0.0, "evaluated": False}
    done, begun = (start.steps, start.time) if start else (0, 0.0)
    if start is not None and done:
        now.update(start.history.records[-1])
        now["evaluated"] = evaluated(now)

    def save(params: Any, state: Any, status: str | None = None) -> None:
        if journal is not None and (status is not None or writer.due(now["time"] - begun)):
            writer.save(now["step"], now["time"], status, journal.mark(), (params, state))

    with interruptions() as asked:

        def callback(entry: dict[str, Any]) -> str | None:
            now.update(entry)
            now["evaluated"] = evaluated(entry)
            if journal is not None:
                journal.append(entry)
            now["stopped"] = bool(agree(asked()))
            return "interrupted" if now["stopped"] else None

        left = record["time_limit"] - begun if record["time_limit"] is not None else None
        solution = solve(
            prepared.problem,
            prepared.solver,
            record["steps"] - done,
            key=key,
            resume=start,
            evaluate_every=record["evaluate_every"],
            target_error=record["target_error"],
            time_limit=left,
            callback=callback,
            checkpoint=save,
            progress=not quiet,
        )
    ended = solution.status != "interrupted"
    out_of_turn = solution.steps and not now["evaluated"] and evaluated(solution.history.records[-1])
    if journal is not None and ended and out_of_turn:
        journal.amend(solution.history.records[-1])
    if ended or now.get("stopped"):
        save(solution.params, solution.state, solution.status)
    return solution


@contextmanager
def interruptions() -> Iterator[Callable[[], bool]]:
    """Ctrl-C and SIGTERM end a run after the step it is in; a second one ends it at once."""
    count = 0

    def handler(number: int, frame: Any) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise KeyboardInterrupt
        print("natgrad: stopping after this step; once more stops at once", file=sys.stderr, flush=True)

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: count == 1
    finally:
        for number, old in before.items():
            signal.signal(number, old)
