"""`--set key=value`: text from the command line, checked against the type of the option it is meant for."""

import math
import types
import typing
from typing import Any

WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def split_setting(text: str) -> tuple[str, str]:
    """key=value."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise ValueError(f"--set takes key=value, got {text!r}; for example --set problem.width=16")
    return key.strip(), value.strip()


def parse(name: str, text: str, kind: Any, default: Any = None) -> Any:
    """The value of an option given as text; `kind` is its annotation, or anything if its default must do."""
    if not _known(kind):
        kind = type(default) if default is not None else str
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:  # a range, see `natgrad.options`: whoever takes the value checks it
        return parse(name, text, typing.get_args(kind)[0], default)
    if origin in (typing.Union, types.UnionType):
        return _union(name, text, typing.get_args(kind), default)
    if origin is typing.Literal:
        choices = typing.get_args(kind)
        for choice in choices:
            if text == str(choice):
                return choice
        raise ValueError(f"{name} is one of {', '.join(map(str, choices))}, got {text!r}")
    if kind is tuple or origin is tuple:
        inner = [k for k in typing.get_args(kind) if k is not Ellipsis]
        parts = [part for part in text.strip("()[] ").split(",") if part.strip()]
        if len(inner) > 1 and len(parts) != len(inner):
            raise ValueError(f"{name} takes {len(inner)} values separated by commas, got {text!r}")
        kinds = inner if len(inner) > 1 else (inner or [float]) * len(parts)
        return tuple(parse(name, part.strip(), k) for part, k in zip(parts, kinds, strict=True))
    return _scalar(name, text, kind)


def _known(kind: Any) -> bool:
    return kind in (bool, int, float, str, tuple, types.NoneType) or typing.get_origin(kind) is not None


def _union(name: str, text: str, kinds: tuple[Any, ...], default: Any) -> Any:
    if types.NoneType in kinds and text.lower() in ("none", "null"):
        return None
    for kind in (k for k in kinds if k is not types.NoneType):
        try:
            return parse(name, text, kind, default)
        except ValueError as problem:
            error = problem
    raise error


def _scalar(name: str, text: str, kind: Any) -> Any:
    if kind is bool:
        if text.lower() not in WORDS:
            raise ValueError(f"{name} is true or false, got {text!r}")
        return WORDS[text.lower()]
    if kind in (int, float):
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if kind is float and not math.isnan(value):
            return value
        if kind is int and math.isfinite(value) and value == int(value):
            return int(text) if text.lstrip("+-").isdigit() else int(value)
        raise ValueError(f"{name} is {'an integer' if kind is int else 'a number'}, got {text!r}")
    return text
