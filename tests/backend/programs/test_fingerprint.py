"""Nothing stale: whatever a function reads, when it changes, the program is another one, and the numbers are right."""

import functools
import operator
import sys
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.backend import programs
from natgrad.backend.programs.fingerprint import fingerprint
from natgrad.backend.programs.identity import Unshareable

module = types.ModuleType("a_users_module")
module.nu = 1.0
module.inner = types.ModuleType("a_users_module.inner")
module.inner.nu = 1.0
nu = 1.0
table = {"nu": 1.0}
settings = types.SimpleNamespace(nu=1.0)


def helper(x):
    return nu * x


class Config:
    nu = 1.0


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor * x

    def by(self, x):
        return self.factor * x


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor


class Scaled(eqx.Module):
    factor: jax.Array

    def __call__(self, x):
        return self.factor * x


X = jnp.ones(3)


def run(fn):
    """Where the program came from, and what it gives."""
    program = programs.Program(fn, X)
    value = float(program(X)[0])
    return program.origin, value


def closure(factor):
    return lambda x: factor * x


def nested(factor):
    return lambda x: (lambda y: factor * y)(x)


def default(factor):
    return lambda x, factor=factor: factor * x


def keyword(factor):
    def scale(x, *, factor=factor):
        return factor * x

    return scale


def attribute(factor):
    scale = Slotted(factor)
    return lambda x: scale.factor * x


