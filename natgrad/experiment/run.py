"""A run: from a config to a folder with config.json, history.jsonl, checkpoint/, result.json and plots/.

A run killed at any moment goes on where its last checkpoint left it, bit for bit as if nothing had happened (on the
same device): the state holds all randomness, the step compiles to the same program, and the history is cut back to the
checkpoint.
"""

import math
import os
import platform
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax

from natgrad.diagnosis import diagnose
from natgrad.experiment import checkpoint as checkpoints
from natgrad.experiment.config import Config, Prepared, difference, keys, prepare
from natgrad.experiment.files import read_json, write_json
from natgrad.experiment.history import Journal, matches, plateau, read
from natgrad.parallel import agree, by_first, by_first_alone
from natgrad.solve import History, Solution, evaluated, solve

STALE = ("result.json", "plots")  # once the run goes on
PARTS = ("config.json", "history.jsonl", "checkpoint", *STALE)
BROKEN = ("not finite", "no descent")
Say = Callable[[str], None]


def run(
    config: Config, folder: Path, *, resume: bool = False, force: bool = False, quiet: bool = False, say: Say = print
):
    """Trains, and returns what result.json holds. ValueError, before anything is written, where the input is wrong."""
    folder = Path(folder)
    known = by_first(lambda: look(folder, resume, force))
    prepared = prepare(config, known)
    if known is not None:
        if found := difference(prepared.record, known):
            again = " ".join(known.get("command", ["natgrad", "run"]))
            raise ValueError(
                f"the run in {folder} is another one ({found}): choose --out, or --force to start over; it goes on by "
                f"`{again} --resume --out {folder}`"
            )
        if (done := by_first(lambda: finished(folder, prepared.record, known))) is not None:
            say(f"{folder} is finished ({done['status']} after {done['steps']} steps): nothing to resume")
            return done
        if prepared.record["versions"] != known.get("versions"):
            say("natgrad: other versions of Python, JAX or natgrad than at the start: the bits may differ")
    key = keys(config.seed).solver
    start, length = (None, 0) if known is None else last_checkpoint(folder, prepared, key, say)
    journal = by_first_alone(lambda: open_journal(folder, length))
    try:
        if journal is not None:
            clear(folder, STALE if known is not None else (*STALE, "checkpoint", "config.json"))
            write_json(folder / "config.json", prepared.record)
        if start is not None and over(start, prepared.record, known):
            solution, writer = start, checkpoints.Writer(folder / "checkpoint", "")
        else:
            solution, writer = train(prepared, folder, key, start, journal, quiet)
    finally:
        if journal is not None:
            journal.close()
    result = summary(prepared, solution, writer)
    if journal is not None:
        write_json(folder / "result.json", result)
    return result


def look(folder: Path, resume: bool, force: bool) -> dict[str, Any] | None:
    """The config of the run to go on with, if one is; ValueError where the folder is not to be used."""
    check_folder(folder, resume, force)
    return read_json(folder / "config.json") if resume else None


def open_journal(folder: Path, length: int) -> Journal:
    """The history in its folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    return Journal(folder / "history.jsonl", length)


def check_folder(folder: Path, resume: bool, force: bool) -> None:
    """An existing run is never overwritten unasked, and what is not a run is never touched."""
    if resume and force:
        raise ValueError("--resume goes on with a run and --force starts it over: give one of the two")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: --out takes the name of a folder")
    content = {path.name for path in folder.iterdir()} if folder.exists() else set()
    there = "config.json" in content
    foreign = {name for name in content if name not in PARTS and not name.endswith(".part")}
    if resume and not there:
        raise ValueError(f"there is no run in {folder} to resume: leave --resume out to start one")
    if foreign and not there:
        raise ValueError(f"{folder} has other things in it than a run: choose another --out")
    if there and not (resume or force):
        raise ValueError(f"{folder} holds a run already: --resume goes on with it, --force starts it over")


def clear(folder: Path, parts: Sequence[str]) -> None:
    """Removes parts of a run, and what a crash left of files, from its folder; nothing else."""
    for path in (*(folder / part for part in parts), *folder.glob(".*.part"), *folder.glob("checkpoint/.*.part")):
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def finished(folder: Path, record: dict[str, Any], known: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a run that has nothing left to do."""
    if not (folder / "result.json").exists():
        return None
    result = read_json(folder / "result.json")
    try:
        ended = SimpleNamespace(status=result["status"], steps=result["steps"], time=result["time"])
        return result if over(ended, record, known) else None
    except (KeyError, TypeError):
        raise ValueError(f"cannot read {folder / 'result.json'}: it is not the result of a run") from None


