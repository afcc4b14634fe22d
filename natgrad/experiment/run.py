"""A run: from a config to a folder with config.json, history.jsonl, checkpoint/, result.json and plots/.

A run killed at any moment goes on where its last checkpoint left it, bit for bit as if nothing had happened (on the
same device): the state holds all randomness, the step compiles to the same program, and the history is cut back to the
checkpoint. The folder is locked before it is looked at, and all is checked before anything is written.
"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from natgrad.backend.parallel import by_first, by_first_alone
from natgrad.diagnosis import diagnose
from natgrad.experiment import checkpoint as checkpoints
from natgrad.experiment.config import Config, Prepared, difference, keys, prepare
from natgrad.experiment.folder import Folder, held
from natgrad.experiment.journal import Journal, matches, read
from natgrad.experiment.recovery import proven, readable, recover, result_of
from natgrad.experiment.staged import staged
from natgrad.experiment.statuses import FINAL, PAUSED
from natgrad.experiment.summary import summary
from natgrad.experiment.training import Opened, train
from natgrad.interop.trackers import by_names
from natgrad.many import check_alike, taken_at_once
from natgrad.solve import History, Solution
from natgrad.storage.files import dumps

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
    log: Sequence[str] = (),
) -> dict[str, Any]:
    """Trains, and returns what result.json holds. ValueError, before anything is written, where the input is wrong.

    `say` tells what happens, `warn` what is wrong, whether `quiet` or not; `log` names trackers.
    """
    return run_together([config], [folder], resume=resume, force=force, quiet=quiet, say=say, warn=warn, log=log)[0]


def run_together(
    configs: Sequence[Config],
    folders: Sequence[Path],
    *,
    resume: bool = False,
    force: bool = False,
    quiet: bool = False,
    say: Say = print,
    warn: Say = warn,
    log: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """As `run`, for several runs of one shape (seeds, say), by `natgrad.solve_many`; each has its own folder.

    All are locked and checked before anything is written. Runs that are finished are left out.
    """
    if resume and force:
        raise ValueError("--resume goes on with a run and --force starts it over: give one of the two")
    tell = [_named(config, configs, say, warn) for config in configs]
    share = len(configs) if taken_at_once(len(configs)) else 1
    trackers = {Path(folder): by_names(log, Path(folder)) for folder in folders}
    with ExitStack() as stack:
        found = [
            lock_and_check(stack, config, Path(folder), share, resume, force, *speak)
            for config, folder, speak in zip(configs, folders, tell, strict=True)
        ]
        left = [one for one in found if one.result is None]
        check_one_program([one for one in left if not one.complete])
        count = sum(not one.complete for one in left)
        together = len(configs) if taken_at_once(count) else None
        pairs = [(one, stack.enter_context(opened(one, together, trackers[one.folder]))) for one in left]
        for one, files in pairs:
            if one.complete:
                close(one, files, one.start)
        going = [(one, files) for one, files in pairs if not one.complete]
        if going:
            train([files for _, files in going], quiet, lambda index, solution: close(*going[index], solution))
    shown = [one for one, _ in (going[:1] if together else going)]  # by the display, with their diagnosis
    for one, (_, complain) in zip(found, tell, strict=True):
        for sentence in one.result["diagnosis"] if one in left and (quiet or one not in shown) else ():
            complain(sentence)
    return [one.result for one in found]


def _named(config: Config, configs: Sequence[Config], *tell: Say) -> list[Say]:
    """What tells of a run: beside others, by its seed."""
    if len(configs) == 1:
        return list(tell)
    return [lambda text, say=say: say(f"seed {config.seed}: {text}") for say in tell]  # type: ignore[misc]


@dataclass(eq=False)
class Found:
    """A run whose folder is locked and fits it, before anything is written."""

    folder: Path
    home: Any  # the first process's alone
    prepared: Prepared
    known: dict[str, Any] | None
    key: Any
    start: Solution | None = None
    kept: Sequence[Path] = ()
    length: int = 0  # of the history at the start
    result: Any = None  # result.json

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do but to write the result."""
        if self.start is None or self.prepared.stages is not None:  # of stages the march knows
            return False
        return nothing_left(self.start, self.prepared.record, self.known)


