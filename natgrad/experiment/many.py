"""Several runs one after the other: seeds, optimizers, values of an option."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from natgrad.backend.parallel import by_first, first
from natgrad.experiment.config import Config, asked, difference, resolve
from natgrad.experiment.folder import Folder
from natgrad.experiment.recovery import proven
from natgrad.experiment.run import begun, run_together
from natgrad.experiment.runs import load
from natgrad.experiment.single import show, speaker, train_one, voices
from natgrad.experiment.tables import document
from natgrad.stopping import STOPPED

MOST = 10_000  # runs of one command
FORMATS = {"md": "markdown", "csv": "csv", "tex": "latex"}


def parse_seeds(seed: int, seeds: str | None) -> list[int]:
    """`0:10` is 0, …, 9; `0,3,5` is what it says."""
    if seeds is None:
        return [seed]
    if seed:
        raise ValueError("--seed and --seeds exclude each other: give one of the two")
    try:
        start, colon, end = seeds.partition(":")
        found = range(int(start), int(end)) if colon else [int(part) for part in seeds.split(",")]
    except ValueError:
        raise ValueError(f"--seeds takes a range such as 0:10 or a list such as 0,3,5, got {seeds!r}") from None
    if colon and found and found[-1] - found[0] >= MOST:
        raise ValueError(f"--seeds {seeds} is {found[-1] - found[0] + 1} runs: at most {MOST} at a time")
    if not found or len(set(found)) < len(found):
        raise ValueError(f"--seeds {seeds} {'names a seed twice' if found else 'is empty'}: write 0:10 or 0,3,5")
    return list(found)


def parse_list(option: str, text: str) -> list[str]:
    """a,b,c."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(set(parts)) < len(parts):
        raise ValueError(f"{option} takes different values separated by commas, got {text!r}")
    return parts


def train_all(
    configs: Sequence[Config], folders: Sequence[Path], *, resume: bool, force: bool, **how: Any
) -> list[dict[str, Any]]:
    """The results of all runs; every folder is checked before the first run starts. An interruption ends the series.

    `how` are the other options of `train_one`.
    """
    for config, folder in zip(configs, folders, strict=True):
        by_first(partial(_check_folder, folder, resume, force))
        resolve(config, {})
    return _train(configs, folders, [resume] * len(configs), force, **how)


def train_together(
    configs: Sequence[Config], folders: Sequence[Path], *, quiet: bool, plots: bool, **how: Any
) -> list[dict[str, Any]]:
    """The results of all runs, trained by one program; pictures come when all have ended."""
    voice = voices(quiet)
    seeds = ", ".join(str(config.seed) for config in configs)
    voice["say"](f"{configs[0].optimizer}, seeds {seeds}{''.join(', ' + s for s in configs[0].settings)}")
    results = run_together(configs, folders, **how, **voice)
    stopped = any(result["status"] in STOPPED for result in results)
    for folder, result in zip(folders, results, strict=True):
        show(folder, result, quiet=quiet, plots=plots and not stopped)
    return results


def check_together(seeds: str | None, **others: Any) -> None:
    """ValueError where --together makes no sense beside the other options."""
    if seeds is None:
        raise ValueError("--together trains several seeds: give them, as in --seeds 0:10, or leave --together out")
    if given := [name for name, value in others.items() if value is not None]:
        option = f"--{given[0].replace('_', '-')}"
        raise ValueError(f"--together trains on one device, and {option} is for several: give one of the two")


def train_missing(
    configs: Sequence[Config], folders: Sequence[Path], *, force: bool, **how: Any
) -> list[dict[str, Any]]:
    """The results of all runs: those that exist are used as they are, and unfinished ones are finished."""
    modes = [not force and _exists(config, folder) for config, folder in zip(configs, folders, strict=True)]
    for config, folder, resume in zip(configs, folders, modes, strict=True):
        _check_folder(folder, resume, force)
        resolve(config, {})  # a mistake in the last of many runs should not wait for its turn
    return _train(configs, folders, modes, force, **how)


def _check_folder(folder: Path, resume: bool, force: bool) -> dict[str, Any] | None:
    """The config of the run to go on with; ValueError where the folder is not to be used."""
    return begun(Folder.open(folder, "run", proven if resume else None), resume, force, lambda text: None)


def _exists(config: Config, folder: Path) -> bool:
    """Whether a folder holds this very run; ValueError where it holds another."""
    home = Folder.open(folder, "run")
    if not any(home.has(name) for name in home.files):
        return False
    known = _check_folder(folder, True, False) or {}
    record = asked(config) | {"dtype": known.get("dtype")}
    found = difference(record, known)
    if not found and record["steps"] < known.get("steps", 0):
        found = f"steps is {known['steps']} there and {record['steps']} here"
    if found:
        raise ValueError(f"{folder} holds another run ({found}): choose --out, or --force to start it over")
    return True


def _train(
    configs: Sequence[Config], folders: Sequence[Path], modes: Sequence[bool], force: bool, *, quiet: bool, **how: Any
) -> list[dict[str, Any]]:
    say = speaker(quiet or not first())
    results: list[dict[str, Any]] = []
    for config, folder, resume in zip(configs, folders, modes, strict=True):
        say(f"{config.optimizer}, seed {config.seed}{''.join(', ' + s for s in config.settings)}")
        again = force and not resume
        results.append(train_one(config, folder, resume=resume, force=again, quiet=quiet, **how))
        if results[-1]["status"] in STOPPED:
            break
    return results


def overview(folders: Sequence[Path], out: Folder, quiet: bool) -> None:
    """The table of several runs in three formats and their curves in one picture, in a folder of their own."""
    from natgrad.experiment.plots import plot

    runs = [load(folder) for folder in folders if (folder / "result.json").exists()]
    written = [out.write(f"table.{end}", document(runs, form)) for end, form in FORMATS.items()]
    written = [*out.draw(lambda workshop: plot(runs, workshop, fields=False)), written[0]]
    speaker(quiet)(document(runs) + "\n".join(f"wrote {path}" for path in written))