def over(ended: Any, record: dict[str, Any], known: dict[str, Any] | None) -> bool:
    """Whether a run that ended (`status`, `steps`, `time`) has nothing left to do under these limits."""
    if ended.status in BROKEN or ended.steps >= record["steps"]:
        return True
    if record["time_limit"] is not None and ended.time >= record["time_limit"]:
        return True
    same = known is not None and all(record[name] == known.get(name) for name in ("target_error", "time_limit"))
    return ended.status not in ("steps", "interrupted") and same


def last_checkpoint(folder: Path, prepared: Prepared, key: Any, say: Say) -> tuple[Any, int]:
    """The solution to go on from and the length of its history; a bad checkpoint is named and the one before taken."""
    like = prepared.problem.params, prepared.solver.init(prepared.problem, prepared.problem.params, key)
    good = by_first(lambda: usable(folder, prepared.record["fingerprint"], like, say))
    if good is None:
        return None, 0
    header, payload, records = good
    params, state = checkpoints.unpack(payload, like)
    last: dict[str, Any] = records[-1] if records else {"loss": math.nan, "errors": {}}
    status = header["status"] or "steps"
    solution = Solution(
        prepared.problem.solution(params), params, state, History(records),
        last["loss"], last["errors"], status, header["step"], header["time"], 0.0,
        last.get("validation", math.nan), diagnose(records, prepared.problem, prepared.solver),
    )  # fmt: skip
    return solution, header["history"]["bytes"]


def usable(folder: Path, fingerprint: str, like: Any, say: Say) -> tuple[dict[str, Any], bytes, list] | None:
    """Header, arrays and history of the last good checkpoint."""
    found = checkpoints.files(folder / "checkpoint")
    for path in found:
        try:
            good = checkpoints.load(path, fingerprint, like)
            if not matches(folder / "history.jsonl", good.history):
                raise ValueError(f"{path.name} does not fit: history.jsonl is not the one it was made with")
        except ValueError as error:
            say(f"natgrad: {error}")
            continue
        records = read(folder / "history.jsonl", good.history["bytes"])
        say(f"going on from step {good.step} ({path.name})")
        return *checkpoints.read(path), records
    if found:
        raise ValueError(f"no checkpoint in {folder} can be used: --force starts the run over")
    say(f"{folder} has no checkpoint yet: starting over")
    return None


def train(
    prepared: Prepared, folder: Path, key: Any, start: Solution | None, journal: Journal | None, quiet: bool
) -> tuple[Solution, checkpoints.Writer]:
    """The solve itself, with history, checkpoints and signals; a process without a journal writes nothing."""
    record = prepared.record
    writer = checkpoints.Writer(folder / "checkpoint", record["fingerprint"])
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
    return solution, writer


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


def summary(prepared: Prepared, solution: Solution, writer: checkpoints.Writer) -> dict[str, Any]:
    """result.json."""
    record, problem = prepared.record, prepared.problem
    history = solution.history
    errors = history.errors if len(history) else {}
    norm = record["norm"]
    where = plateau(history.step, history.time, errors[norm]) if norm in errors else plateau([], [], [])
    return {
        **{name: record[name] for name in ("problem", "optimizer", "recipe", "preset", "seed")},
        "status": solution.status,
        "steps": solution.steps,
        "parameters": problem.num_parameters,
        "rows": prepared.rows,
        "loss": solution.loss,
        "validation": solution.validation,
        "weights": {name: float(values[-1]) for name, values in history.weights.items()},
        "errors": solution.errors,
        "diagnosis": list(solution.diagnosis),
        "plateau": where,
        "norm": norm,
        "time": solution.time,
        "compile_time": solution.compile_time,
        "checkpoints": {"count": writer.count, "time": writer.spent},
        "plan": record["plan"],
        "device": device_name(),
        "devices": record["devices"],
        "processes": record["processes"],
        "dtype": record["dtype"],
        "versions": record["versions"],
        "command": record["command"],
        "fingerprint": record["fingerprint"],
    }


def device_name() -> str:
    """The default device in words; of a processor its model and the cores this process may use."""
    device = jax.devices()[0]
    if device.platform != "cpu":
        return f"{device.platform}: {device.device_kind}"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"cpu: {model}, {cores} {'core' if cores == 1 else 'cores'}"
