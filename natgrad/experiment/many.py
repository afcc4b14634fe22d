"""Several runs one after the other: seeds, optimizers, values of an option."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from natgrad.experiment.config import Config, difference, prepare, resolve
from natgrad.experiment.files import read_json, write
from natgrad.experiment.run import Say, check_folder, run
from natgrad.experiment.runs import load
from natgrad.experiment.tables import document
from natgrad.parallel import by_first, first


def parse_seeds(seed: int, seeds: str | None) -> list[int]:
    """`0:10` is 0, …, 9; `0,3,5` is what it says."""
    if seeds is None:
        return [seed]
    if seed:
        raise ValueError("--seed and --seeds exclude each other: give one of the two")
    try:
        first, colon, last = seeds.partition(":")
        found = list(range(int(first), int(last))) if colon else [int(part) for part in seeds.split(",")]
    except ValueError:
        raise ValueError(f"--seeds takes a range such as 0:10 or a list such as 0,3,5, got {seeds!r}") from None
    if not found or len(set(found)) < len(found):
        raise ValueError(f"--seeds {seeds} {'names a seed twice' if found else 'is empty'}: write 0:10 or 0,3,5")
    return found


def parse_list(option: str, text: str) -> list[str]:
    """a,b,c."""
    parts = [part.strip() for part in text.split(",")]
    if not all(parts) or len(set(parts)) < len(parts):
        raise ValueError(f"{option} takes different values separated by commas, got {text!r}")
    return parts


def speaker(quiet: bool) -> Say:
    """What tells the user, on stdout."""
    return (lambda text: None) if quiet else (lambda text: print(text, flush=True))


def train_all(
    configs: Sequence[Config], folders: Sequence[Path], *, resume: bool, force: bool, quiet: bool, plots: bool
) -> list[dict[str, Any]]:
    """The results of all runs; every folder is checked before the first run starts. An interruption ends the series."""
    for config, folder in zip(configs, folders, strict=True):
        by_first(partial(check_folder, folder, resume, force))
        resolve(config, {})
    return [*_train(configs, folders, [resume] * len(configs), force, quiet, plots)]


def train_missing(
    configs: Sequence[Config], folders: Sequence[Path], *, force: bool, quiet: bool, plots: bool
) -> list[dict[str, Any]]:
    """As `train_all`, but runs that exist are used as they are, and unfinished ones are finished."""
    modes = [_exists(config, folder, force) for config, folder in zip(configs, folders, strict=True)]
    return [*_train(configs, folders, modes, force, quiet, plots)]


def _exists(config: Config, folder: Path, force: bool) -> bool:
    """Whether a folder holds this very run and is to keep it; ValueError where it holds another."""
    if force or not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        check_folder(folder, False, force)
        resolve(config, {})  # a mistake in the last of many runs should not wait for its turn
        return False
    check_folder(folder, resume=True, force=False)
    known = read_json(folder / "config.json")
    record = prepare(config, {"plan": known.get("plan")}).record
    found = difference(record, known)
    if not found and record["steps"] < known.get("steps", 0):
        found = f"steps is {known['steps']} there and {record['steps']} here"
    if found:
        raise ValueError(f"{folder} holds another run ({found}): choose --out, or --force to start it over")
    return True


def _train(
    configs: Sequence[Config], folders: Sequence[Path], modes: Sequence[bool], force: bool, quiet: bool, plots: bool
) -> list[dict[str, Any]]:
    quiet = quiet or not first()
    say = speaker(quiet)
    results: list[dict[str, Any]] = []
    for config, folder, resume in zip(configs, folders, modes, strict=True):
        if len(configs) > 1:
            say(f"{config.optimizer}, seed {config.seed}{''.join(', ' + s for s in config.settings)}")
        result = run(config, folder, resume=resume, force=force and not resume, quiet=quiet, say=say)
        wanted = plots and result["status"] != "interrupted"  # who stops a run is in a hurry
        if wanted and first() and result["steps"] and not (folder / "plots").exists():
            draw(folder)
        say(f"{folder}: {sentence(result)}")
        results.append(result)
        if result["status"] == "interrupted":
            break
    return results


def draw(folder: Path) -> None:
    """The pictures of one run."""
    from natgrad.experiment.plots import plot

    plot([load(folder)], folder / "plots")


def overview(folders: Sequence[Path], out: Path, quiet: bool) -> None:
    """The table of several runs in three formats and their curves in one picture, in a folder of their own."""
    from natgrad.experiment.plots import plot

    runs = [load(folder) for folder in folders if (folder / "result.json").exists()]
    out.mkdir(parents=True, exist_ok=True)
    for form, name in (("markdown", "table.md"), ("csv", "table.csv"), ("latex", "table.tex")):
        write(out / name, document(runs, form))
    pictures = plot(runs, out, fields=False)
    speaker(quiet)(document(runs) + "\n".join(f"wrote {path}" for path in (*pictures, out / "table.md")))


def sentence(result: dict[str, Any]) -> str:
    """A result in a line."""
    errors = "".join(f"  {name} {value:.2e}" for name, value in result["errors"].items())
    where = result["plateau"]
    plateau = f"  plateau {where['error']:.2e} at {where['time']:.1f} s" if where["error"] is not None else ""
    loss = "loss not finite" if result["loss"] is None else f"loss {result['loss']:.2e}"
    status = "finished" if result["status"] == "steps" else result["status"]
    steps = f"{result['steps']} {'step' if result['steps'] == 1 else 'steps'}"
    wrong = "".join(f"  ({sentence.partition(':')[0]})" for sentence in result.get("diagnosis", ()))
    return f"{status} after {steps}, {result['time']:.1f} s: {loss}{errors}{plateau}{wrong}"
