"""A step is compiled once for its shapes: resumed, from another seed, by an equal solver, for a problem built again."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.backend import programs
from tests.feinns import ritz, transport, triangles
from tests.helpers import poisson

pytestmark = pytest.mark.usefixtures("quick_compilation")
STEPS = 4
factor = 1.0


@pytest.fixture(autouse=True)
def _empty():
    programs.clear_cache()


def build(seed=0, rate=1.0, points=12, dtype=None):
    """u' = rate·factor·u, u(0) = 1."""
    key = jax.random.key(seed)
    line = ng.Box([0.0], [1.0])
    return ng.LeastSquares(
        ng.MLP(1, 1, 3, 1, key=key, dtype=dtype),
        pde=ng.Residual(lambda u, x: ng.gradient(u, x)[0] - rate * factor * u(x), line.interior(points, key=key)),
        start=ng.Residual(lambda u, x: u(x) - 1, jnp.zeros((1, 1))),
        exact=lambda x: jnp.exp(rate * factor * x[0]),
    )


def solve(problem, solver=None, steps=STEPS, **options):
    return ng.solve(problem, solver or ng.FullNGD(), steps, progress=False, **options)


def compiled(*args, **options):
    """A solution, and how many programs were compiled for it."""
    before = programs.COMPILATIONS["new"]
    solution = solve(*args, **options)
    return solution, programs.COMPILATIONS["new"] - before


def test_the_step_is_compiled_once():
    problem = build()
    first, count = compiled(problem)
    assert (count, first.compiled) == (2, "new")  # the step and the evaluation of errors
    calls = {
        "again": lambda: compiled(problem),
        "resumed": lambda: compiled(problem, resume=first),
        "longer": lambda: compiled(problem, steps=9),
        "another key": lambda: compiled(problem, key=jax.random.key(5)),
        "another start": lambda: compiled(problem, params=build(seed=3).params),
        "an equal solver": lambda: compiled(problem, ng.FullNGD()),
        "built again": lambda: compiled(build(seed=1)),
        "resumed, built again": lambda: compiled(build(), resume=solve(build())),
    }
    for name, call in calls.items():
        solution, count = call()
        assert (count, solution.compiled) == (0, "memory"), name
        assert solution.compile_time < first.compile_time


def test_resuming_keeps_the_bits():
    problem = build()
    whole = solve(problem, steps=8)
    resumed = solve(build(), steps=3, resume=solve(problem, steps=5))
    anew = solve(build(), steps=8, cache=False)
    for other in (resumed, anew):
        np.testing.assert_array_equal(whole.history.loss, other.history.loss)
        assert whole.errors == other.errors
        jax.tree.map(np.testing.assert_array_equal, whole.params, other.params)
    assert anew.compiled == "new"


def test_a_caller_gets_its_own_functions_back():
    """The program was made for another problem, whose functions are equal and other objects."""
    solve(build())
    problem = build(seed=1)
    solution = solve(problem)
    assert solution.compiled == "memory"
    assert jax.tree.structure(solution.params) == jax.tree.structure(problem.params)
    again = solve(problem, resume=solution)
    np.testing.assert_allclose(again.loss, problem.loss(again.params), rtol=1e-9)


CHANGES = {
    "a closure": (lambda: build(rate=2.0), {}),
    "an option of the solver": (build, {"solver": ng.FullNGD(gamma=3.0)}),
    "another solver": (build, {"solver": ng.Adam()}),
    "the number of points": (lambda: build(points=13), {}),
    "the dtype": (lambda: build(dtype=jnp.float32), {"solver": ng.Adam()}),
    "the group": (build, {"group": 3}),
}


@pytest.mark.filterwarnings("ignore:natural gradient descent in float32")
@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_the_step_compiles_it_anew(name):
    make, options = CHANGES[name]
    solve(build())
    shared, count = compiled(make(), **options)
    assert count >= 1
    assert shared.compiled == "new"
    alone = solve(make(), cache=False, **options)
    np.testing.assert_array_equal(shared.history.loss, alone.history.loss)


def test_a_global_that_changes_compiles_it_anew(monkeypatch):
    """As a notebook does: nu = …, solve, another nu, solve again with the same problem."""
    problem = build()
    first = solve(problem)
    monkeypatch.setitem(globals(), "factor", 2.0)
    second, count = compiled(problem)
    assert count == 2
    assert second.loss != first.loss
    np.testing.assert_array_equal(second.history.loss, solve(problem, cache=False).history.loss)


