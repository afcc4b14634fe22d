"""What a value is, in bytes: equal fingerprints, equal programs.

A compiled program may be used again where tracing would give the same one. Tracing reads a function's code, defaults
and closure, the globals that its code names, and all these in the functions it calls. So a fingerprint holds them all,
by value, as they are now: numbers and strings, arrays by their bytes, containers and plain Python objects by what they
hold, functions by code and surroundings. A global that was bound anew, a default, a NumPy array changed in place, an
attribute of a module or of a class gives another fingerprint.

What belongs to a library (`LIBRARIES`, and the parts of the standard library that only compute) is known by identity: a
number that is never given twice. Its functions are not read; what they close over, `jax.vmap(f)` over f, is. Everything
whose value cannot be known for certain, a generator, a file, a foreign object in C, a function that calls `eval` or
sets globals, raises `Unshareable`: a program with it is compiled anew every time.
"""

import collections
import enum
import functools
import hashlib
import struct
import sys
import types
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from natgrad.backend.programs.identity import COMPUTING, Unshareable, belongs_to_library, is_library, token
from natgrad.backend.programs.names import names

LARGEST = 2**26  # bytes of arrays that are read for one fingerprint
DENIED = {"__import__", "compile", "eval", "exec", "globals", "id", "input", "locals", "open"}  # builtins
ATOMS = (type(None), bool, int, str, bytes, type(...), type(NotImplemented), range)
DESCRIPTORS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
MADE_WITH_THE_CLASS = {
    "__abstractmethods__", "__annotate__", "__annotate_func__", "__annotations__", "__annotations_cache__",
    "__dataclass_fields__", "__dataclass_params__", "__dict__", "__doc__", "__firstlineno__", "__module__",
    "__orig_bases__", "__parameters__", "__qualname__", "__weakref__", "_abc_impl",
}  # fmt: skip
JITTED = type(jax.jit(lambda: None))
CACHED = type(functools.lru_cache(lambda: None))


def fingerprint(*values: Any) -> bytes:
    """The values in bytes; `Unshareable` where one of them is not known."""
    reader = Fingerprint()
    try:
        for value in values:
            reader.value(value)
    except Unshareable:
        raise
    except Exception as error:  # a user's object may do anything when it is looked at, or be too deep
        raise Unshareable(str(error)) from error
    return reader.hash.digest()


