"""Several runs one after the other: seeds, optimizers, values of an option."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from natgrad.experiment.config import Config
from natgrad.experiment.run import check_folder, run


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


def train_all(
    configs: Sequence[Config], folders: Sequence[Path], *, resume: bool, force: bool, quiet: bool, plots: bool
) -> list[dict[str, Any]]:
    """The results of all runs; every folder is checked before the first run starts. An interruption ends the series."""
    for folder in folders:
        check_folder(folder, resume, force)
    say = (lambda text: None) if quiet else (lambda text: print(text, flush=True))
    results: list[dict[str, Any]] = []
    for config, folder in zip(configs, folders, strict=True):
        result = run(config, folder, resume=resume, force=force, quiet=quiet, say=say)
        say(f"{folder}: {sentence(result)}")
        results.append(result)
        if result["status"] == "interrupted":
            break
    return results


def sentence(result: dict[str, Any]) -> str:
    """A result in a line."""
    errors = "  ".join(f"{name} {value:.2e}" for name, value in result["errors"].items())
    where = result["plateau"]
    plateau = f"  plateau {where['error']:.2e} at {where['time']:.1f} s" if where["error"] is not None else ""
    loss = "loss not finite" if result["loss"] is None else f"loss {result['loss']:.2e}"
    return f"{result['status']} after {result['steps']} steps, {result['time']:.1f} s: {loss}  {errors}{plateau}"
