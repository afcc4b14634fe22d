"""The range of every option, said once, in its annotation: the check, the message and the docs follow from it.

    class Backtracking(Checked):
        shrink: Fraction = eqx.field(static=True, default=0.5)
        max_trials: Count | None = eqx.field(static=True, default=None)
        form: Literal["strong", "weak"] = eqx.field(static=True, default="weak")

    Backtracking(shrink=2)  # ValueError: shrink must be a number in (0, 1), got 2

`Checked` is a module whose fields are looked at when it is built, `@checked` a function (a constructor, say) whose
arguments are; it gets an array of one number as that number. A range is `Annotated[float, Range(above=0, at_most=1)]`;
those with a name stand below. For mypy, and for everybody who reads annotations, it is the number's own type. Numbers,
words (`Literal`), flags, modules, tuples and unions of them are judged; any other annotation is left alone. NaN is in
no range and inf in those that say so; a flag is no number, nor is a text. `describe` gives the ranges to the docs.
"""

import contextlib
import dataclasses
import difflib
import functools
import inspect
import math
import numbers
import re
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import equinox as eqx
import jax
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
PLAIN = (bool, np.bool_, numbers.Number, str, bytes, types.NoneType)
NUMBERS = {int: ("an integer", numbers.Integral), float: ("a finite number", numbers.Real)}


@dataclass(frozen=True)
class Range:
    """Numbers between bounds, which belong to it (`at_least`, `at_most`) or not (`above`, `below`); inf if it may."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None
    infinite: bool = False

    def __contains__(self, value: float) -> bool:
        return (
            (math.isfinite(value) or (self.infinite and value == math.inf))
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def text(self, kind: type) -> str:
        """“a number in (0, 1]”, “a positive integer”."""
        low = self.above if self.at_least is None else self.at_least
        high = self.below if self.at_most is None else self.at_most
        noun = "integer" if kind is int else "number" if self.infinite else "finite number"
        if low is not None and high is not None:
            left, right = "(" if self.at_least is None else "[", ")" if self.at_most is None else "]"
            return (
                f"an integer from {low:g} to {high:g}" if kind is int else f"a number in {left}{low:g}, {high:g}{right}"
            )
        if self.above == 0 or (kind is int and self.at_least == 1):
            said = f"positive {noun}"
        elif self.at_least == 0:
            said = f"non-negative {noun}"
        elif low is not None:
            said = f"{noun} above {low:g}" if self.at_least is None else f"{noun} of at least {low:g}"
        elif high is not None:
            said = f"{noun} below {high:g}" if self.at_most is None else f"{noun} of at most {high:g}"
        else:
            said = noun
        return ("an " if said[0] == "i" else "a ") + said + (" or inf" if self.infinite else "")


Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(at_least=0)]
Fraction = Annotated[float, Range(above=0, below=1)]
Share = Annotated[float, Range(above=0, at_most=1)]
Factor = Annotated[float, Range(above=1)]
Count = Annotated[int, Range(at_least=1)]
Whole = Annotated[int, Range(at_least=0)]
Bytes = Positive | Annotated[str, "a size such as '8GB'"]


class Checked(eqx.Module):
    """A module whose options are in their ranges. What no range says, two options that do not go together, is a
    `__check_init__` of its own, which begins with `super().__check_init__()`."""

    def __check_init__(self):
        check_fields(self)


def check_fields(module: Any) -> None:
    """Refuses a dataclass one of whose fields is out of its range."""
    owner: Any = type(module)
    hints = annotations(owner)
    for field in dataclasses.fields(module):
        if field.name in hints and hasattr(module, field.name):
            check(field.name, getattr(module, field.name), hints[field.name])


def checked(function: F) -> F:
    """The function, of which no argument is out of its range."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:  # the call itself says it best
            return function(*args, **kwargs)
        hints = annotations(function)
        for name, value in given.arguments.items():
            if name in hints and text(hints[name]):
                given.arguments[name] = plain(value)
                check(name, given.arguments[name], hints[name])
        return function(*given.args, **given.kwargs)

    return typing.cast(F, call)


def plain(value: Any) -> Any:
    """An array of one number that is known as the number; anything else as it is."""
    known = isinstance(value, np.ndarray | jax.Array) and not isinstance(value, jax.core.Tracer)
    return value.item() if known and value.ndim == 0 and jax.dtypes.issubdtype(value.dtype, np.number) else value


def check(name: str, value: Any, kind: Any) -> None:
    """Refuses a value that its annotation rules out."""
    kinds = _alternatives(kind)
    if text(kind) and not any(_fits(value, k, alone=len(kinds) == 1) for k in kinds):
        raise ValueError(f"{name} must be {text(kind)}, got {_shown(value)}{_hint(value, kinds)}")


def text(kind: Any) -> str:
    """What an annotation allows, in words; empty where it says nothing of numbers, words, flags and modules."""
    kinds = _alternatives(kind)
    texts = [said for k in kinds if (said := _text(k))]
    if len(texts) < len(kinds) and all(_is_module(k) for k in kinds if _text(k)):
        return ""  # a module, or what nothing is known of
    return " or ".join(texts) if len(texts) < 3 else ", ".join(texts[:-1]) + " or " + texts[-1]


def describe(owner: type | Callable) -> dict[str, tuple[Any, str]]:
    """{option: (its default, what it may be)} of a module or a function; `inspect.Parameter.empty` is no default."""
    none = inspect.Parameter.empty
    if dataclasses.is_dataclass(owner) and "__init__" not in vars(owner):
        fields = {f.name: none if f.default is dataclasses.MISSING else f.default for f in dataclasses.fields(owner)}
    else:
        fields = {p.name: p.default for p in inspect.signature(owner).parameters.values()}
        owner = getattr(owner, "__init__", owner) if isinstance(owner, type) else owner
    hints = annotations(owner)
    return {name: (default, said) for name, default in fields.items() if (said := text(hints.get(name, Any)))}


