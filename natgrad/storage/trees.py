"""Modules, states and records as JSON and arrays, and back: by the names of their classes, without running their code.

    MLP(…) ↦ {"class": "natgrad.networks.MLP", "fields": {"activation": {"function": "jax.numpy.tanh"}, …}}

Classes are those of natgrad, Equinox and Optax, put together field by field as Equinox does it. Functions are those
that JAX and the zoo have a name for. Anything else cannot be described (`Nameless`), and is loaded into a template.
"""

import dataclasses
import importlib
import math
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

from natgrad.storage import container

PACKAGES = ("natgrad", "equinox", "optax")  # of the classes
FUNCTIONS = ("jax.numpy", "jax.nn", "jax.lax", "jax.scipy.special")
OWN_FUNCTIONS = ("natgrad.zoo.", "natgrad.domains.")


class Nameless(ValueError):
    """Something that only the code which made it can make again."""


class Describer:
    """Describes values, and keeps their arrays; those it is given first have the first places."""

    def __init__(self, arrays: Iterable[Any] = ()):
        self.arrays = list(arrays)
        self.places = {id(array): place for place, array in enumerate(self.arrays)}

    def try_to(self, value: Any, name: str) -> Any:
        """The description, or the reason why there is none."""
        count = len(self.arrays)
        try:
            return self(value, name)
        except Nameless as reason:
            for array in self.arrays[count:]:
                del self.places[id(array)]
            del self.arrays[count:]
            return {"missing": str(reason)}

    def __call__(self, value: Any, name: str) -> Any:
        """The description of a value that is called `name` in messages."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, jax.Array | np.ndarray):
            return self._array(value)
        if type(value) is list:
            return [self(entry, f"{name}[{i}]") for i, entry in enumerate(value)]
        if type(value) is tuple:
            return {"tuple": [self(entry, f"{name}[{i}]") for i, entry in enumerate(value)]}
        if type(value) is dict and all(isinstance(key, str) for key in value):
            return {"dict": {key: self(entry, f"{name}.{key}") for key, entry in value.items()}}
        return self._object(value, name)

    def _array(self, array: Any) -> Any:
        place = self.places.setdefault(id(array), len(self.arrays))
        if place == len(self.arrays):
            self.arrays.append(array)
        if container.is_key(array):
            return {"key": place, "kind": str(jax.random.key_impl(array))}
        return {"array": place}

    def _object(self, value: Any, name: str) -> Any:
        kind = type(value)
        fields, path = _fields(kind), class_name(kind)
        if fields is not None and path is not None:
            parts = {field: getattr(value, field) for field in fields}
            return {"class": path, "fields": {field: self(part, f"{name}.{field}") for field, part in parts.items()}}
        if callable(value) and (function := function_name(value)) is not None:
            return {"function": function}
        if fields is None and callable(value):
            raise Nameless(f"{name} is a function, which a file cannot hold")
        raise Nameless(f"{name} is of the class {kind.__name__}, which is not natgrad's")


def rebuild(described: Any, arrays: Sequence[Any]) -> Any:
    """What `Describer` described, with its arrays."""
    again = lambda part: rebuild(part, arrays)
    match described:
        case None | bool() | int() | float() | str():
            return described
        case list():
            return [again(part) for part in described]
        case {"float": text}:
            return float(text)
        case {"tuple": parts}:
            return tuple(again(part) for part in parts)
        case {"dict": parts}:
            return {key: again(part) for key, part in parts.items()}
        case {"array": place}:
            return container.exact(arrays[place])
        case {"key": place, "kind": kind}:
            return container.wrap(arrays[place], kind)
        case {"function": path}:
            return _function(path)
        case {"class": path, "fields": parts}:
            return _assemble(path, {name: again(part) for name, part in parts.items()})
    raise ValueError(f"it has something that this natgrad does not know: {str(described)[:60]}")


def class_name(kind: type) -> str | None:
    """Where a class of natgrad, Equinox or Optax is found: in its room, where that has it; None for any other."""
    parts = kind.__module__.split(".")
    for home in (".".join(parts[:2]), kind.__module__):
        if parts[0] in PACKAGES and _find(home, kind.__qualname__) is kind:
            return f"{home}.{kind.__qualname__}"
    return None


def function_name(function: Any) -> str | None:
    """Where a function of JAX's or of the zoo's is found; None for any other."""
    name = getattr(function, "__name__", "")
    for module in FUNCTIONS:
        if name.isidentifier() and getattr(importlib.import_module(module), name, None) is function:
            return f"{module}.{name}"
    home = getattr(function, "__module__", None) or ""
    own = home.startswith(OWN_FUNCTIONS) and _find(home, name) is function
    return f"{home}.{name}" if own else None


def _function(path: str) -> Any:
    home, _, name = path.rpartition(".")
    if home in FUNCTIONS or home.startswith(OWN_FUNCTIONS):
        found = _find(home, name)
        if callable(found) and function_name(found) == path:
            return found
    raise ValueError(f"this natgrad has no function {path}")


def _assemble(path: str, parts: dict[str, Any]) -> Any:
    """An object of its fields, as Equinox puts modules together: no constructor runs."""
    home, _, name = path.rpartition(".")
    kind = _find(home, name) if home.partition(".")[0] in PACKAGES else None
    fields = _fields(kind) if isinstance(kind, type) else None
    if fields is None or set(fields) != set(parts):
        raise ValueError(f"another version of the class {path} made it")
    if issubclass(kind, tuple):  # type: ignore[arg-type]
        return kind(**parts)  # type: ignore[misc]
    made = object.__new__(kind)  # type: ignore[arg-type]
    for field, part in parts.items():
        object.__setattr__(made, field, part)
    return made


def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of the fields of a dataclass or a named tuple; None for any other class."""
    if issubclass(kind, tuple):
        return getattr(kind, "_fields", None)
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def _find(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name, None)
    except ImportError:
        return None
