"""What a run is: the problem, the optimizer and every option of both, with a fingerprint of all that shapes the result.

`Config` is what was asked for; `prepare` checks it and builds the problem and the solver, before anything is written.
"""

import hashlib
import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, NamedTuple

import jax
from jaxtyping import PRNGKeyArray

from natgrad import __version__, zoo
from natgrad.backend.parallel import devices, shard
from natgrad.experiment import optimizers
from natgrad.experiment.settings import parse, split_setting
from natgrad.experiment.staged import NONE, STAGES, parse_via, problem_of, staged, values_in_turn
from natgrad.gramian.choose import available_memory, size_in_words
from natgrad.optim.resample import complete
from natgrad.options import parse_bytes, suggest
from natgrad.problem import Evolution, Problem
from natgrad.stages.times import course, parse_windows
from natgrad.storage.files import plain

FORMAT = 1  # of config.json
EVALUATIONS = 200  # of the error in the course of a run, about, where nothing else is asked for
IDENTITY = ("problem", "optimizer", "recipe", "preset", "seed", "evaluate_every", "options", "dtype")
IDENTITY_OF_STAGES = (*STAGES, "steps")  # a stage that has ended takes no more steps
MAX_SEED = 2**63 - 1
LAST = 2**32 - 1  # a key folded in with it is no key that a problem splits off


class Keys(NamedTuple):
    """The keys of a run."""

    problem: PRNGKeyArray
    solver: PRNGKeyArray


def keys(seed: int) -> Keys:
    """What a problem and its solver draw from; that of the problem is `jax.random.key(seed)`, as everywhere."""
    key = jax.random.key(seed)
    return Keys(problem=key, solver=jax.random.fold_in(key, LAST))


@dataclass(frozen=True)
class Config:
    """A run as it was asked for; None is left to the preset (or, for a resumed run, to its folder)."""

    problem: str
    optimizer: str = "auto"
    preset: str = "small"
    recipe: str = "default"
    seed: int = 0
    steps: int | None = None
    evaluate_every: int | None = None
    target_error: float | None = None
    time_limit: float | None = None
    settings: tuple[str, ...] = ()
    devices: int | None = None
    memory: str | None = None
    windows: str | None = None
    via: str | None = None

    @property
    def folder(self) -> str:
        """Where the run goes by default."""
        recipe = "" if self.recipe == "default" else f"-{self.recipe}"
        changed = "".join(f"-{name}={getattr(self, name)}" for name in STAGES if getattr(self, name) is not None)
        changed += "".join(f"-{key.rpartition('.')[2]}={value}" for key, value in map(split_setting, self.settings))
        name = f"{self.optimizer}{recipe}-{self.preset}{changed}-seed{self.seed}"
        return f"runs/{self.problem}/{''.join(c if c.isalnum() or c in '-=._+' else '_' for c in name)}"

    def command(self) -> list[str]:
        """The command line that repeats it."""
        words = ["natgrad", "run", self.problem, "--optimizer", self.optimizer, "--preset", self.preset]
        words += ["--recipe", self.recipe, "--seed", str(self.seed)]
        for name in ("steps", "evaluate_every", "target_error", "time_limit", *STAGES, "devices", "memory"):
            if getattr(self, name) is not None:
                words += [f"--{name.replace('_', '-')}", str(getattr(self, name))]
        return words + [word for setting in self.settings for word in ("--set", setting)]


@dataclass(frozen=True)
class Prepared:
    """A config with everything decided, and the objects it stands for."""

    config: Config
    record: dict[str, Any]  # config.json
    problem: Problem
    solver: Any
    rows: int  # those that fill up the devices aside
    stages: Callable | None = None  # of windows of time, of which `problem` is the first, or of the values of an option


def prepare(config: Config, known: dict[str, Any] | None = None, share: int = 1) -> Prepared:
    """Checks a config and builds its problem and solver; `known` is the config.json of the run to be resumed.

    So many runs `share` the memory.
    """
    known = known or {}
    solver, record = resolve(config, known)
    mesh = devices(config.devices) if config.devices is not None or jax.process_count() > 1 else None
    stages, problem = _build(config, record, mesh)
    if record["target_error"] is not None and problem.norms is None:
        raise ValueError(f"--target-error needs an exact solution, and {config.problem} has none")
    rows, problem = problem.num_rows, problem if mesh is None else shard(problem, mesh)
    budget = _budget(config.memory, problem, share)
    solver = optimizers.planned(solver, problem, budget, known.get("plan"))
    record |= {"format": FORMAT, "plan": optimizers.record_of(solver)}
    record = plain(_finite(record)) | {"dtype": str(problem.dtype)}
    solver = complete(solver, problem)
    record |= {"devices": 1 if mesh is None else mesh.size, "processes": jax.process_count(), "memory": config.memory}
    record["fingerprint"] = fingerprint(record)
    limits = {name: record[name] for name in ("steps", "evaluate_every", "target_error", "time_limit")}
    record["command"] = replace(config, **limits).command()
    record["versions"] = versions()
    return Prepared(config, record, problem, solver, rows, stages)