def table(owner: type | Callable, name: str | None = None) -> str:
    """The ranges as Markdown, one line per option."""
    shown = lambda default: "required" if default is inspect.Parameter.empty else f"`{default!r}`"
    rows = [f"| `{option}` | {shown(default)} | {said} |" for option, (default, said) in describe(owner).items()]
    return "\n".join([f"| {name or owner.__name__} | default | may be |", "|---|---|---|", *rows])


def budget(value: Bytes | None) -> int | None:
    """The converter of a field `memory`: a text becomes a number."""
    return None if value is None else parse_bytes("memory", value)


def parse_bytes(name: str, value: float | str) -> int:
    """Bytes: `8GB`, `500 MB`, `1e9`, or the number itself."""
    if not isinstance(value, str):
        check(name, value, Positive)
        return int(value)
    found = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)(i?)b?\s*", value.lower())
    try:
        number = float(found[1]) * (1024 if found[3] else 1000) ** " kmgt".index(found[2] or " ") if found else 0.0
    except ValueError:
        number = 0.0
    if not 1 <= number < 2**62:
        raise ValueError(f"{name} takes a size such as 8GB or 500MB, got {value!r}")
    return int(number)


@functools.cache
def annotations(owner: Callable[..., Any]) -> dict[str, Any]:
    """Annotations by name, inherited ones too; without those in quotes that only a type checker can resolve."""
    found: dict[str, Any] = {}
    for part in reversed(owner.__mro__) if isinstance(owner, type) else (owner,):
        names = vars(sys.modules[part.__module__]) if part.__module__ in sys.modules else {}
        for name, kind in inspect.get_annotations(part).items():
            with contextlib.suppress(NameError):
                found[name] = eval(kind, names) if isinstance(kind, str) else kind
    return found


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def _fits(value: Any, kind: Any, alone: bool) -> bool:
    """Whether one alternative of an annotation allows a value; what is judged by nothing passes, unless it is a plain
    number, a word or None beside others that are."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind in NUMBERS or origin is Annotated:
        number, bounds = (args[0], _range(args)) if origin is Annotated else (kind, Range())
        if number not in NUMBERS or bounds is None:
            return _fits(value, number, alone)
        return _is_number(value, number) and value in bounds
    if kind in (None, types.NoneType):
        return value is None
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is str:
        return isinstance(value, str)
    if origin is Literal:
        return isinstance(value, PLAIN) and any(type(value) is type(choice) and value == choice for choice in args)
    if (origin is tuple or origin is Sequence) and _text(kind):
        return (isinstance(value, tuple | list) or np.ndim(value) == 1) and _items_fit(value, args)
    if _is_module(kind):
        return isinstance(value, kind)
    return alone or not isinstance(value, PLAIN)


def _items_fit(values: Sequence[Any], kinds: tuple[Any, ...]) -> bool:
    if len(kinds) == 1 or kinds[-1] is Ellipsis:
        return all(_any_fits(value, kinds[0]) for value in values)
    return len(values) == len(kinds) and all(map(_any_fits, values, kinds))


def _any_fits(value: Any, kind: Any) -> bool:
    kinds = _alternatives(kind)
    return any(_fits(value, k, alone=len(kinds) == 1) for k in kinds)


def _is_module(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, eqx.Module)


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, NUMBERS[kind][1]) and not isinstance(value, bool | np.bool_)


def _range(args: tuple[Any, ...]) -> Range | None:
    return next((a for a in args[1:] if isinstance(a, Range)), None)


def _text(kind: Any) -> str:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        bounds, words = _range(args), [a for a in args[1:] if isinstance(a, str)]
        return bounds.text(args[0]) if bounds is not None and args[0] in NUMBERS else (words or [_text(args[0])])[0]
    if kind in NUMBERS:
        return NUMBERS[kind][0]
    if kind in (None, types.NoneType):
        return "None"
    if kind is bool:
        return "True or False"
    if kind is str:
        return "a word"
    if origin is Literal:
        return " or ".join(map(repr, args)) if len(args) < 3 else "one of " + ", ".join(map(repr, args))
    if origin is tuple or origin is Sequence:
        several = len(args) == 1 or args[-1] is Ellipsis
        inner = text(args[0]) if several else "; ".join(map(text, args))
        return (f"a sequence, each {inner}" if several else f"({inner})") if inner else ""
    if _is_module(kind):
        return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    return ""


def suggest(name: str, known: Iterable[str]) -> str:
    """“did you mean …?” where a known name is close, and all known names."""
    known = tuple(known)
    close = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return (f"did you mean {close[0]}? There" if close else "there") + f" are {', '.join(known) or 'none'}"


def _shown(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, eqx.Module) or callable(value):
        return f"{type(value).__name__}"
    if isinstance(value, jax.core.Tracer):
        return "a value that is known only when the compiled function runs"
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic):
        return f"an array {value.dtype}{list(value.shape)}"
    return reprlib.repr(value.item() if isinstance(value, np.generic) else value)


def _hint(value: Any, kinds: Sequence[Any]) -> str:
    words = [c for k in kinds if typing.get_origin(k) is Literal for c in typing.get_args(k) if isinstance(c, str)]
    close = difflib.get_close_matches(value, words, n=1) if isinstance(value, str) else []
    if close:
        return f": did you mean {close[0]!r}?"
    return f": write {value.__name__}(…)" if isinstance(value, type) and issubclass(value, eqx.Module) else ""
