"""Runs read back, from folders or archives, and sorted for tables and pictures: seeds together, the rest apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from natgrad.diagnosis import EXHAUSTED
from natgrad.experiment import checkpoint
from natgrad.experiment.config import Config, prepare
from natgrad.experiment.journal import parse
from natgrad.experiment.optimizers import NAMES
from natgrad.experiment.plateau import plateau
from natgrad.experiment.records import content
from natgrad.experiment.recovery import NEEDED, NEEDED_MORE, RESULT, RESULT_MORE, check
from natgrad.experiment.staged import NONE, STAGES, staged, via_text
from natgrad.problem import Problem, Window, Windows
from natgrad.stages.times import windows_text
from natgrad.storage.files import parse_json

FILES = ("config.json", "result.json", "history.jsonl")  # of a run, those that are read
MACHINE = {"devices": 1, "memory": None, "together": None, **dict.fromkeys(STAGES)}  # what a run may use, by default


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
        if staged(self.config):
            return self.result.get("plateau", plateau([], [], []))
        return plateau(self.column("step"), self.column("time"), self.column(self.norm))

    @property
    def steps(self) -> int:
        """How many steps it took."""
        return int(self.records[-1]["step"]) if self.records else 0

    @property
    def end(self) -> float | None:
        """The error that was evaluated last."""
        errors = self.series(self.norm)[1]
        return float(errors[-1]) if len(errors) else None

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

    def function(self) -> Any:
        """The network of the last checkpoint, on a mesh its finite-element function; of windows all of them as one."""
        return self.solution(*self.restore())

    def solution(self, problem: Problem, params: Any) -> Any:
        """What `function` gives, made of what `restore` gave."""
        if "windows" not in self.config:
            return problem.solution(params[-1] if staged(self.config) else params)
        known = {record["window"]: (record["t0"], record["t1"]) for record in self.records}
        spans = [known[number] for number in sorted(known)][: len(params)]
        networks: list[Any] = [problem.solution(own) for own in params]
        parts = [Window(u.network, *span) for u, span in zip(networks, spans, strict=True)]
        return Windows(parts, [spans[0][0], *(end for _, end in spans)])

    def restore(self) -> tuple[Problem, Any]:
        """The problem (of windows the first one), and the parameters of the last checkpoint (of stages a tuple)."""
        checkpoints = checkpoint.files(self.folder / "checkpoint")
        if not checkpoints:
            raise ValueError(f"{self.folder} has no checkpoint to draw from")
        config = Config(
            **{name: self.config[name] for name in ("problem", "optimizer", "preset", "recipe", "seed", "steps")},
            evaluate_every=self.config["evaluate_every"],
            settings=tuple(self.config["set"]),
            windows=windows_text(self.config.get("windows")),
            via=via_text(self.config.get("via")) or NONE,
        )
        prepared = prepare(config, {"plan": self.config.get("plan")})
        own: Any = prepared.problem.params
        like = lambda header: (own,) * header["stages"] if staged(self.config) else own
        for path in checkpoints:
            try:
                return prepared.problem, checkpoint.load_first(path, self.config["fingerprint"], like)
            except ValueError:
                continue
        raise ValueError(f"no checkpoint of {self.folder} can be used")


@dataclass(frozen=True)
class Group:
    """Runs that differ in their seeds alone, one a seed; `repeats` counts the others, which are left out."""

    problem: str
    label: str
    runs: tuple[Run, ...]
    repeats: int = 0

    @property
    def optimizer(self) -> str:
        return self.runs[0].optimizer

    def quartiles(self, name: str) -> tuple[float, float, float] | None:
        """Median, first and third quartile of the plateau's `error` or `time`, or of the error at the `end`."""
        found = [run.end if name == "end" else run.plateau[name] for run in self.runs]
        values = [value for value in found if value is not None]
        if not values:
            return None
        low, middle, high = np.percentile(values, [25, 50, 75])
        return float(middle), float(low), float(high)