def test_settings_of_jax_compile_it_anew():
    problem = build()
    solve(problem)
    with jax.default_matmul_precision("highest"):
        assert compiled(problem)[1] == 2
    assert compiled(problem)[1] == 0
    program = programs.Program(jnp.cumsum, np.arange(3))
    wide = program(np.arange(3)).dtype
    with jax.enable_x64(False):
        narrow = programs.Program(jnp.cumsum, np.arange(3))
        assert narrow(np.arange(3)).dtype == jnp.int32
        assert narrow.origin == "new"
    assert wide == jnp.int64


def test_compiler_options_compile_it_anew():
    x = jnp.ones(3)
    for options in ({}, {"xla_cpu_enable_fast_math": True}):
        program = programs.Program(jnp.sin, x, options=options)
        program(x)
        assert program.origin == "new"


def test_two_programs_are_compiled_at_a_time(monkeypatch):
    threads = []
    compile_ = programs.Program.compile

    def spy(self):
        threads.append(threading.current_thread())
        compile_(self)

    problem = build()
    monkeypatch.setattr(programs.Program, "compile", spy)
    solve(problem)
    assert len(threads) == 2
    assert threads[0] is not threading.main_thread()
    assert threads[1] is threading.main_thread()


def test_settings_of_one_thread_hold_for_what_it_compiles(monkeypatch):
    """A thread for the compiler would not see them."""
    with jax.default_matmul_precision("highest"):
        solution = solve(build())
    assert np.isfinite(solution.loss)


def test_a_failure_in_the_thread_is_told(monkeypatch):
    x = jnp.ones(3)
    bad, good = programs.Program(jnp.sin, x, options={"no_such_option": 1}), programs.Program(jnp.cos, x)
    with pytest.raises(Exception, match="no_such_option"):
        programs.compile_together(bad, good)


def test_the_memory_is_bounded_and_holds_nothing_of_the_users(monkeypatch):
    monkeypatch.setattr(programs, "MOST", 3)
    for value in range(5):
        program = programs.Program(lambda x, value=value: value * x, jnp.ones(3))
        program(jnp.ones(3))
    assert len(programs._memory) == 3
    problem = build()
    watched = [weakref.ref(problem.features[0].evaluate.fn), weakref.ref(problem.features[0].inputs[0])]
    solution = solve(problem)
    del problem, solution
    jax.clear_caches()  # JAX remembers what it traced
    gc.collect()
    assert [watch() for watch in watched] == [None, None]
    assert compiled(build())[1] == 0
    ng.clear_cache()
    assert not programs._memory


def test_finite_elements_compile_once():
    first, count = compiled(ritz())
    assert count == 3  # the step, the errors, the values at the nodes
    again, count = compiled(ritz(), resume=first)
    assert (count, again.compiled) == (0, "memory")
    np.testing.assert_array_equal(again.history.loss, solve(ritz(), resume=first, cache=False).history.loss)


def test_a_factorization_is_shared_while_it_is_the_same():
    """SuperLU cannot be read; the problem that has it goes on without compiling, another one does not."""
    problem = transport(triangles())
    first, _ = compiled(problem)
    again, count = compiled(problem, resume=first)
    assert (again.compiled, count) == ("memory", 0)
    assert solve(transport(triangles())).compiled == "new"


def test_nystrom_of_a_problem_built_again():
    solver = lambda: ng.NystromNGD(max_rank=20)
    first = solve(poisson(seed=0), solver())
    second, count = compiled(poisson(seed=1), solver())
    assert (first.compiled, second.compiled, count) == ("new", "memory", 0)


DEVICES = """
import jax, sys
jax.config.update("jax_enable_x64", True)
import natgrad as ng
from natgrad.backend import programs
from tests.backend.programs.test_programs import build
new = lambda: programs.COMPILATIONS["new"]
run = lambda problem, **options: ng.solve(problem, ng.FullNGD(), 4, progress=False, **options)
alone = run(build())
counts = [new()]
for devices in (2, 4):
    problem = ng.shard(build(), ng.devices(devices))
    spread = run(problem)
    counts.append(new())
    assert abs(spread.loss - alone.loss) <= 1e-6 * alone.loss, (spread.loss, alone.loss)
    resumed = run(problem, resume=spread)
    again = run(ng.shard(build(seed=1), ng.devices(devices)))
    counts.append(new())
with jax.default_device(jax.devices()[3]):
    moved = run(build())
counts.append(new())
assert moved.params.layers[0].weight.devices() == {jax.devices()[3]}
print(*counts)
"""


def test_devices_take_part():
    """Another number of devices is another program; a resumed run on the same ones is not."""
    flags = "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-c", DEVICES]
    out = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stdout.split() == [
        "3",
        "5",
        "5",
        "7",
        "7",
        "10",
    ]  # the exact solution on its points is one, the first time
