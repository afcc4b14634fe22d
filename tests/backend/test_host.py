"""NumPy on the host gives what JAX would have given, and the start of a run compiles next to nothing."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.backend import host

KEYS = [jax.random.key(0), jax.random.key(2**32 - 1), jax.random.fold_in(jax.random.key(7), 3), jax.random.PRNGKey(5)]


def words(key):
    return np.asarray(key if key.dtype == jnp.uint32 else jax.random.key_data(key))


@pytest.mark.parametrize("key", KEYS, ids=range(4))
@pytest.mark.parametrize("shape", [(), (1,), (1000, 3), (5, 2, 7)])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_uniform_numbers_are_those_of_jax_to_the_last_bit(key, shape, dtype):
    u, reference = host.uniform(key, shape, dtype), jax.random.uniform(key, shape, dtype)
    assert isinstance(u, np.ndarray)
    assert u.dtype == reference.dtype
    np.testing.assert_array_equal(u, reference)


@pytest.mark.parametrize("key", KEYS, ids=range(4))
@pytest.mark.parametrize("num", [1, 2, 5])
def test_split_keys_are_those_of_jax(key, num):
    found, reference = host.split(key, num), jax.random.split(key, num)
    assert [k.dtype for k in found] == [key.dtype] * num
    np.testing.assert_array_equal(np.stack([words(k) for k in found]), words(reference))


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1])
def test_a_key_is_that_of_its_seed(seed):
    np.testing.assert_array_equal(words(host.key(seed)), words(jax.random.key(seed)))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("key", KEYS, ids=range(4))
def test_glorot_start_is_that_of_jax_up_to_round_off(key, dtype):
    weight, reference = (
        host.glorot_normal(key, (32, 20), dtype),
        jax.nn.initializers.glorot_normal()(key, (32, 20), dtype),
    )
    assert weight.dtype == reference.dtype
    assert jnp.max(jnp.abs(weight - reference)) < 8 * jnp.finfo(dtype).eps


def test_other_kinds_of_keys_and_numbers_are_left_to_jax():
    other, key = jax.random.key(0, impl="rbg"), KEYS[0]
    np.testing.assert_array_equal(host.uniform(other, (3,), jnp.float64), jax.random.uniform(other, (3,)))
    half = host.uniform(key, (3,), jnp.float16)
    np.testing.assert_array_equal(half, jax.random.uniform(key, (3,), jnp.float16))
    assert host.glorot_normal(other, (2, 3), jnp.float64).shape == (2, 3)
    assert len(host.split(other, 3)) == 3


@pytest.mark.parametrize("draw", [host.uniform, host.glorot_normal])
def test_traced_draws_agree_with_others(draw):
    key, shape = KEYS[0], (6, 4)
    expected = draw(key, shape, jnp.float64)
    np.testing.assert_allclose(jax.jit(lambda k: draw(k, shape, jnp.float64))(key), expected, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(lambda: draw(key, shape, jnp.float64))(), expected, rtol=1e-14)
    np.testing.assert_array_equal(words(jax.jit(lambda k: host.split(k)[1])(key)), words(host.split(key)[1]))


def test_points_are_the_same_inside_and_outside_of_jit():
    heat = ng.Interval(0, 1) * ng.Ball([0, 0], 1)
    x = lambda key: (heat.interior(20, key=key).x, heat.initial(20, key=key).x, heat.boundary(20, key=key).x)
    for inside, outside in zip(jax.jit(x)(KEYS[0]), x(KEYS[0]), strict=True):
        np.testing.assert_allclose(inside, outside, rtol=1e-13)


def test_arrays_have_the_dtype_asked_for_and_no_weak_type():
    values = np.arange(3)
    for a in (host.array(values, jnp.float64), host.array(jnp.arange(3), jnp.float64), host.array([0, 1, 2], float)):
        assert a.dtype == jnp.float64
        assert isinstance(a, jax.Array)
    assert not host.array(1.0).weak_type
    a = host.array(values)
    values[0] = 7
    assert a[0] == 0
    assert jax.jit(lambda x: host.array([x, 2 * x], jnp.float32))(1.0).dtype == jnp.float32


COUNT = """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import natgrad as ng

made = []
listen = lambda name, seconds, **more: made.append(name) if name.endswith("backend_compile_duration") else None
jax.monitoring.register_event_duration_secs_listener(listen)

def told():
    count = len(made)
    made.clear()
    return count

key = jax.random.key(0)
told()
network = ng.MLP(2, 1, 8, 1, key=key)
exact = lambda x: jnp.sin(x[0]) * x[1]
if {feinn}:
    problem = ng.FEINNEnergy(network, ng.fem.rectangle((3, 3), 2), ng.fem.Form(), load=1.0, dirichlet=0.0, exact=exact)
else:
    domain = ng.Interval(0, 1) * ng.Box(0, 1)
    blocks = {{
        "pde": ng.Residual(lambda u, x: ng.laplacian(u, x), domain.interior(40, key=key)),
        "rim": ng.Residual(lambda u, x: u(x), domain.boundary(9, key=key), weight=2),
        "start": ng.Residual(lambda u, x: u(x), domain.initial(8, key=key)),
    }}
    problem = ng.LeastSquares(network, exact=exact, **blocks)
built = told()
solution = ng.solve(problem, {solver}, steps=2, progress=False)
print(built, told())
"""


FULL, NYSTROM, RPCHOL = "ng.FullNGD({})", "ng.NystromNGD(max_rank=10, {})", "ng.RPCholNGD(max_rank=10, {})"
slow = [pytest.param(solver, marks=pytest.mark.slow) for solver in (FULL.format(""), NYSTROM.format(""))]
slow += [pytest.param(solver.format("recipe='published'"), marks=pytest.mark.slow) for solver in (NYSTROM, RPCHOL)]


@pytest.mark.parametrize("solver", [FULL.format("recipe='published'"), *slow])
@pytest.mark.parametrize(
    ("feinn", "building", "solving"),
    [
        (False, 1, 2),  # the exact solution at the points of the errors; the step and the errors
        (True, 3, 3),  # the exact solution, its gradient, the errors the mesh allows; as above, and the nodal values
    ],
)
def test_the_start_compiles_little(feinn, building, solving, solver):
    code, root = COUNT.format(feinn=feinn, solver=solver), Path(ng.__file__).parents[1]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    built, solved = map(int, out.stdout.split())
    assert built <= building
    assert solved <= solving
