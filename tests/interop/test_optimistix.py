"""`natgrad.interop.optimistix`: the minima of Optimistix's own Levenberg–Marquardt, in its conventions."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

optx = pytest.importorskip("optimistix")
from natgrad.interop.optimistix import NaturalGradient  # noqa: E402

TOL = 1e-9
T = jnp.arange(5.0, 890.0, 15.0)
COUNTS = 10 + 900 * jnp.exp(-T / 27) + 80 * jnp.exp(-T / 225)
DATA = COUNTS + jnp.sqrt(COUNTS) * np.random.default_rng(0).standard_normal(T.shape)


def rosenbrock(y, args):
    x, z = y["x"], y["z"]
    return {"valley": 10 * (z - x**2), "slope": args - x}


def decay(y, t):
    """Bevington's two decays on a background: five parameters of different size, a minimum above zero."""
    return (y[0] + y[1] * jnp.exp(-t / y[3]) + y[2] * jnp.exp(-t / y[4]) - DATA) / jnp.sqrt(COUNTS)


def bowl(y, weights):
    return jax.tree.map(lambda a, w: w * a, y, weights)


def himmelblau(y, args):
    return y[0] ** 2 + y[1] - 11, y[0] + y[1] ** 2 - 7


def beale(y, args):
    a, b = y
    return jnp.array([1.5 - a + a * b, 2.25 - a + a * b**2, 2.625 - a + a * b**3])


def powell(y, args):
    """Singular at its minimum, where convergence is linear."""
    a, b, c, d = y
    return jnp.stack([a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2])


def helical(y, args):
    angle = jnp.arctan2(y[1], y[0]) / (2 * jnp.pi)
    return jnp.stack([10 * (y[2] - 10 * angle), 10 * (jnp.hypot(y[0], y[1]) - 1), y[2]])


def freudenstein_roth(y, args):
    a, b = y
    return jnp.stack([-13 + a + ((5 - b) * b - 2) * b, -29 + a + ((b + 1) * b - 14) * b])


def badly_scaled(y, args):
    """Powell's: the solution is (1.1e-5, 9.1)."""
    return 1e4 * y[0] * y[1] - 1, jnp.exp(-y[0]) + jnp.exp(-y[1]) - 1.0001


def regression(network, x):
    return jax.vmap(network)(x) - jnp.sin(2 * x[:, 0])


NETWORK = eqx.filter(eqx.nn.MLP(1, "scalar", 4, 1, jnp.tanh, key=jax.random.key(1)), eqx.is_array)
STATIC = eqx.partition(eqx.nn.MLP(1, "scalar", 4, 1, jnp.tanh, key=jax.random.key(1)), eqx.is_array)[1]

PROBLEMS = {
    "rosenbrock": (rosenbrock, {"x": jnp.array(-1.2), "z": jnp.array(1.0)}, jnp.array(1.0)),
    "decay": (decay, jnp.array([5.0, 500.0, 50.0, 20.0, 200.0]), T),
    "bowl": (bowl, (jnp.full((2, 3), 3.0), {"a": jnp.array(2.0)}), (10.0 ** jnp.arange(3), {"a": jnp.array(0.1)})),
}
MORE = {
    "himmelblau": (himmelblau, jnp.array([2.0, 2.5]), None),
    "beale": (beale, jnp.array([1.0, 1.0]), None),
    "powell": (powell, jnp.array([3.0, -1.0, 0.0, 1.0]), None),
    "helical": (helical, jnp.array([-1.0, 0.0, 0.0]), None),
    "freudenstein-roth": (freudenstein_roth, jnp.array([0.5, -2.0]), None),
    "badly scaled": (badly_scaled, jnp.array([0.0, 1.0]), None),
    "extended rosenbrock": (rosenbrock, {"x": jnp.full(10, -1.2), "z": jnp.ones(10)}, jnp.array(1.0)),
}


def loss(fn, y, args):
    return float(0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(fn(y, args))))


