"""The registry of benchmark problems: one file for each problem, and the file's name is the problem's name.

    benchmark = zoo.get("poisson3d")                       # imports natgrad/zoo/poisson3d.py, and nothing else
    preset = benchmark.preset("small")
    problem = benchmark.problem(jax.random.key(0), "small", width=16)
    solution = ng.solve(problem, ng.NystromNGD(max_rank=300), steps=preset.steps["ngd"])

A problem file has a function `build(key, *, …) -> Problem`, whose typed keyword arguments are the options of the
problem, and ends with `benchmark = register(Benchmark(…))`. An evolution equation has a function
`evolution(key, *, …) -> Evolution` too, or alone, with `build=whole(evolution)`. To add a problem to natgrad, add its
file; to add one at run time, call `register(Benchmark(…))`.
"""

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxtyping import PRNGKeyArray

from natgrad.backend import host
from natgrad.options import checked, suggest
from natgrad.problem import Evolution, Problem

BUDGETS = ("ngd", "bfgs", "lbfgs", "ssbroyden", "adam")


def budget(ngd: int, quasi_newton: int, adam: int) -> dict[str, int]:
    """The `steps` of a preset, the same for BFGS, L-BFGS and SSBroyden."""
    return dict(zip(BUDGETS, (ngd, quasi_newton, quasi_newton, quasi_newton, adam), strict=True))


@dataclass(frozen=True)
class Preset:
    """A size of a problem, and how long the optimizers may work on it. The algorithm is the recipe's: "paper" is the
    paper's set-up to the letter only together with the published recipe.

    Attributes:
        options: keyword arguments of `build`.
        steps: the budget of each kind of optimizer: "ngd" (all natural-gradient ones), "bfgs", "lbfgs", "ssbroyden",
            "adam".
        solver: options of the natural-gradient optimizers in the default recipe, e.g. {"max_rank": 300}. An optimizer
            that does not have an option (a rank, for the direct one) ignores it.
        published: the same in the published recipe. In both, "damping" is a rule's class (or a partial of it), which is
            called with `gamma=…`; without it the recipe's own rule holds.
        as_published: options of `build` that differ in the published recipe: the paper's own points, or metric.
        windows: how many windows of time `natgrad run` marches through by default, or the times they are between; the
            steps are those of each.
        via: {option: values}, at which `natgrad run` trains first by default, in turn, before the option's own; the
            steps are those of each.
        error: the relative error, in the benchmark's `norm`, that NystromNGD(**solver) reaches after steps["ngd"]: at
            least twice what `natgrad run` measured with seed 0 (docs/zoo.md). None where it was not measured.
    """

    options: Mapping[str, Any]
    steps: Mapping[str, int]
    solver: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Any] = field(default_factory=dict)
    error: float | None = None
    as_published: Mapping[str, Any] = field(default_factory=dict)
    windows: int | str | list[float] | None = None
    via: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self):
        if set(self.steps) != set(BUDGETS):
            raise ValueError(f"a preset's steps are budgets for {', '.join(BUDGETS)}, got {', '.join(self.steps)}")

    def solver_options(self, recipe: str = "default") -> dict[str, Any]:
        """The options of the optimizer in a recipe."""
        return dict(self.published if recipe == "published" else self.solver)

    def build_options(self, recipe: str = "default") -> dict[str, Any]:
        """The options of `build` in a recipe."""
        return {**self.options, **(self.as_published if recipe == "published" else {})}