BUILDERS = {
    "closure": closure,
    "nested": nested,
    "default": default,
    "keyword": keyword,
    "slots": attribute,
    "partial": lambda factor: functools.partial(operator.mul, factor),
    "method": lambda factor: Scale(factor).by,
    "object": Scale,
    "module": lambda factor: Scaled(jnp.asarray(factor)),
    "array": lambda factor: closure(jnp.full(3, factor)),
    "numpy": lambda factor: closure(np.full(3, factor)),
    "container": lambda factor: lambda x, d={"a": [(factor,)]}: d["a"][0][0] * x,
    "vmap": lambda factor: jax.vmap(closure(factor)),
    "grad": lambda factor: jax.grad(lambda x: jnp.sum(factor * x)),
    "checkpoint": lambda factor: jax.checkpoint(closure(factor)),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_a_builder_called_again_compiles_nothing(name):
    programs.clear_cache()
    build = BUILDERS[name]
    assert run(build(2.0)) == ("new", 2.0)
    assert run(build(2.0)) == ("memory", 2.0)
    assert run(build(3.0)) == ("new", 3.0)


READERS = {
    "global": (lambda x: nu * x, lambda value: globals().__setitem__("nu", value)),
    "helper": (lambda x: helper(x), lambda value: globals().__setitem__("nu", value)),
    "nested": (lambda x: (lambda y: nu * y)(x), lambda value: globals().__setitem__("nu", value)),
    "comprehension": (lambda x: sum([nu * y for y in (x,)]), lambda value: globals().__setitem__("nu", value)),
    "dictionary": (lambda x: table["nu"] * x, lambda value: table.__setitem__("nu", value)),
    "namespace": (lambda x: settings.nu * x, lambda value: setattr(settings, "nu", value)),
    "module": (lambda x: module.nu * x, lambda value: setattr(module, "nu", value)),
    "module in a module": (lambda x: module.inner.nu * x, lambda value: setattr(module.inner, "nu", value)),
    "class": (lambda x: Config.nu * x, lambda value: setattr(Config, "nu", value)),
    "object of the class": (lambda x: Config().nu * x, lambda value: setattr(Config, "nu", value)),
    "another function": (lambda x: helper(x), lambda value: globals().__setitem__("helper", closure(value))),
}


@pytest.mark.parametrize("name", READERS)
def test_what_a_function_reads_is_seen(name, monkeypatch):
    """The same function object: JAX's own cache would use the program of before."""
    for known in ("nu", "helper"):
        monkeypatch.setitem(globals(), known, globals()[known])
    fn, change = READERS[name]
    programs.clear_cache()
    for value in (2.0, 3.0):
        change(value)
        assert run(fn) == ("new", value)
        assert run(fn) == ("memory", value)
    change(2.0)
    assert run(fn)[1] == 2.0
    change(1.0)


def test_arrays_changed_in_place_are_seen():
    factor = np.full(3, 2.0)
    fn, within = closure(factor), (lambda x, d={"a": factor}: d["a"] * x)
    programs.clear_cache()
    for each in (fn, within):
        factor[:] = 2.0
        assert run(each) == ("new", 2.0)
        factor[0] = 5.0
        assert run(each) == ("new", 5.0)


def test_code_changed_in_place_is_seen():
    def fn(x):
        return 2.0 * x

    programs.clear_cache()
    assert run(fn) == ("new", 2.0)
    fn.__code__ = (lambda x: 3.0 * x).__code__
    assert run(fn) == ("new", 3.0)


def test_a_method_changed_on_its_class_is_seen(monkeypatch):
    programs.clear_cache()
    assert run(Scale(2.0)) == ("new", 2.0)
    monkeypatch.setattr(Scale, "__call__", lambda self, x: self.factor * x + 1)
    assert run(Scale(2.0)) == ("new", 3.0)


def test_natgrad_itself_is_seen(monkeypatch):
    from natgrad import calculus

    parabola = lambda x: ng.laplacian(lambda y: jnp.sum(y**2), x) + 0 * x
    programs.clear_cache()
    assert run(parabola) == ("new", 6.0)
    assert run(parabola) == ("memory", 6.0)
    monkeypatch.setattr(calculus, "laplacian", lambda u, x: 1.0)
    assert run(parabola)[0] == "new"
    monkeypatch.setattr(ng, "laplacian", lambda u, x: 1.0)
    assert run(parabola) == ("new", 1.0)


def test_a_jitted_function_is_shared_while_it_is_the_same():
    double = jax.jit(closure(2.0))
    programs.clear_cache()
    assert run(double) == ("new", 2.0)
    assert run(double) == ("memory", 2.0)
    assert run(jax.jit(closure(2.0))) == ("new", 2.0)


@pytest.mark.parametrize("types_of", [(1, 1.0), (1, True), (0.0, -0.0), ((1, 2), [1, 2]), ("1", 1), (b"1", "1")])
def test_values_that_python_calls_equal_are_told_apart(types_of):
    first, second = types_of
    assert fingerprint(first) == fingerprint(first)
    assert fingerprint(first) != fingerprint(second)


def test_containers_end_where_they_begin():
    loop: list = [1]
    loop.append(loop)
    assert fingerprint(loop) == fingerprint(loop)
    assert fingerprint([[1], [2]]) != fingerprint([[1, 2]])


def test_an_address_that_is_used_again_is_not_taken_for_the_one_before():
    kinds = set()
    for _ in range(50):
        kinds.add(fingerprint(type("Kind", (), {})))
    assert len(kinds) == 50


def imports(x):
    import math

    return math.pi * x


def counts(x):
    global nu
    nu = 1.0
    return x


UNKNOWN = {
    "generator": closure(i for i in range(3)),
    "random numbers": lambda x: x * np.random.default_rng().normal(),
    "a generator's state": closure(np.random.default_rng(0)),
    "eval": lambda x: eval("nu") * x,
    "open": lambda x: x * len(open(__file__).read()),  # noqa: SIM115
    "import": imports,
    "global": counts,
    "a module as a whole": lambda x: getattr(module, "nu") * x,  # noqa: B009
    "an array of objects": closure(np.asarray([None], object)),
    "a subclass of an array": closure(np.ma.masked_array([1.0])),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_is_not_shared(name):
    with pytest.raises(Unshareable):
        fingerprint(UNKNOWN[name])


def test_what_is_not_shared_is_compiled_and_right():
    fn = lambda x: eval("nu") * x
    programs.clear_cache()
    assert run(fn) == ("new", nu)
    assert run(fn) == ("new", nu)


def test_large_arrays_are_not_read(monkeypatch):
    monkeypatch.setattr(sys.modules[fingerprint.__module__], "LARGEST", 100)
    fingerprint(np.zeros(10))
    with pytest.raises(Unshareable, match="large"):
        fingerprint(np.zeros(10), np.zeros(10))
