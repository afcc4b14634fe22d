"""Run folders read back, and sorted for tables and pictures: seeds together, the rest apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from natgrad.diagnosis import EXHAUSTED
from natgrad.experiment import checkpoint
from natgrad.experiment.config import Config, prepare
from natgrad.experiment.files import read_json
from natgrad.experiment.history import plateau, read
from natgrad.experiment.optimizers import NAMES
from natgrad.problem import Problem


@dataclass(frozen=True)
class Run:
    """One folder: its config, its result ({} where it has none yet) and its history."""

    folder: Path
    config: dict[str, Any]
    result: dict[str, Any]
    records: list[dict[str, Any]]

    @property
    def problem(self) -> str:
        return self.config["problem"]

    @property
    def optimizer(self) -> str:
        return self.config["optimizer"]

    @property
    def status(self) -> str:
        return self.result.get("status", "unfinished")

    @property
    def diagnosis(self) -> tuple[str, ...]:
        """What is wrong with it, in sentences."""
        return tuple(self.result.get("diagnosis", ()))

    @property
    def exhausted(self) -> bool:
        """Whether its loss at other points than those of training says that it is no solution."""
        return any(sentence.startswith(EXHAUSTED) for sentence in self.diagnosis)

    @property
    def norm(self) -> str:
        """The norm of the error that counts: h1 or l2."""
        return self.config.get("norm", "h1")

    @cached_property
    def plateau(self) -> dict[str, Any]:
        """{step, time, error}."""
        return plateau(self.column("step"), self.column("time"), self.column(self.norm))

    def column(self, name: str) -> np.ndarray:
        """A quantity a step, NaN where it was not recorded; errors by their name, weights by "weights.BLOCK"."""
        if name.startswith("weights."):
            block = name.removeprefix("weights.")
            return np.asarray([record.get("weights", {}).get(block, np.nan) for record in self.records], float)
        if name in ("l2", "h1"):
            return np.asarray([record["errors"].get(name, np.nan) for record in self.records], float)
        return np.asarray([record.get(name, np.nan) for record in self.records], float)

    @property
    def weights(self) -> tuple[str, ...]:
        """The quantities that are weights of blocks, where some were found in training."""
        return tuple(f"weights.{name}" for name in (self.records[0].get("weights", {}) if self.records else ()))

    def series(self, name: str, against: str = "step") -> tuple[np.ndarray, np.ndarray]:
        """A quantity where it was recorded, and the steps or times of that: x, y."""
        x, y = self.column(against), self.column(name)
        known = np.isfinite(y)
        return x[known], y[known]

    def restore(self) -> tuple[Problem, Any]:
        """The problem, and the parameters of the last checkpoint."""
        config = Config(
            **{name: self.config[name] for name in ("problem", "optimizer", "preset", "recipe", "seed", "steps")},
            evaluate_every=self.config["evaluate_every"],
            settings=tuple(self.config["set"]),
        )
        prepared = prepare(config, {"plan": self.config.get("plan")})
        for path in checkpoint.files(self.folder / "checkpoint"):
            try:
                return prepared.problem, checkpoint.load_first(
                    path, self.config["fingerprint"], prepared.problem.params
                )
            except ValueError:
                continue
        raise ValueError(f"{self.folder} has no checkpoint to draw from")


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds alone."""

    problem: str
    label: str
    runs: tuple[Run, ...]

    @property
    def optimizer(self) -> str:
        return self.runs[0].optimizer

    def quartiles(self, name: str) -> tuple[float, float, float] | None:
        """Median, first and third quartile of the plateau's `error` or `time`."""
        values = [run.plateau[name] for run in self.runs if run.plateau[name] is not None]
        if not values:
            return None
        low, middle, high = np.percentile(values, [25, 50, 75])
        return float(middle), float(low), float(high)


def find(paths: Iterable[Path]) -> list[Run]:
    """All runs in the given folders and below them, each once."""
    found: dict[Path, Run] = {}
    for path in paths:
        if not Path(path).is_dir():
            raise ValueError(f"there is no folder {path}: give run folders, or folders of run folders")
        configs = sorted(Path(path).rglob("config.json"))
        runs = [config.parent for config in configs if _history(config.parent).exists()]
        if not runs:
            raise ValueError(f"there is no run in {path}: `natgrad run` makes one")
        for folder in runs:
            found.setdefault(folder.resolve(), load(folder))
    return list(found.values())


def load(folder: Path) -> Run:
    """One run; ValueError, in one line, where its files are not those of a run."""
    config = read_json(folder / "config.json")
    if missing := {"problem", "optimizer", "options", "seed", "fingerprint"} - set(config):
        raise ValueError(f"{folder / 'config.json'} is not a run's: it lacks {', '.join(sorted(missing))}")
    result = read_json(folder / "result.json") if (folder / "result.json").exists() else {}
    return Run(folder, config, result, read(_history(folder)))


def _history(folder: Path) -> Path:
    """The history of a run, which may have been compressed (`gzip history.jsonl`)."""
    packed = folder / "history.jsonl.gz"
    return packed if packed.exists() else folder / "history.jsonl"


def group(runs: Sequence[Run]) -> list[Group]:
    """Runs sorted by problem and by what else tells them apart, which is in the label."""
    mixed = {run.problem for run in runs if len({r.config["preset"] for r in runs if r.problem == run.problem}) > 1}
    title = lambda run: f"{run.problem} ({run.config['preset']})" if run.problem in mixed else run.problem
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        rivals = [r for r in runs if r.optimizer == run.optimizer and title(r) == title(run)]
        groups.setdefault((title(run), label(run, rivals)), []).append(run)
    order = sorted(groups.items(), key=lambda item: (item[0][0], rank(item[1][0].optimizer)))
    return [Group(problem, name, tuple(members)) for (problem, name), members in order]


def rank(optimizer: str) -> int:
    """The place of an optimizer in tables and legends."""
    return NAMES.index(optimizer) if optimizer in NAMES else len(NAMES)


def label(run: Run, rivals: Sequence[Run]) -> str:
    """The optimizer, and the options in which its runs differ."""
    flat = [_options(r) for r in rivals]
    differing = [key for key in _options(run) if len({repr(options.get(key)) for options in flat}) > 1]
    extras = [
        str(_options(run)[key]) if key == "recipe" else f"{key.rpartition('.')[2]}={_options(run)[key]}"
        for key in differing
    ]
    return run.optimizer + (f" ({', '.join(extras)})" if extras else "")


def _options(run: Run) -> dict[str, Any]:
    options = run.config["options"]
    return {"recipe": run.config["recipe"], **options["problem"], **options["solver"], "steps": run.config["steps"]}