class Fingerprint:
    """Reads values one after another; what was read before is named by its number, so that cycles end."""

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(digest_size=32)
        self.seen: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no number of `seen` is taken by another object meanwhile
        self.left = LARGEST

    def feed(self, *words: Any) -> None:
        """Words of plain Python, each with its type and length."""
        for word in words:
            data = word if isinstance(word, bytes) else repr(word).encode()
            self.hash.update(f"{type(word).__name__}:{len(data)}:".encode())
            self.hash.update(data)

    def value(self, obj: Any) -> None:
        """Anything."""
        kind = type(obj)
        if kind in ATOMS:
            self.feed(obj)
        elif kind in (float, complex):
            self.feed(kind.__name__, struct.pack("dd", complex(obj).real, complex(obj).imag))
        elif id(obj) in self.seen:
            self.feed("again", self.seen[id(obj)])
        else:
            self.seen[id(obj)] = len(self.seen)
            self.kept.append(obj)
            self.first(obj)

    def first(self, obj: Any) -> None:
        """Anything that was not read before."""
        kind = type(obj)
        if kind is not types.ModuleType and belongs_to_library(obj):
            self.feed("library", token(obj, forever=True))
        elif isinstance(obj, type):
            self.type(obj)
        else:
            among = (read for base, read in BASES if isinstance(obj, base))
            (EXACT.get(kind) or next(among, Fingerprint.instance))(self, obj)

    def items(self, obj: Iterable[Any]) -> None:
        """A container in its order: equal sets in another order are read as others, which only costs a compilation."""
        values = list(obj)
        self.feed(type(obj).__name__, len(values))
        for value in values:
            self.value(value)

    def mapping(self, obj: Any) -> None:
        self.feed(type(obj).__name__, len(obj))
        for key, value in obj.items():
            self.value(key)
            self.value(value)

    def array(self, obj: Any) -> None:
        """An array by its bytes."""
        if isinstance(obj, jax.core.Tracer) or not getattr(obj, "is_fully_addressable", True):
            raise Unshareable("an array without values")
        if isinstance(obj, jax.Array):
            devices = sorted(str(device) for device in obj.sharding.device_set)
            self.feed("jax", str(obj.dtype), bool(getattr(obj, "weak_type", False)), str(obj.sharding), devices)
            if jax.dtypes.issubdtype(obj.dtype, jax.dtypes.prng_key):
                obj = jax.random.key_data(obj)
        if obj.dtype.hasobject:
            raise Unshareable("an array of objects")
        self.left -= obj.nbytes
        if self.left < 0:
            raise Unshareable("large arrays")
        values = np.asarray(obj)
        self.feed("array", str(values.dtype), values.shape, values.tobytes())

    def module(self, obj: types.ModuleType) -> None:
        """A module that code holds as it is, so that nobody knows what it reads of it: one of a library, then."""
        if not is_library(obj.__name__):
            raise Unshareable(f"the module {obj.__name__}")
        self.feed("module", obj.__name__, token(obj))

    def code(self, obj: types.CodeType) -> None:
        self.feed("code", obj.co_code, obj.co_names, obj.co_varnames, obj.co_freevars, obj.co_cellvars, obj.co_flags)
        self.feed(obj.co_argcount, obj.co_posonlyargcount, obj.co_kwonlyargcount, obj.co_exceptiontable)
        self.value(obj.co_consts)

    def function(self, obj: types.FunctionType) -> None:
        """Code, defaults, attributes, closure, and the globals that the code names."""
        name = str(obj.__globals__.get("__name__"))
        library = is_library(name) and vars(sys.modules.get(name, types)) is obj.__globals__
        chains = None
        if library:
            self.feed("code of a library", token(obj.__code__))
        else:
            self.code(obj.__code__)
            chains = names(obj.__code__)
            if chains is None:
                raise Unshareable("a function that imports or sets globals")
            self.globals(obj, chains)
        self.value(obj.__defaults__)
        self.value(obj.__kwdefaults__)
        self.value(obj.__dict__)
        for cell_name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:
                self.feed("empty")
                continue
            self.reached(content, [()] if chains is None else chains.get(cell_name, [()]))

    def globals(self, obj: types.FunctionType, chains: dict[str, list[tuple[str, ...]]]) -> None:
        """What the names in its code mean at present."""
        builtins = obj.__globals__.get("__builtins__", {})
        builtins = builtins if isinstance(builtins, dict) else vars(builtins)
        for name in sorted(chains.keys() - set(obj.__code__.co_freevars)):
            self.feed(name)
            if name in obj.__globals__:
                self.reached(obj.__globals__[name], chains[name])
            elif name in DENIED:
                raise Unshareable(f"a function that calls {name}")
            else:
                self.value(builtins.get(name, NotImplemented))

    def reached(self, root: Any, chains: list[tuple[str, ...]]) -> None:
        """What code reads of an object: all of it, but of a module the attributes it names (`module.nu`)."""
        if not isinstance(root, types.ModuleType):
            self.value(root)
            return
        for chain in sorted(chains):
            value: Any = root
            for name in chain:
                if not isinstance(value, types.ModuleType):
                    break
                if value.__name__.startswith("numpy.random") or value.__name__ in sys.stdlib_module_names - COMPUTING:
                    raise Unshareable(f"the state of {value.__name__}")
                self.feed(name)
                value = getattr(value, name, NotImplemented)
            self.value(value)

    def builtin(self, obj: Any) -> None:
        """A function in C: its name and what it is bound to."""
        owner = obj.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            name = owner.__name__ if owner is not None else obj.__module__
            if not is_library(name) or obj.__name__ in DENIED:
                raise Unshareable(f"{name}.{obj.__name__}")
            self.feed("builtin", name, obj.__name__, token(obj, forever=True))
        else:
            self.feed("builtin", obj.__name__)
            self.value(owner)

    def type(self, obj: type) -> None:
        """A class: itself, and, of a user's, what is in it at present."""
        self.feed("class", token(obj, forever=is_library(obj.__module__)))
        if is_library(obj.__module__):
            return
        self.value(obj.__bases__)
        for name, value in vars(obj).items():
            if name not in MADE_WITH_THE_CLASS:
                self.feed(name)
                self.value(value)

    def instance(self, obj: Any) -> None:
        """An object of a class written in Python: its class and its attributes."""
        kind = type(obj)
        if is_library(kind.__module__) and getattr(kind, "known_by_identity", False) is True:
            self.feed("itself", token(obj))
            return
        slots = [
            name
            for part in kind.__mro__
            for name, value in vars(part).items()
            if isinstance(value, types.MemberDescriptorType) and name not in ("__dict__", "__weakref__")
        ]
        pointers = len(slots) + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
        hidden = kind.__basicsize__ - object.__basicsize__ - struct.calcsize("P") * pointers
        if hidden > 0 or kind.__itemsize__ or not kind.__flags__ & 1 << 9:  # made in C, with a state of its own
            raise Unshareable(f"an object of {kind.__module__}.{kind.__qualname__}")
        self.feed("instance")
        self.value(kind)
        for name in slots:
            self.feed(name)
            self.value(getattr(obj, name, NotImplemented))
        self.value(getattr(obj, "__dict__", None))

    def structure(self, tree: Any) -> None:
        """A treedef: the classes of the nodes and what is static in them."""
        data = tree.node_data()
        self.feed("node", len(tree.children()))
        if data is not None:
            self.value(data[0])
            self.value(data[1])
        for child in tree.children():
            self.structure(child)

    def mesh(self, obj: Any) -> None:
        self.feed("mesh", obj.axis_names, obj.devices.shape, str(getattr(obj, "axis_types", None)))
        self.items(list(obj.devices.flat))


