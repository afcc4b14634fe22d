"""The optimizers by name, and every option of theirs by path.

A solver is a tree of modules: `direction.preconditioner.max_rank` is the field of a field of a field. Any field that
is a number, a word or a flag is an option, and so is the class of a part (`search=GridSearch`). An option is addressed
by its path or by any end of it that is unique (`max_rank`), so that nothing is listed twice.
"""

import dataclasses
import importlib
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

import equinox as eqx

from natgrad.experiment.settings import parse
from natgrad.optim import NGD, FullNGD, KernelNGD, MatrixFreeNGD, NaturalGradient, NystromNGD, Polish, RPCholNGD
from natgrad.optim import damping as dampings
from natgrad.optim.direction import Direction
from natgrad.optim.linesearch import Armijo, GridSearch, LineSearch
from natgrad.optim.recipes import RECIPES, owners
from natgrad.options import suggest
from natgrad.plan import plan
from natgrad.precondition import Preconditioner
from natgrad.problem import Problem


def _baseline(name: str) -> Callable[..., Any]:
    """A factory that is imported when it is called: a baseline costs nothing until it is used."""
    return lambda **options: getattr(importlib.import_module("natgrad.optim.baselines"), name)(**options)


NATURAL: dict[str, Callable[..., Any]] = {
    "auto": NGD,
    "ngd-full": FullNGD,
    "ngd-matrix-free": MatrixFreeNGD,
    "nystrom": NystromNGD,
    "nystrom-gaussian": partial(NystromNGD, test="gaussian"),
    "nystrom-sampling": partial(NystromNGD, test="sampling"),
    "rpcholesky": RPCholNGD,
    "kernel": KernelNGD,
    "polish": Polish,
}
ONE_RECIPE = ("auto", "polish")
BASELINES: dict[str, Callable[..., Any]] = {
    "bfgs": _baseline("BFGS"),
    "ssbroyden": _baseline("SSBroyden"),
    "lbfgs": _baseline("LBFGS"),
    "adam": _baseline("Adam"),
}
NAMES = (*NATURAL, *BASELINES)
RULES: dict[str, type] = {
    name: getattr(dampings, name)
    for name in ("Relative", "Spectral", "LossPower", "GradientPower", "Geometric", "LevenbergMarquardt")
}
PARTS: dict[str, dict[str, type]] = {  # the parts of a solver that can be exchanged by name
    "search": {"Armijo": Armijo, "GridSearch": GridSearch},
    "damping": RULES,  # without a guard; the guard stays where damping.rule is exchanged
    "rule": RULES,
}

KINDS: dict[str, type] = {"search": LineSearch, "damping": dampings.Damping, "rule": dampings.Damping}


def check(name: str) -> str:
    """The name itself, if an optimizer has it."""
    if name not in NAMES:
        raise ValueError(f"unknown optimizer {name!r}: {suggest(name, NAMES)}")
    return name


def kind(name: str) -> str:
    """The key of an optimizer's budget in a preset's `steps`."""
    return "ngd" if name in NATURAL else name


def build(name: str, recipe: str, preset: Mapping[str, Any], steps: int) -> Any:
    """An optimizer with a preset's options (those it has) and, where it has a schedule, the number of steps."""
    check(name)
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: {suggest(recipe, RECIPES)}")
    if name in BASELINES:  # one recipe: theirs
        return BASELINES[name](total=steps) if name == "adam" else BASELINES[name]()
    if name in ONE_RECIPE and recipe == "published":
        raise ValueError(
            f"the optimizer {name} has no published recipe: name one that has, --optimizer nystrom for one"
        )
    solver = NATURAL[name]() if name in ONE_RECIPE else NATURAL[name](recipe=recipe)
    for option, value in preset.items():
        if option == "damping":
            continue
        if paths := _matching(option, options(solver)):
            solver = replace(solver, paths[0], value)
    rule = preset.get("damping")
    if rule and hasattr(solver, "damping"):
        solver = replace(solver, "damping", rule(**_gamma(solver.damping)))
    return solver


