"""The baselines: as many steps as SciPy, descent at every one, the equations they are built on, honest states."""

import functools
import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.optim import BFGS, LBFGS, Adam, SSBroyden, Wolfe
from natgrad.optim.baselines import dense
from natgrad.optim.baselines.quasi_newton import Pair
from tests.helpers import FAST, poisson, relative
from tests.optim.functions import Function, minimize, quadratic, rosenbrock, standard

TOLERANCE = 1e-6
QUASI_NEWTON = {"bfgs": BFGS(), "lbfgs": LBFGS(10), "ssbroyden": SSBroyden()}
EASY = [name for name in standard() if name != "quadratic-50"]  # where few pairs are enough


@functools.cache
def run(solver, name):
    fn, start = standard()[name]
    return minimize(QUASI_NEWTON[solver], Function(fn, start), 2_000, TOLERANCE, FAST)


def scipy_run(name, method, **options):
    fn, start = standard()[name]
    vg = jax.jit(jax.value_and_grad(fn))
    fun = lambda x: tuple(np.asarray(part) for part in vg(jnp.asarray(x)))
    options = {"gtol": TOLERANCE, "maxiter": 5_000, **options}
    return scipy.optimize.minimize(fun, np.asarray(start), jac=True, method=method, options=options)


def pair(seed, p):
    """A pair with sᵀy > 0, as of a step with H = I."""
    s, g = np.random.default_rng(seed).normal(size=(2, p))
    y = np.linspace(1, 30, p) * s
    return Pair(s, y, g, s @ y, s @ s, np.True_)


def matrix(p):
    """A symmetric positive definite one."""
    A = np.random.default_rng(1).normal(size=(p, p))
    return A @ A.T + np.eye(p)


@functools.cache
def updating(solver):
    """Its update, compiled."""
    update = jax.jit(solver.update, compiler_options=FAST)
    return lambda *args: jax.device_get(update(*args))


@pytest.mark.parametrize("name", standard())
@pytest.mark.parametrize("solver", QUASI_NEWTON)
def test_minimum_is_found_and_the_loss_falls_at_every_step(solver, name):
    if solver == "lbfgs" and name not in EASY:
        pytest.skip("ten pairs are too few for a condition of 1e6")
    params, state, infos = run(solver, name)
    fn = standard()[name][0]
    assert fn(params) < 1e-9
    assert jnp.max(jnp.abs(state.gradient)) <= TOLERANCE
    assert all(info.accepted and info.change < 0 for info in infos)
    assert all(b.loss < a.loss for a, b in itertools.pairwise(infos))
    assert sum(info.evaluations for info in infos) >= len(infos)


@pytest.mark.parametrize("name", standard())
def test_bfgs_takes_as_many_steps_and_evaluations_as_scipy(name):
    _, _, infos = run("bfgs", name)
    peer = scipy_run(name, "BFGS")
    assert len(infos) <= 1.5 * peer.nit
    assert sum(info.evaluations for info in infos) <= 1.5 * peer.nfev


@pytest.mark.parametrize("name", EASY)
def test_lbfgs_takes_as_many_steps_and_evaluations_as_scipy(name):
    _, _, infos = run("lbfgs", name)
    peer = scipy_run(name, "L-BFGS-B", maxcor=10, ftol=0, maxfun=10_000)
    assert len(infos) <= 1.25 * peer.nit
    assert sum(info.evaluations for info in infos) <= 1.25 * peer.nfev


def test_gradient_of_the_state_and_change_of_the_loss_are_those_of_the_parameters():
    problem = Function(rosenbrock, jnp.array([-1.2, 1.0, 0.3]))
    params, state, infos = minimize(BFGS(), problem, 7, options=FAST)
    np.testing.assert_allclose(state.gradient, jax.grad(rosenbrock)(params), rtol=1e-10)
    assert infos[-1].loss + infos[-1].change == pytest.approx(float(rosenbrock(params)), rel=1e-12)
    assert infos[0].gradient_norm == pytest.approx(float(jnp.linalg.norm(jax.grad(rosenbrock)(problem.params))))


