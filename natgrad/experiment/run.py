"""A run: from a config to a folder with config.json, history.jsonl, checkpoint/, result.json and plots/.

A run killed at any moment goes on where its last checkpoint left it, bit for bit as if nothing had happened (on the
same device): the state holds all randomness, the step compiles to the same program, and the history is cut back to the
checkpoint. The folder is locked before it is looked at, and all is checked before anything is written.
"""

import math
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from natgrad.backend.parallel import by_first, by_first_alone
from natgrad.diagnosis import diagnose
from natgrad.experiment import checkpoint as checkpoints
from natgrad.experiment.config import Config, Prepared, difference, keys, prepare
from natgrad.experiment.files import dumps
from natgrad.experiment.folder import Folder, held
from natgrad.experiment.journal import Journal, matches, read
from natgrad.experiment.recovery import proven, readable, recover, result_of
from natgrad.experiment.statuses import FINAL, PAUSED
from natgrad.experiment.summary import summary
from natgrad.experiment.training import train
from natgrad.solve import History, Solution

FILES = ("config.json", "history.jsonl", "result.json")
Say = Callable[[str], None]


def warn(text: str) -> None:
    """Says on stderr what must not be missed."""
    print(f"natgrad: {text}", file=sys.stderr, flush=True)


def run(
    config: Config,
    folder: Path,
    *,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    say: Say = print,
    warn: Say = warn,
) -> dict[str, Any]:
    """Trains, and returns what result.json holds. ValueError, before anything is written, where the input is wrong.

    `say` tells what happens, `warn` what is wrong, whether `quiet` or not.
    """
    folder = Path(folder)
    if resume and force:
        raise ValueError("--resume goes on with a run and --force starts it over: give one of the two")
    with ExitStack() as stack:
        home: Any = by_first_alone(lambda: stack.enter_context(held(folder, "run", proven if resume else None)))
        known = by_first(lambda: begun(home, resume, force, warn))
        prepared = prepare(config, known)
        if known is not None:
            check_same(folder, prepared, known, warn)
            if (done := by_first(lambda: finished(folder, prepared.record, known, warn))) is not None:
                say(f"{folder} is finished ({done['status']} after {done['steps']} steps): nothing to resume")
                return done
        key = keys(config.seed).solver
        start, kept, length = (None, [], 0) if known is None else last_checkpoint(home, prepared, key, say, warn)
        journal = by_first_alone(lambda: open_files(home, prepared.record, length, fresh=known is None))
        writer = checkpoints.Writer(home, prepared.record, kept)
        try:
            if start is not None and over(start, prepared.record, known):
                solution = start
            else:
                solution = train(prepared, key, start, journal, writer, quiet)
        finally:
            if journal is not None:
                journal.close()
        result = summary(prepared, solution, writer)
        if home is not None:
            home.write("result.json", dumps(result, indent=2), "\n")
    for sentence in result["diagnosis"] if quiet else ():  # else the display has said it
        warn(sentence)
    return result


def begun(home: Folder, resume: bool, force: bool, warn: Say) -> dict[str, Any] | None:
    """The config of the run to go on with, if one is; ValueError where the folder is not to be used."""
    folder = home.path
    if (folder / checkpoints.HOME).exists() and not (folder / checkpoints.HOME).is_dir():
        raise ValueError(f"{folder / checkpoints.HOME} is a file, and natgrad needs a folder there: move it away")
    home.check({*FILES, *home.files})
    there = any(home.has(name) for name in home.files)
    if resume and not there:
        raise ValueError(f"there is no run in {folder} to resume: leave --resume out to start one")
    if there and not (resume or force):
        raise ValueError(f"{folder} holds a run already: --resume goes on with it, --force starts it over")
    return recover(folder, warn) if resume else None


def check_same(folder: Path, prepared: Prepared, known: dict[str, Any], warn: Say) -> None:
    """ValueError where the run in the folder is not the one that was asked for."""
    if found := difference(prepared.record, known):
        again = " ".join(known.get("command", ["natgrad", "run"]))
        raise ValueError(
            f"the run in {folder} is another one ({found}): choose another --out; it goes on by "
            f"`{again} --resume --out {folder}`"
        )
    if prepared.record["versions"] != known.get("versions"):
        warn("other versions of Python, JAX or natgrad than at the start: the bits may differ")