def resolve(config: Config, known: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The solver and all options: what can be checked without building the problem."""
    benchmark = zoo.get(config.problem)
    preset = benchmark.preset(config.preset)
    optimizers.check(config.optimizer)
    steps = _positive_int("--steps", config.steps, known.get("steps", preset.steps[optimizers.kind(config.optimizer)]))
    every = _positive_int("--evaluate-every", config.evaluate_every, known.get("evaluate_every"))
    limits = {}
    for name in ("target_error", "time_limit"):
        limits[name] = value = known.get(name) if getattr(config, name) is None else getattr(config, name)
        if value is not None and not (value > 0 and math.isfinite(value)):
            raise ValueError(f"--{name.replace('_', '-')} must be positive, got {value}")
    if not 0 <= config.seed <= MAX_SEED:
        raise ValueError(f"--seed must be between 0 and {MAX_SEED}, got {config.seed}")

    solver = optimizers.build(config.optimizer, config.recipe, preset.solver_options(config.recipe), steps)
    of_problem, of_solver = _sort(config.settings, benchmark, solver)
    chosen = {name: parameter.default for name, parameter in benchmark.options.items()}
    chosen |= preset.build_options(config.recipe)
    for key, text in of_problem:
        chosen[key] = parse(f"problem.{key}", text, benchmark.options[key].annotation, benchmark.options[key].default)
    # Parts first: the options of a part that is exchanged are those of the new one.
    for key, text in sorted(of_solver, key=lambda pair: pair[0].rpartition(".")[2] not in optimizers.PARTS):
        solver = optimizers.set_option(solver, key, text)
    record: dict[str, Any] = {
        **{name: getattr(config, name) for name in ("problem", "optimizer", "recipe", "preset", "seed")},
        "steps": steps,
        "evaluate_every": every or max(1, steps // EVALUATIONS),
        **limits,
        "options": {"problem": chosen, "solver": optimizers.options(solver)},
        "set": list(config.settings),
        "norm": benchmark.norm,
    }
    if (windows := preset.windows if config.windows is None else parse_windows(config.windows)) is not None:
        benchmark.marched()
        record["windows"] = windows
    via = preset.via if config.via is None else parse_via(config.via, benchmark)
    if via:
        record["via"] = {name: list(values) for name, values in via.items()}
        values_in_turn(record)
    if "windows" in record and "via" in record:
        raise ValueError(f"a run has windows of time, or values in turn: leave --windows out, or give --via {NONE}")
    return solver, record


def asked(config: Config) -> dict[str, Any]:
    """The record of a config as far as it is known without building its problem."""
    return plain(_finite(resolve(config, {})[1]))


def fingerprint(record: dict[str, Any]) -> str:
    """SHA-256 of what shapes the parameters and the history, the length of the run aside."""
    identity = {name: record.get(name) for name in (*IDENTITY, "plan")}
    identity |= {name: record[name] for name in IDENTITY_OF_STAGES if staged(record) and name in record}
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def difference(record: dict[str, Any], other: dict[str, Any]) -> str | None:
    """The first thing in which two runs differ, in words; None where the one can go on where the other stopped."""
    more = IDENTITY_OF_STAGES if staged(record) or staged(other) else ()
    for name in (*IDENTITY, *more):
        ours, theirs = record.get(name), other.get(name)
        if ours != theirs and name == "options":
            for group in ("problem", "solver"):
                a, b = ((side or {}).get(group, {}) for side in (ours, theirs))
                for key in sorted({*a, *b}):
                    if a.get(key) != b.get(key):
                        return f"{group}.{key} is {b.get(key)} there and {a.get(key)} here"
        if ours != theirs:
            return f"{name} is {theirs} there and {ours} here"
    return None


def versions() -> dict[str, str]:
    """The versions of all that computes; natgrad's is what it says itself, since a checkout need not be installed."""
    others = {name: metadata.version(name) for name in ("jax", "jaxlib", "equinox", "numpy")}
    return {"python": platform.python_version(), "natgrad": __version__, **others}


def _sort(settings: Sequence[str], benchmark: zoo.Benchmark, solver: Any) -> tuple[list, list]:
    """The settings of the problem and those of the solver, as (key, text)."""
    of_problem, of_solver = [], []
    _check_once(settings)
    names = {path.rpartition(".")[2] for path in optimizers.options(solver)}
    parts = {key.removeprefix("solver.") for key, _ in map(split_setting, settings)} & set(optimizers.PARTS)
    for key, text in map(split_setting, settings):
        group, dot, rest = key.partition(".")
        if dot and group in ("problem", "network"):
            _check_known(rest, benchmark)
            of_problem.append((rest, text))
        elif dot and group == "solver":
            of_solver.append((rest, text))
        elif key in benchmark.options and key.rpartition(".")[2] in names:
            raise ValueError(f"the option {key!r} is ambiguous: write problem.{key} or solver.{key}")
        elif key in benchmark.options:
            of_problem.append((key, text))
        elif key.rpartition(".")[2] in names or parts:
            of_solver.append((key, text))
        else:
            raise ValueError(optimizers.missing(key, "option", {*benchmark.options, *names}))
    return of_problem, of_solver


def _check_once(settings: Sequence[str]) -> None:
    """No option twice: `width` and `problem.width` are the same, and so are `gamma` and `damping.rule.gamma`."""
    seen: list[tuple[str, str]] = []
    for key, value in map(split_setting, settings):
        path = "." + key.removeprefix("solver.").removeprefix("problem.").removeprefix("network.")
        for other, before in seen:
            if path.endswith(other) or other.endswith(path):
                raise ValueError(f"--set gives {key} twice, {before} and {value}: give it once")
        seen.append((path, value))


def _check_known(name: str, benchmark: zoo.Benchmark) -> None:
    if name not in benchmark.options:
        raise ValueError(f"unknown option {name!r} of {benchmark.name}: {suggest(name, benchmark.options)}")


def _budget(memory: str | None, problem: Problem, share: int) -> int | None:
    """What a budget leaves each run for the arrays of a step on a device, beside those of the problem."""
    if memory is None:
        return None if share == 1 else available_memory() // share
    arrays = [leaf for leaf in jax.tree.leaves(problem) if isinstance(leaf, jax.Array)]
    held = sum(shard.data.nbytes for array in arrays for shard in array.addressable_shards[:1])
    budget = parse_bytes("--memory", memory) // share
    if held >= budget:
        runs = f" for each of {share} runs" if share > 1 else ""
        raise ValueError(f"--memory {memory} is{runs} less than the problem's own arrays, {size_in_words(held)}")
    return budget - held


@dataclass(frozen=True)
class ShardedEvolution:
    """An evolution equation whose windows are spread over devices."""

    evolution: Evolution
    mesh: Any

    @property
    def interval(self) -> tuple[float, float]:
        return self.evolution.interval

    def __call__(self, t0: float, t1: float, start: Callable | None) -> Problem:
        return shard(self.evolution(t0, t1, start), self.mesh)


def _build(config: Config, record: dict[str, Any], mesh: Any) -> tuple[Callable | None, Problem]:
    """What gives the problems of the stages, where there are some, and the problem, of windows the first one, on one
    device; numbers no problem can be built with are the user's mistake, in one line."""
    benchmark, options = zoo.get(config.problem), record["options"]["problem"]
    try:
        if "windows" not in record:
            build = lambda **options: benchmark.build(keys(config.seed).problem, **options)
            one_of = problem_of(record, build) if "via" in record else None
            spread = one_of if mesh is None or one_of is None else lambda value: shard(one_of(value), mesh)
            return spread, build(**options)
        evolution = benchmark.marched()(keys(config.seed).problem, **options)
        first = course(evolution, record["windows"], record["steps"], None, None).next([])
        assert first is not None
        return evolution if mesh is None else ShardedEvolution(evolution, mesh), first.build(None)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        given = f" with {', '.join(config.settings)}" if config.settings else ""
        raise ValueError(f"{benchmark.name} cannot be built{given}: {reason}") from error


def _positive_int(name: str, value: int | None, otherwise: Any) -> Any:
    if value is not None and (not isinstance(value, int) or value < 1):
        raise ValueError(f"{name} must be a positive integer, got {value}")
    return otherwise if value is None else value


def _finite(value: Any) -> Any:
    """inf as a word, so that JSON keeps it."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