@pytest.mark.parametrize("curvature", [0.9, 0.1])
def test_wolfe_conditions_hold(curvature):
    """On functions with a far, a near and a flat minimum, from trials too small and too large; NaN beyond 100."""
    search = Wolfe(curvature=curvature)
    functions = [
        lambda a: a**2 - 3 * a,
        lambda a: -a / (a**2 + 2),
        lambda a: (a + 0.004) ** 5 - 2 * (a + 0.004) ** 4,
        lambda a: jnp.where(a < 100, -jnp.log1p(a) + 0.03 * a, jnp.nan),
    ]

    @jax.jit
    def find(index, start):
        f = lambda a: jax.lax.switch(index, functions, a)
        phi = jax.value_and_grad(lambda a: f(a) - f(jnp.zeros_like(a)))
        slope = -phi(jnp.zeros_like(start))[1]
        found = search(lambda a: (*phi(a), a), slope, start, jnp.ones_like(start), jnp.zeros_like(start))
        return found, slope, phi(found.step)

    for index, start in itertools.product(range(len(functions)), (1e-3, 1.0, 40.0, 1e4)):
        found, slope, (value, derivative) = jax.device_get(find(index, start))
        assert found.wolfe
        assert found.change == pytest.approx(value, rel=1e-12)
        assert found.change <= -1e-4 * found.step * slope
        assert abs(derivative) <= curvature * slope
        assert found.extra == found.step
        assert 1 <= found.evaluations <= 25


def test_wolfe_gives_up_uphill_and_keeps_the_best_it_saw():
    zero, one = jnp.asarray(0.0), jnp.asarray(1.0)
    up = Wolfe()(lambda a: (a, one, a), one, one, one, zero)  # the slope promises a fall, the values rise
    assert up.step == 0
    assert up.change == 0
    assert up.extra == 0
    assert not up.wolfe
    falling = Wolfe(max_evaluations=3)(lambda a: (-a, -one, a), one, one, one, zero)  # without end
    assert falling.evaluations == 3
    assert falling.step > 1
    assert falling.change == -falling.step
    assert not falling.wolfe


@pytest.mark.parametrize("solver", [BFGS(), BFGS(scaled=True), SSBroyden(), SSBroyden(scaled=True)], ids=str)
def test_secant_equation(solver):
    p = 12
    H, one = matrix(p), pair(0, p)
    one = Pair(one.s, one.y, one.gradient, one.sy, one.s @ np.linalg.solve(H, one.s), one.good)
    for fresh in (True, False):
        new, direction = updating(solver)(H, fresh, one)
        np.testing.assert_allclose(new @ one.y, one.s, rtol=1e-10)
        np.testing.assert_allclose(new @ one.gradient, direction, rtol=1e-9)
        np.testing.assert_allclose(new, new.T, rtol=1e-11, atol=1e-13)
        assert np.linalg.eigvalsh(new)[0] > 0


def test_bfgs_update_is_the_product_form():
    """(I − ρsyᵀ) H (I − ρysᵀ) + ρssᵀ."""
    p = 9
    H, one, I = matrix(p), pair(2, p), np.eye(p)
    rho = 1 / one.sy
    left = I - rho * np.outer(one.s, one.y)
    expected = left @ H @ left.T + rho * np.outer(one.s, one.s)
    assert relative(updating(BFGS())(H, False, one)[0], expected) < 1e-13


def test_ssbroyden_update_is_its_formula():
    p, tau, phi = 8, 0.3, -0.2
    H, one = matrix(p), pair(2, p)
    h = H @ one.y
    v = np.sqrt(one.y @ h) * (one.s / one.sy - h / (one.y @ h))
    expected = (H - np.outer(h, h) / (one.y @ h) + phi * np.outer(v, v)) / tau + np.outer(one.s, one.s) / one.sy
    update = jax.jit(lambda H, pair: dense.update(H, jnp.asarray(False), pair, lambda b, h, p: (tau, phi), False)[0])
    assert relative(update(H, one), expected) < 1e-13


@pytest.mark.parametrize(("b", "h"), [(0.2, 7.0), (5.0, 3.0), (40.0, 0.3), (1.0, 1.0), (1e-3, 2e3)])
def test_ssbroyden_scales_curvature_down_only_and_keeps_it_positive(b, h):
    tau, phi = ng.SSBroyden().rule(jnp.asarray(b), jnp.asarray(h), 20)
    assert 0 < tau <= 1 + 1e-12
    # H⁺ > 0 where φ > −1/(bh − 1), the degenerate member of the family.
    assert phi * (b * h - 1) > -1