def check(fn, y, args):
    ours = optx.least_squares(fn, NaturalGradient(TOL, TOL), y, args, max_steps=100)
    theirs = optx.least_squares(fn, optx.LevenbergMarquardt(TOL, TOL), y, args, max_steps=2000)
    np.testing.assert_allclose(loss(fn, ours.value, args), loss(fn, theirs.value, args), rtol=1e-7, atol=1e-20)
    np.testing.assert_allclose(ours.stats["loss"], loss(fn, ours.value, args), rtol=1e-6, atol=1e-25)
    assert jax.tree.structure(ours.value) == jax.tree.structure(y)
    assert ours.stats["num_steps"] <= theirs.stats["num_steps"]
    return ours, theirs


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_minimum_of_levenberg_and_marquardt(name):
    ours, theirs = check(*PROBLEMS[name])
    for a, b in zip(jax.tree.leaves(ours.value), jax.tree.leaves(theirs.value), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", MORE)
def test_more_minima(name):
    check(*MORE[name])


@pytest.mark.slow
def test_a_small_network():
    """Any optimizer of the library; y is an Equinox module, f a vector."""
    x = jnp.linspace(-1.0, 1.0, 20)[:, None]
    fn = lambda params, x: regression(eqx.combine(params, STATIC), x)
    solver = NaturalGradient(1e-4, 1e-4, optimizer=ng.NystromNGD(8, damping=ng.damping.LevenbergMarquardt()))
    options = {"key": jax.random.key(3)}
    solution = optx.least_squares(fn, solver, NETWORK, x, options=options, max_steps=60, throw=False)
    np.testing.assert_allclose(solution.stats["loss"], loss(fn, solution.value, x), rtol=1e-9)
    assert solution.stats["loss"] < 1e-4
    assert solution.stats["inner_iterations"] > 60


def test_single_precision_mixed_with_double_under_vmap():
    """Every leaf keeps its dtype."""
    start = {"x": jnp.float32(-1.2), "z": jnp.array(1.0)}
    solve = lambda a: optx.least_squares(rosenbrock, NaturalGradient(1e-5, 1e-5), start, a, throw=False).value
    found = jax.vmap(solve)(jnp.array([1.0, 2.0, 0.5]))
    np.testing.assert_allclose(found["x"], [1.0, 2.0, 0.5], rtol=1e-4)
    assert (found["x"].dtype, found["z"].dtype) == (jnp.float32, jnp.float64)


def test_aux_is_that_of_the_solution():
    fn = lambda y, args: (himmelblau(y, args), {"sum": jnp.sum(y), "const": 3})
    solution = optx.least_squares(fn, NaturalGradient(TOL, TOL), jnp.array([2.0, 2.5]), has_aux=True)
    np.testing.assert_allclose(solution.aux["sum"], 5.0, rtol=1e-8)
    np.testing.assert_allclose(solution.aux["sum"], jnp.sum(solution.value), rtol=1e-15)
    assert solution.aux["const"] == 3


def test_max_steps_and_results():
    """Steps are counted, and what they did not reach is said."""
    start = jnp.array([3.0, -1.0, 0.0, 1.0])
    short = optx.least_squares(powell, NaturalGradient(TOL, TOL), start, max_steps=3, throw=False)
    assert short.result == optx.RESULTS.nonlinear_max_steps_reached
    assert short.stats["num_steps"] == 3
    assert 0 < short.stats["loss"] < loss(powell, start, None)
    with pytest.raises(Exception, match="maximum number of steps"):
        optx.least_squares(powell, NaturalGradient(TOL, TOL), start, max_steps=3)


@jax.custom_vjp
def one_way(x):
    return x**2 - 2


one_way.defvjp(lambda x: (one_way(x), x), lambda x, g: (2 * x * g,))


@jax.custom_vjp
def liar(x):
    return x**2 + 1


liar.defvjp(lambda x: (liar(x), x), lambda x, g: (-2 * x * g,))


def test_functions_with_reverse_mode_only():
    fn = lambda y, args: one_way(y)
    solver, start = NaturalGradient(TOL, TOL), jnp.array([1.0, 3.0])
    solution = optx.least_squares(fn, solver, start, options={"jac": "bwd"})
    np.testing.assert_allclose(solution.value, 2**0.5, rtol=1e-9)
    with pytest.raises(ValueError, match='jac is "fwd" or "bwd", got \'sideways\''):
        optx.least_squares(fn, solver, start, options={"jac": "sideways"})


def test_no_descent_is_a_failure():
    """Where the derivative has the wrong sign, no step lowers the loss."""
    fn, start = lambda y, args: liar(y), jnp.array([1.0])
    solution = optx.least_squares(fn, NaturalGradient(TOL, TOL), start, options={"jac": "bwd"}, throw=False)
    assert solution.result == optx.RESULTS.nonlinear_divergence
    assert solution.stats["num_steps"] == 10
    np.testing.assert_array_equal(solution.value, start)


def test_derivatives_of_the_solution():
    """argmin of |y² − a| is √a."""
    best = lambda a: optx.least_squares(lambda y, a: y**2 - a, NaturalGradient(1e-10, 1e-10), jnp.array(1.0), a).value
    np.testing.assert_allclose(jax.grad(best)(jnp.array(2.0)), 0.5 / 2**0.5, rtol=1e-6)


def test_complex_residuals_are_refused():
    with pytest.raises(ValueError, match="real floating-point"):
        optx.least_squares(lambda y, args: y * 1j, NaturalGradient(TOL, TOL), jnp.array([1.0]))


def test_without_optimistix_one_line_says_so():
    code = "import sys; sys.modules['optimistix'] = None; import natgrad.interop.optimistix"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    assert told.splitlines()[-1] == (
        "natgrad.extras.MissingExtra: natgrad.interop.optimistix needs optimistix: pip install 'natgrad[optimistix]'"
    )