def find(paths: Iterable[Path]) -> list[Run]:
    """All runs in the given folders, and below them, and in the given archives, each once."""
    found: dict[Path, Run] = {}
    for path in map(Path, paths):
        runs = _runs(path)
        if not runs:
            raise ValueError(f"there is no run in {path}: `natgrad run` makes one")
        for run in runs:
            found.setdefault(run.folder.resolve(), run)
    return list(found.values())


def load(folder: Path) -> Run:
    """One run; ValueError, in one line, where its files are not those of a run."""
    folder = Path(folder)
    files = content(folder, *FILES)
    if missing := [name for name in ("config.json", "history.jsonl") if folder / name not in files]:
        raise ValueError(f"there is no run in {folder}: it lacks {' and '.join(missing)}")
    return _run(folder, files)


def _runs(source: Path) -> list[Run]:
    """Those whose history is there."""
    files = content(source, *FILES)
    folders = [path.parent for path in files if path.name == "config.json"]
    return [_run(folder, files) for folder in folders if folder / "history.jsonl" in files]


def _run(folder: Path, files: Mapping[Path, bytes]) -> Run:
    config, result, history = (folder / name for name in FILES)
    known = check(parse_json(files[config], config), config, NEEDED, NEEDED_MORE)
    ended = check(parse_json(files[result], result), result, RESULT, RESULT_MORE) if result in files else {}
    return Run(folder, known, ended, parse(files[history], history))


def group(runs: Sequence[Run]) -> list[Group]:
    """Runs sorted by problem and by what else tells them apart, which is in the label.

    A limit such as the number of steps tells nothing apart: of the runs of one seed the one that went furthest counts.
    """
    mixed = {run.problem for run in runs if len({r.config["preset"] for r in runs if r.problem == run.problem}) > 1}
    title = lambda run: f"{run.problem} ({run.config['preset']})" if run.problem in mixed else run.problem
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        rivals = [r for r in runs if r.optimizer == run.optimizer and title(r) == title(run)]
        groups.setdefault((title(run), label(run, rivals)), []).append(run)
    order = sorted(groups.items(), key=lambda item: (item[0][0], rank(item[1][0].optimizer)))
    return [_group(problem, name, members) for (problem, name), members in order]


def _group(problem: str, name: str, members: Sequence[Run]) -> Group:
    furthest: dict[int, Run] = {}
    for run in members:
        seed = run.config["seed"]
        if seed not in furthest or run.steps > furthest[seed].steps:
            furthest[seed] = run
    return Group(problem, name, tuple(furthest.values()), len(members) - len(furthest))


def rank(optimizer: str) -> int:
    """The place of an optimizer in tables and legends."""
    return NAMES.index(optimizer) if optimizer in NAMES else len(NAMES)


def label(run: Run, rivals: Sequence[Run]) -> str:
    """The optimizer, and the options in which the run differs from the plain one.

    The plain run was asked only for what all rivals were asked for. Where there is none, or where several differ from
    each other, the label has all options that differ.
    """
    shared = set.intersection(*map(_asked, rivals))
    plain = [_options(r) for r in rivals if _asked(r) == shared]
    compared = plain[:1] if plain and all(options == plain[0] for options in plain) else map(_options, rivals)
    own, flat = _options(run), list(compared)
    differing = [key for key in own if any(repr(options.get(key)) != repr(own[key]) for options in flat)]
    extras = [str(own[key]) if key == "recipe" else f"{key.rpartition('.')[2]}={own[key]}" for key in differing]
    return run.optimizer + (f" ({', '.join(extras)})" if extras else "")


def _asked(run: Run) -> set[str]:
    """What was asked for on the command line, in place of the default."""
    defaults = {"recipe": "default", **MACHINE}
    return {*run.config["set"], *(f"{k}={v}" for k, v in _options(run).items() if k in defaults and v != defaults[k])}


def _options(run: Run) -> dict[str, Any]:
    """What makes it another experiment."""
    options = run.config["options"]
    machine = {name: run.config.get(name, default) for name, default in MACHINE.items()}
    return {"recipe": run.config["recipe"], **options["problem"], **options["solver"], **machine}