@dataclass(frozen=True)
class Picture:
    """What a plot of a solution needs.

    Attributes:
        lower, upper: the corners of a box around the domain.
        coordinates: their names, e.g. ("t", "x", "y"); time, where there is one, comes first.
        fields: {name: (select, exact)}: `select(network)` is a function of one point x (d,) to a number, and `exact`
            the exact one, or None where there is none.
        at: the values of the coordinates that a picture holds fixed by default, so that two remain (one for d = 1).
        inside: whether a point x (d,) lies in the domain; None where the domain is the box.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    coordinates: tuple[str, ...]
    fields: Mapping[str, tuple[Callable[[Any], Callable], Callable | None]]
    at: Mapping[str, float] = field(default_factory=dict)
    inside: Callable | None = None

    def __post_init__(self):
        if not len(self.lower) == len(self.upper) == len(self.coordinates):
            raise ValueError("a picture needs as many coordinate names as its box has dimensions")
        if unknown := [name for name in self.at if name not in self.coordinates]:
            raise ValueError(f"a picture holds fixed {unknown}, which are not among {self.coordinates}")


def scalar(exact: Callable | None) -> dict[str, tuple[Callable[[Any], Callable], Callable | None]]:
    """The `fields` of a picture of a network that is the solution itself."""
    return {"u": (lambda u: u, exact)}


def components(
    names: Iterable[str], exact: Callable | None
) -> dict[str, tuple[Callable[[Any], Callable], Callable | None]]:
    """The `fields` of a picture of a network with several outputs, in their order."""

    def at(i: int, u: Callable) -> Callable:
        return lambda x: u(x)[i]

    return {name: (functools.partial(at, i), None if exact is None else at(i, exact)) for i, name in enumerate(names)}


@dataclass(frozen=True)
class Benchmark:
    """A benchmark problem.

    Attributes:
        name, title, equation: one line of text each.
        build: `build(key, *, options…) -> Problem`; the annotations say what the options may be (`natgrad.options`).
        presets: "small", which two cores solve within two minutes of stepping; for problems of the paper also "paper",
            its sizes and budgets.
        fields: `fields(options) -> Picture`, where `options` are those of `build` that differ from their defaults.
        norm: the norm of the errors that the presets state: "h1", or "l2" where derivatives are out of reach.
        evolution: of an evolution equation `evolution(key, *, options…) -> Evolution`, with the options of `build`:
            what `natgrad run NAME --windows 8` marches through. `build` may be `whole(evolution)`.
    """

    name: str
    title: str
    equation: str
    build: Callable[..., Problem]
    presets: Mapping[str, Preset]
    fields: Callable[[Mapping[str, Any]], Picture]
    norm: str = "h1"
    evolution: Callable[..., Evolution] | None = None

    def __post_init__(self):
        object.__setattr__(self, "build", checked(self.build))
        if self.evolution is not None:
            object.__setattr__(self, "evolution", checked(self.evolution))

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options of `build` by name, each with its `.default` and `.annotation`."""
        parameters = inspect.signature(self.build).parameters.values()
        return {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY}

    def preset(self, name: str = "small") -> Preset:
        """A preset by name."""
        if name not in self.presets:
            raise ValueError(f"unknown preset {name!r} of {self.name}: {suggest(name, self.presets)}")
        return self.presets[name]

    def problem(
        self, key: PRNGKeyArray | int, preset: str = "small", recipe: str = "default", **options: Any
    ) -> Problem:
        """The problem of a preset, some of its options replaced."""
        chosen = {**self.preset(preset).build_options(recipe), **self.check(options)}
        return self.build(host.as_key(key), **chosen)

    def windows(
        self, key: PRNGKeyArray | int, preset: str = "small", recipe: str = "default", **options: Any
    ) -> Evolution:
        """The evolution equation of a preset, as `ng.march` takes it; ValueError where the problem is none."""
        chosen = {**self.preset(preset).build_options(recipe), **self.check(options)}
        return self.marched()(host.as_key(key), **chosen)

    def marched(self) -> Callable[..., Evolution]:
        """`evolution`, if there is one."""
        if self.evolution is None:
            raise ValueError(f"{self.name} has no windows of time: there are no initial values to march from")
        return self.evolution

    def check(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options themselves, if all of them are the problem's."""
        for name in options:
            if name not in self.options:
                raise ValueError(f"unknown option {name!r} of {self.name}: {suggest(name, self.options)}")
        return options


def whole(evolution: Callable[..., Evolution]) -> Callable[..., Problem]:
    """The `build` of an evolution equation by one network for all times."""

    @functools.wraps(evolution)
    def build(key: PRNGKeyArray, **options: Any) -> Problem:
        return evolution(key, **options).whole()

    return build


_REGISTERED: dict[str, Benchmark] = {}


def register(benchmark: Benchmark) -> Benchmark:
    """Makes a benchmark known by its name, and gives it back: `register(Benchmark("mine", …))`, then `get("mine")`."""
    if "small" not in benchmark.presets:
        raise ValueError(f"problem {benchmark.name!r} needs a preset named small")
    _REGISTERED[benchmark.name] = benchmark
    return benchmark


def names() -> tuple[str, ...]:
    """The names of all problems, in alphabetical order, without importing any of them.

    for name in zoo.names():
        print(zoo.get(name).equation)
    """
    files = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return tuple(sorted({*_REGISTERED, *(name for name in files if name != "registry" and name[0] != "_")}))


def get(name: str) -> Benchmark:
    """The problem of that name: `zoo.get("poisson3d").problem(jax.random.key(0), "small", width=16)`."""
    if name not in names():
        raise ValueError(f"unknown problem {name!r}: {suggest(name, names())}")
    if name not in _REGISTERED:
        importlib.import_module(f"natgrad.zoo.{name}")
    return _REGISTERED[name]
