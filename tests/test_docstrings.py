"""Every public name is explained: what it is, the shapes it takes, and an example or where it comes from."""

import importlib
import inspect
import re
import types
from importlib.util import find_spec

import pytest

import natgrad as ng
import natgrad.interop.optax
import natgrad.zoo

MODULES = [ng, ng.fem, ng.metrics, ng.damping, natgrad.zoo, natgrad.interop.optax]
MODULES += [importlib.import_module(f"natgrad.interop.{name}") for name in ("optimistix", "lineax") if find_spec(name)]

#: A doctest, a call in backticks or in an indented line; or a year, the paper, an equation, a section.
EXAMPLE = re.compile(r">>> |`[^`]*\([^`]*`|\n {4}.*\w\(.*\)")
REFERENCE = re.compile(r"\b(19|20)\d\d\b|\bpaper\b|\beqs?\. |\b[Ss]ection\b|\bAlgorithm|\bTheorem\b|module's header")
ARRAY = re.compile(r"Float|Int\[|Bool\[|\bArray\b|ndarray")


def public():
    """(name, object) of what these modules define or pass on of natgrad."""
    for module in MODULES:
        for name, value in vars(module).items():
            ours = (getattr(value, "__module__", None) or "").startswith(module.__name__)
            if not name.startswith("_") and ours and not isinstance(value, types.ModuleType) and callable(value):
                yield pytest.param(value, id=f"{module.__name__}.{name}")


def explanation(value):
    """The docstring of its own: one that is inherited, or made by a dataclass, explains nothing."""
    doc = (vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__) or ""
    return "" if doc.startswith(f"{value.__name__}(") else doc


@pytest.mark.parametrize("value", list(public()))
def test_public_names_have_substance(value):
    doc = explanation(value)
    assert len(doc.split()) >= 8, f"{value.__name__}: {doc!r} says too little"
    assert EXAMPLE.search(doc) or REFERENCE.search(doc), f"{value.__name__} has neither an example nor a reference"


@pytest.mark.parametrize("value", [p for p in public() if inspect.isfunction(p.values[0])])
def test_functions_of_arrays_tell_their_shapes(value):
    """By jaxtyping, or by words such as (n, d)."""
    if "->" in str(inspect.signature(value)) and ARRAY.search(str(inspect.signature(value))):
        told = str(inspect.signature(value)) + explanation(value)
        assert re.search(r"'[ #*\w]*'|\([\w×·, ]*,[\w ]*\)", told), f"{value.__name__} does not say its shapes"
