"""Runs in stages: windows of time, or other values of an option before the problem itself.

    natgrad run burgers --windows 8
    natgrad run cavity --set reynolds=1000 --via reynolds=100,400

The record of a run has `windows`, or `via`: {"reynolds": [100.0, 400.0]}. With neither it has one stage.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from natgrad import zoo
from natgrad.experiment.settings import parse
from natgrad.problem import Problem
from natgrad.stages.continuation import check_values

STAGES = ("windows", "via")
NONE = "none"  # where the preset has some


def staged(record: Mapping[str, Any]) -> bool:
    """Whether a run is one of several stages, whose parameters are a tuple."""
    return any(name in record for name in STAGES)


def parse_via(text: str, benchmark: zoo.Benchmark) -> dict[str, list[Any]]:
    """What `--via` says: an option of the problem, and its values in turn; nothing for none."""
    if text == NONE:
        return {}
    name, _, values = (part.strip() for part in text.partition("="))
    if not values:
        raise ValueError(f"--via takes an option and its values, such as reynolds=100,400, or {NONE}, got {text!r}")
    benchmark.check({name: values})
    option = benchmark.options[name]
    return {
        name: [parse(f"problem.{name}", part.strip(), option.annotation, option.default) for part in values.split(",")]
    }


def via_text(via: Mapping[str, Sequence[Any]] | None) -> str | None:
    """What `--via` would say for a record's `via`; None where the record has none."""
    return next((f"{name}={','.join(map(str, values))}" for name, values in (via or {}).items()), None)


def values_in_turn(record: Mapping[str, Any]) -> tuple[float, ...]:
    """The values of a record's `via`, and that of the problem itself."""
    ((name, first),) = record["via"].items()
    values = (*first, record["options"]["problem"][name])
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise ValueError(f"--via takes an option that is a number, and {name} is none")
    try:
        return check_values(values)
    except ValueError as error:
        raise ValueError(f"--via {via_text(record['via'])}: with the problem's own {name}, {error}") from None


def problem_of(record: Mapping[str, Any], build: Callable[..., Problem]) -> Callable[[float], Problem]:
    """The problem of one of those values."""
    options = record["options"]["problem"]
    ((name, first),) = record["via"].items()
    known = {float(value): value for value in (*first, options[name])}
    return lambda value: build(**{**options, name: known[value]})