def open_files(home: Folder, record: dict[str, Any], length: int, *, fresh: bool) -> Journal:
    """The history, open behind what is kept of it, and config.json; what belongs to an older state of the run goes."""
    home.claim(*FILES)
    home.remove(home.files if fresh else ["result.json"])
    with suppress(ValueError):  # a plots/ of somebody else's stays as it is
        Folder.open(home.path / "plots", "pictures").dissolve()
    home.write("config.json", dumps(record, indent=2), "\n")
    return Journal(home.path / "history.jsonl", length)


def finished(folder: Path, record: dict[str, Any], known: dict[str, Any], warn: Say) -> dict[str, Any] | None:
    """The result of a run that has nothing left to do; a result.json that cannot be it is told, and made anew."""
    try:
        result = result_of(folder)
        if not result or not over(SimpleNamespace(**result), record, known):
            return None
        own = (header for _, header in readable(folder) if header["fingerprint"] == record["fingerprint"])
        last = next(own, result | {"step": result["steps"]})
        if result.get("fingerprint") != record["fingerprint"] or last["step"] != result["steps"]:
            raise ValueError(f"{folder / 'result.json'} is not what the last checkpoint ended with")
        return result
    except ValueError as error:
        warn(f"{error}; it is written anew")
        return None


def over(ended: Any, record: dict[str, Any], known: dict[str, Any] | None) -> bool:
    """Whether a run that ended (`status`, `steps`, `time`) has nothing left to do under these limits."""
    if ended.status in FINAL or ended.steps >= record["steps"]:
        return True
    if record["time_limit"] is not None and ended.time >= record["time_limit"]:
        return True
    same = known is not None and all(record[name] == known.get(name) for name in ("target_error", "time_limit"))
    return ended.status not in PAUSED and same


def last_checkpoint(
    home: Folder, prepared: Prepared, key: Any, say: Say, warn: Say
) -> tuple[Solution | None, list[Path], int]:
    """The solution to go on from, the run's good checkpoints, and the length of the history at the solution.

    `home` is the first process's alone.
    """
    like = prepared.problem.params, prepared.solver.init(prepared.problem, prepared.problem.params, key)
    good = by_first(lambda: usable(home, prepared.record["fingerprint"], like, say, warn))
    if good is None:
        return None, [], 0
    header, payload, records, kept = good
    params, state = checkpoints.unpack(payload, like)
    last: dict[str, Any] = records[-1] if records else {"loss": math.nan, "errors": {}}
    status = header["status"] or "steps"
    solution = Solution(
        prepared.problem.solution(params), params, state, History(records),
        last["loss"], last["errors"], status, header["step"], header["time"], 0.0,
        last.get("validation", math.nan), diagnose(records, prepared.problem, prepared.solver),
    )  # fmt: skip
    return solution, kept, header["history"]["bytes"]


def usable(
    home: Folder, fingerprint: str, like: Any, say: Say, warn: Say
) -> tuple[dict[str, Any], bytes, list, list[Path]] | None:
    """Header, arrays and history of the latest good checkpoint, and the good ones that the run wrote itself."""
    folder, good, own = home.path, [], []
    found = checkpoints.files(folder / checkpoints.HOME)
    for path in found:
        try:
            if not matches(folder / "history.jsonl", checkpoints.load(path, fingerprint, like).history):
                raise ValueError(f"{path.name} does not fit: history.jsonl is not the one it was made with")
        except ValueError as error:
            warn(str(error))
            continue
        good.append(path)
        own += [path] if f"{checkpoints.HOME}/{path.name}" in home.files else []
        if len(own) == checkpoints.KEEP:
            break
    if good:
        header, payload = checkpoints.read(good[0])
        records = read(folder / "history.jsonl", header["history"]["bytes"])
        say(f"going on from step {header['step']} ({good[0].name})")
        return header, payload, records, own
    if found:
        raise ValueError(f"no checkpoint in {folder} can be used: choose another --out to start over")
    if sum(name.startswith(f"{checkpoints.HOME}/") for name in home.files) > 1:
        raise ValueError(f"the checkpoints of the run in {folder} are gone: choose another --out to start over")
    say(f"{folder} has no checkpoint yet: starting over")
    return None