def test_a_pair_without_curvature_teaches_nothing():
    p = 12
    one = pair(0, p)
    bad = Pair(one.s, -one.y, one.gradient, -one.sy, one.sBs, np.False_)
    H = matrix(p)
    for solver in (BFGS(), SSBroyden()):
        new, direction = updating(solver)(H, False, bad)
        np.testing.assert_array_equal(new, H)
        np.testing.assert_allclose(direction, H @ bad.gradient, rtol=1e-10)
    solver = LBFGS(3)
    memory, _ = updating(solver)(solver.empty(p, float), True, one)
    after, _ = updating(solver)(memory, False, bad)
    assert jax.tree.all(jax.tree.map(np.array_equal, memory, after))


def two_loop(pairs, g):
    """Algorithm 7.4 of Nocedal and Wright, pairs oldest first."""
    q, alphas = np.asarray(g), []
    for s, y in reversed(pairs):
        alphas.append((s @ q) / (s @ y))
        q = q - alphas[-1] * y
    s, y = pairs[-1]
    r = (s @ y) / (y @ y) * q
    for (s, y), alpha in zip(pairs, reversed(alphas), strict=True):
        r = r + s * (alpha - (y @ r) / (s @ y))
    return r


def test_lbfgs_is_the_two_loop_recursion_before_and_after_the_ring_is_full():
    p, solver = 20, LBFGS(4)
    memory, fresh, pairs = solver.empty(p, float), True, []
    for k in range(11):
        one = pair(k, p)
        if k == 6:  # forgotten: a restart
            fresh, pairs = True, []
        memory, direction = updating(solver)(memory, fresh, one)
        fresh = False
        pairs = [*pairs, (one.s, one.y)][-4:]
        np.testing.assert_allclose(direction, two_loop(pairs, one.gradient), rtol=1e-9, atol=1e-12)


def test_lbfgs_with_full_history_is_bfgs():
    """On a quadratic, as long as the initial scaling of both is the same: for the first pair."""
    p = 12
    one = pair(0, p)
    _, a = updating(LBFGS(3))(LBFGS(3).empty(p, float), True, one)
    _, b = updating(BFGS(scaled=True))(np.zeros((p, p)), True, one)
    assert relative(a, b) < 1e-12
    # Exact searches end a quadratic in as many steps as it has eigenvalues, whatever the scaling.
    problem = Function(quadratic, jnp.ones(3))
    exact = Wolfe(curvature=1e-3)
    for solver in (LBFGS(9, exact), BFGS(exact)):
        assert quadratic(minimize(solver, problem, 6, options=FAST)[0]) < 1e-12 * quadratic(problem.params)


@pytest.mark.parametrize(
    "solver", [LBFGS(30), pytest.param(SSBroyden(), marks=pytest.mark.slow), Adam(total=100, peak=1e-2)], ids=str
)
def test_one_trace_constant_shapes_arrays_only(solver):
    problem, traces = poisson(), []

    def counted(problem, params, state):
        traces.append(1)
        return solver.step(problem, params, state)

    step = jax.jit(counted, compiler_options=FAST)
    params, state = problem.params, solver.init(problem, problem.params, jax.random.key(0))
    shapes = lambda tree: [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]
    before = shapes(state), jax.tree.structure(state)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))
    for _ in range(8):
        params, state, info = step(problem, params, state)
    assert len(traces) == 1
    assert (shapes(state), jax.tree.structure(state)) == before
    # A state that went through a file goes on as if nothing had happened.
    stored = [np.array(leaf) for leaf in jax.tree.leaves(state)]
    loaded = jax.tree.unflatten(jax.tree.structure(state), [jnp.asarray(leaf) for leaf in stored])
    here, there = step(problem, params, state)[0], step(problem, params, loaded)[0]
    np.testing.assert_array_equal(ravel_pytree(here)[0], ravel_pytree(there)[0])
    fields = {"loss", "change", "gradient_norm", "step_size", "evaluations", "accepted"}
    assert fields <= set(vars(info))