def _parts(*names: str) -> Any:
    """Reads an object by the attributes that make it up."""

    def read(self: Fingerprint, obj: Any) -> None:
        self.feed(type(obj).__name__)
        for name in names:
            self.value(getattr(obj, name))

    return read


def _jitted(self: Fingerprint, obj: Any) -> None:
    """`jax.jit` hides its options: it is known by identity, and by the function in it, whose globals may change."""
    self.feed("jit", token(obj))
    self.value(obj.__wrapped__)


def _named(self: Fingerprint, obj: Any) -> None:
    self.feed("named", type(obj).__name__, obj.__name__)
    self.value(obj.__objclass__)


def _tuple(self: Fingerprint, obj: Any) -> None:
    """A named tuple: its class and what is in it."""
    self.feed("tuple")
    self.value(type(obj))
    self.value(getattr(obj, "__dict__", None))
    self.value(tuple(obj))


def _partial(self: Fingerprint, obj: Any) -> None:
    self.feed("partial")
    for part in (type(obj), obj.func, obj.args, obj.keywords, obj.__dict__):
        self.value(part)


def _scalar(self: Fingerprint, obj: Any) -> None:
    self.feed("scalar", str(obj.dtype), obj.tobytes())


def _member(self: Fingerprint, obj: Any) -> None:
    self.feed("enum", obj.name)
    self.value(type(obj))


def _device(self: Fingerprint, obj: Any) -> None:
    self.feed("device", obj.platform, obj.id, obj.process_index)


EXACT: dict[type, Any] = {
    types.FunctionType: Fingerprint.function,
    np.ndarray: Fingerprint.array,
    tuple: Fingerprint.items,
    list: Fingerprint.items,
    set: Fingerprint.items,
    frozenset: Fingerprint.items,
    dict: Fingerprint.mapping,
    collections.OrderedDict: Fingerprint.mapping,
    types.MappingProxyType: Fingerprint.mapping,
    types.SimpleNamespace: _parts("__dict__"),
    slice: _parts("start", "stop", "step"),
    types.MethodType: _parts("__self__", "__func__"),
    types.BuiltinFunctionType: Fingerprint.builtin,
    staticmethod: _parts("__func__"),
    classmethod: _parts("__func__"),
    property: _parts("fget", "fset", "fdel"),
    functools.cached_property: _parts("func", "attrname"),
    CACHED: _parts("__wrapped__", "__dict__"),
    JITTED: _jitted,
    types.CodeType: Fingerprint.code,
    types.ModuleType: Fingerprint.module,
    jax.sharding.Mesh: Fingerprint.mesh,
    jax.tree_util.PyTreeDef: Fingerprint.structure,
    object: lambda self, obj: self.feed("object", token(obj, forever=True)),
    **dict.fromkeys(DESCRIPTORS, _named),
}
BASES: tuple[tuple[type, Any], ...] = (
    (enum.Enum, _member),
    (jax.Array, Fingerprint.array),
    (np.generic, _scalar),
    (np.dtype, lambda self, obj: self.feed("dtype", str(obj))),
    (tuple, _tuple),
    (functools.partial, _partial),
    (jax.Device, _device),
)