def lock_and_check(
    stack: ExitStack, config: Config, folder: Path, share: int, resume: bool, force: bool, say: Say, warn: Say
) -> Found:
    """Locks a folder and checks all of a run; one that is finished comes with its result."""
    home: Any = by_first_alone(lambda: stack.enter_context(held(folder, "run", proven if resume else None)))
    known = by_first(lambda: begun(home, resume, force, warn))
    prepared = prepare(config, known, share)
    one = Found(folder, home, prepared, known, keys(config.seed).solver)
    if known is not None:
        check_same(folder, prepared, known, warn)
        if (done := by_first(lambda: finished(folder, prepared.record, known, warn))) is not None:
            say(f"{folder} is finished ({done['status']} after {done['steps']} steps): nothing to resume")
            one.result = done
        else:
            one.start, one.kept, one.length = last_checkpoint(home, prepared, one.key, say, warn)
    return one


def check_one_program(runs: Sequence[Found]) -> None:
    """ValueError where one program cannot train the runs: they differ in more than their arrays and their lengths."""
    if len(runs) > 1 and any(one.prepared.stages is not None for one in runs):
        raise ValueError("runs in stages (--windows, --via) are trained one after the other: leave --together out")
    said = [
        {"--evaluate-every": record["evaluate_every"], "--target-error": record["target_error"], **record["plan"]}
        for record in (one.prepared.record for one in runs)
    ]
    for one, words in zip(runs, said, strict=True):
        for name in (name for name in {**words, **said[0]} if words.get(name) != said[0].get(name)):
            raise ValueError(
                f"{one.folder} and {runs[0].folder} do not go together ({name} is {words.get(name)} and "
                f"{said[0].get(name)}): leave --together out"
            )
    if runs:
        check_alike([one.prepared.problem for one in runs])


@contextmanager
def opened(one: Found, together: int | None, trackers: Sequence[Any]) -> Iterator[Opened]:
    """The run with its files open; config.json keeps the number of runs that were started `together`, at once."""
    record, before = one.prepared.record, (one.known or {}).get("together")
    if number := before if one.complete or together is None else together:
        record["together"] = number
    journal = by_first_alone(lambda: open_files(one.home, record, one.length, fresh=one.known is None))
    try:
        writer = checkpoints.Writer(one.home, record, one.kept)
        yield Opened(one.prepared, one.key, one.start, journal, writer, trackers)
    finally:
        if journal is not None:
            journal.close()


def close(one: Found, files: Opened, solution: Any) -> None:
    """Writes result.json."""
    one.result = summary(one.prepared, solution, files.writer)
    if one.home is not None:
        one.home.write("result.json", dumps(one.result, indent=2), "\n")


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
        if not result or not nothing_left(SimpleNamespace(**result), record, known):
            return None
        own = (header for _, header in readable(folder) if header["fingerprint"] == record["fingerprint"])
        last = next(own, result | {"step": result["steps"]})
        if result.get("fingerprint") != record["fingerprint"] or last["step"] != result["steps"]:
            raise ValueError(f"{folder / 'result.json'} is not what the last checkpoint ended with")
        return result
    except ValueError as error:
        warn(f"{error}; it is written anew")
        return None


def nothing_left(ended: Any, record: dict[str, Any], known: dict[str, Any] | None) -> bool:
    """Whether a run that ended (`status`, `steps`, `time`) has nothing left to do under these limits."""
    done = ended.status == "steps" if staged(record) else ended.steps >= record["steps"]
    if ended.status in FINAL or done:
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
    own, several = prepared.problem.params, staged(prepared.record)
    state = prepared.solver.init(prepared.problem, own, key)
    like = lambda header: ((own,) * header["stages"] if several else own, state)
    good = by_first(lambda: usable(home, prepared.record["fingerprint"], like, say, warn))
    if good is None:
        return None, [], 0
    header, payload, records, kept = good
    params, state = checkpoints.unpack(payload, like(header))
    last: dict[str, Any] = records[-1] if records else {"loss": math.nan, "errors": {}}
    status = header["status"] or ("interrupted" if several else "steps")
    solution = Solution(
        prepared.problem.solution(params[-1] if several else params), params, state, History(records),
        last["loss"], last["errors"], status, header["step"], header["time"], 0.0,
        last.get("validation", math.nan), diagnose(records, prepared.problem, prepared.solver),
    )  # fmt: skip
    return solution, kept, header["history"]["bytes"]


def usable(
    home: Folder, fingerprint: str, like: checkpoints.Like, say: Say, warn: Say
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
