"""What is known by identity: the objects of libraries, by a number that no other object ever gets."""

import itertools
import sys
import weakref
from typing import Any

import numpy as np

LIBRARIES = {
    "equinox", "flax", "jax", "jaxlib", "jaxtyping", "lineax", "ml_dtypes", "natgrad", "numpy", "optax", "optimistix",
    "scipy", "skfem",
}  # fmt: skip
COMPUTING = {
    "abc", "builtins", "cmath", "collections", "contextlib", "copy", "dataclasses", "enum", "fractions", "functools",
    "itertools", "math", "numbers", "operator", "types", "typing", "typing_extensions", "warnings", "__future__",
    "_functools", "_operator", "_collections",
}  # fmt: skip
NOT_KNOWN = ("natgrad.zoo", "numpy.random")  # the first is read like a user's module, the second has a hidden state


class Unshareable(Exception):
    """Its value is not known for certain."""


_numbers: dict[int, tuple[Any, int]] = {}
_count = itertools.count()


def token(obj: Any, *, forever: bool = False) -> int:
    """A number for the object itself, which no other ever gets; `forever` keeps objects that cannot be watched."""
    found = _numbers.get(id(obj))
    if found is not None and found[0]() is obj:
        return found[1]
    key = id(obj)
    try:
        watch: Any = weakref.ref(obj, lambda gone: _numbers.pop(key, None) if _known_by(key, gone) else None)
    except TypeError:
        if not forever:
            raise Unshareable(type(obj).__name__) from None
        watch = lambda: obj
    _numbers[key] = watch, next(_count)
    return _numbers[key][1]


def _known_by(key: int, watch: Any) -> bool:
    return key in _numbers and _numbers[key][0] is watch


def is_library(module: Any) -> bool:
    """Whether a module of this name only computes, and is not changed while a program runs."""
    if not isinstance(module, str) or any(module == name or module.startswith(name + ".") for name in NOT_KNOWN):
        return False
    top = module.partition(".")[0]
    return top in LIBRARIES or top in COMPUTING


def belongs_to_library(obj: Any) -> bool:
    """Whether a module of a library has it under its own name: then it is that library's, and nothing else's."""
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", getattr(obj, "__name__", None))
    if isinstance(obj, np.ufunc):
        module = "numpy"
    if not isinstance(name, str) or not is_library(module):
        return False
    found: Any = sys.modules.get(module)  # type: ignore[arg-type]
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is obj