def options(solver: Any, prefix: str = "") -> dict[str, Any]:
    """{path: value} of everything that can be set; the value of a part is the name of its class."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(solver) if dataclasses.is_dataclass(solver) else ():
        value, path = getattr(solver, field.name), prefix + field.name
        if isinstance(value, eqx.Module):
            found[path] = type(value).__name__
            found |= options(value, path + ".")
        elif isinstance(value, bool | int | float | str | tuple | None):
            found[path] = value
    return found


def set_option(solver: Any, key: str, text: str) -> Any:
    """The solver with one option, given as text, replaced."""
    known = options(solver)
    paths = _matching(key, known)
    if not paths:
        raise ValueError(missing(key, "solver option", {path.rpartition(".")[2] for path in known}))
    if len(paths) > 1:
        raise ValueError(f"the option {key!r} is ambiguous: write one of {', '.join(f'solver.{p}' for p in paths)}")
    return replace(solver, paths[0], _value(solver, paths[0], text))


def missing(key: str, what: str, known: Collection[str]) -> str:
    """What is wrong with an option that this optimizer does not have."""
    name = key.rpartition(".")[2]
    if found := owners(name):
        return f"the option {name!r} would do nothing with this optimizer: it is one of {found}"
    return f"unknown {what} {key!r}: {suggest(name, sorted(known))}"


def _matching(key: str, known: Mapping[str, Any]) -> list[str]:
    return [key] if key in known else [path for path in known if path.endswith("." + key)]


def _value(solver: Any, path: str, text: str) -> Any:
    """An option's text as a value: of its field's type, or the part of that name."""
    *above, last = path.split(".")
    owner = solver
    for name in above:
        owner = getattr(owner, name)
    old, choices = getattr(owner, last), PARTS.get(last, {})
    if not isinstance(old, eqx.Module) and not (old is None and choices):
        kinds = {field.name: field.type for field in dataclasses.fields(owner)}
        return parse(path, text, kinds[last], old)
    if old is not None and not isinstance(old, KINDS.get(last, ())):
        raise ValueError(f"{path} is {type(old).__name__} and cannot be exchanged: choose another optimizer")
    if text not in choices:
        raise ValueError(f"unknown {last} {text!r}: {suggest(text, choices)}")
    return choices[text](**(_gamma(old) if last != "search" else {}))


def _gamma(damping: Any) -> dict[str, float]:
    """γ of a rule, with a guard around it or without; nothing where there is no rule yet."""
    return {} if damping is None else {"gamma": getattr(damping, "rule", damping).gamma}


def replace(solver: Any, path: str, value: Any) -> Any:
    """The solver with the option at a path replaced; every module on the way checks itself anew."""
    name, _, rest = path.partition(".")
    return dataclasses.replace(solver, **{name: replace(getattr(solver, name), rest, value) if rest else value})


def planned(solver: Any, problem: Problem, memory: int | None, known: Mapping[str, Any] | None) -> Any:
    """The solver with nothing left open, by `natgrad.plan`; or as in `known`, the plan of the run to go on with: by
    the memory or the device of another day it might be another one."""
    return restore(known["solver"], known) if known and "direction" in known else plan(solver, problem, memory)


def record_of(solver: Any) -> dict[str, Any]:
    """A planned solver in words: its class, and its options by path."""
    return {"solver": type(solver).__name__, **options(solver)}


def restore(name: str, known: Mapping[str, Any], prefix: str = "") -> Any:
    """The part of that class whose options `record_of` has put down."""
    values: dict[str, Any] = {}
    kinds = _kinds()
    for field in dataclasses.fields(kinds[name]):
        path = prefix + field.name
        if path not in known:
            continue
        value = known[path]
        if isinstance(value, str) and value in kinds:
            value = restore(value, known, path + ".")
        values[field.name] = tuple(value) if isinstance(value, list) else value
    return kinds[name](**values)


def _kinds() -> dict[str, type]:
    """Every class that a solver is made of, by name."""
    found: dict[str, type] = {}
    left: list[type] = [NaturalGradient, Direction, Preconditioner, LineSearch, dampings.Damping]
    while left:
        kind = left.pop()
        found[kind.__name__] = kind
        left += kind.__subclasses__()
    return found
