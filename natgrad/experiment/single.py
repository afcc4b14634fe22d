"""One run with its pictures, told in a line: what `natgrad run` does once, and a series several times."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from natgrad.backend.parallel import first
from natgrad.experiment.config import Config
from natgrad.experiment.folder import MARKER, held
from natgrad.experiment.run import Say, run, warn
from natgrad.experiment.runs import load
from natgrad.experiment.summary import sentence
from natgrad.stopping import STOPPED


def speaker(quiet: bool) -> Say:
    """What tells the user, on stdout."""
    return (lambda text: None) if quiet else (lambda text: print(text, flush=True))


def train_one(
    config: Config, folder: Path, *, resume: bool, force: bool, quiet: bool, plots: bool, log: Sequence[str] = ()
) -> dict[str, Any]:
    """The result of a run, with its pictures."""
    result = run(config, folder, resume=resume, force=force, log=log, **voices(quiet))
    show(folder, result, quiet=quiet, plots=plots)
    return result


def voices(quiet: bool) -> dict[str, Any]:
    """What speaks in a run: the first process alone."""
    silent = lambda text: None
    return {
        "quiet": quiet or not first(), "say": speaker(quiet or not first()), "warn": warn if first() else silent
    }  # fmt: skip


def show(folder: Path, result: dict[str, Any], *, quiet: bool, plots: bool) -> None:
    """Says what came of a run. Pictures are drawn where there are none and the run was not stopped by hand."""
    voice = voices(quiet)
    wanted = plots and result["status"] not in STOPPED and result["steps"]  # who stops a run is in a hurry
    if wanted and first() and not (folder / "plots" / MARKER).exists():
        try:
            draw(folder)
        except ValueError as error:
            voice["warn"](f"no pictures: {error}")
    voice["say"](f"{folder}: {sentence(result)}")


def draw(folder: Path) -> list[Path]:
    """The pictures of one run, in plots/."""
    from natgrad.experiment.plots import plot

    with held(folder / "plots", "pictures") as pictures:
        return pictures.draw(lambda workshop: plot([load(folder)], workshop))