@pytest.mark.parametrize("solver", [pytest.param(LBFGS(30), marks=pytest.mark.slow), SSBroyden()], ids=str)
def test_solve_trains_a_pinn(solver):
    problem = poisson()
    solution = ng.solve(problem, solver, 60, progress=False)
    assert solution.status == "steps"
    assert np.all(np.diff(solution.history.loss) < 0)
    assert solution.loss < 0.05 * float(problem.loss(problem.params))


def test_restart_rescues_a_bad_direction_and_a_minimum_has_no_descent():
    problem = Function(rosenbrock, jnp.array([-1.2, 1.0]))
    solver = BFGS()
    state = solver.init(problem, problem.params, jax.random.key(0))
    step = jax.jit(solver.step, compiler_options=FAST)
    uphill = [state.gradient, jnp.full(2, jnp.nan)]
    for direction in uphill:
        wrong = type(state)(state.gradient, direction, jnp.eye(2), jnp.asarray(False), jnp.asarray(-1.0))
        _, after, info = step(problem, problem.params, wrong)
        assert info.restarted
        assert info.accepted
        assert info.change < 0
        assert not after.fresh
    flat = Function(rosenbrock, jnp.ones(2))
    for solver in QUASI_NEWTON.values():
        params, _, infos = minimize(solver, flat, 3, gradient=-1.0, options=FAST)
        assert not infos[0].accepted
        assert infos[0].change == 0
        np.testing.assert_array_equal(params, jnp.ones(2))
    assert ng.solve(flat, BFGS(), 40, progress=False).status == "converged"


def test_adam_is_adam_with_the_rates_of_the_paper():
    """First steps against the formula, written out."""
    adam = Adam()
    rates = [float(adam.rate(k)) for k in (0, 2_500, 5_000, 77_500, 150_000, 200_000)]
    np.testing.assert_allclose(rates, [1e-4, 5.5e-4, 1e-3, 5.05e-4, 1e-5, 1e-5], rtol=1e-6)
    short = Adam(total=100)
    np.testing.assert_allclose([float(short.rate(k)) for k in (0, 10, 100)], [1e-4, 1e-3, 1e-5], rtol=1e-6)
    problem = Function(rosenbrock, jnp.array([-1.2, 1.0]))
    params, _, infos = minimize(short, problem, 5, options=FAST)
    x, m, v = np.array([-1.2, 1.0]), np.zeros(2), np.zeros(2)
    for k in range(1, 6):
        g = np.asarray(jax.grad(rosenbrock)(jnp.asarray(x)))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        x = x - float(short.rate(k - 1)) * (m / (1 - 0.9**k)) / (np.sqrt(v / (1 - 0.999**k)) + 1e-8)
    np.testing.assert_allclose(params, x, rtol=1e-12)
    assert infos[-1].loss + infos[-1].change == pytest.approx(float(rosenbrock(params)))


def test_optax_is_not_loaded_on_import():
    code = "import sys, natgrad.optim.baselines; print('optax' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: LBFGS(history=0), "history must be a positive integer"),
        (lambda: LBFGS(history=2.5), "history must be a positive integer"),
        (lambda: Adam(total=0), "total must be a positive integer, got 0"),
        (lambda: Adam(warmup=-1), "warmup must be a non-negative integer, got -1"),
        (lambda: Adam(peak=-1e-3), "peak must be a positive finite number, got -0.001"),
        (lambda: Adam(end=-1e-3), "end must be a non-negative finite number"),
        (lambda: Wolfe(decrease=0.9, curvature=0.1), "decrease < curvature, got 0.9 and 0.1"),
        (lambda: Wolfe(decrease="0.1"), "decrease must be a number in .0, 1., got '0.1'"),
        (lambda: Wolfe(curvature=1.0), "curvature must be a number in .0, 1., got 1"),
        (lambda: Adam(start=float("inf")), "start must be a non-negative finite number, got inf"),
        (lambda: BFGS(scaled="no"), "scaled must be True or False, got 'no'"),
        (lambda: BFGS(search=ng.Armijo()), "search must be a Wolfe, got Armijo"),
        (lambda: Wolfe(max_evaluations=0), "max_evaluations must be a positive integer, got 0"),
    ],
)
def test_bad_input_is_one_line(build, words):
    with pytest.raises(ValueError, match=words) as caught:
        build()
    assert "\n" not in str(caught.value)
