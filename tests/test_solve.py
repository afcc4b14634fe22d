"""The training loop: history, stopping, resuming, breaking down, and what it shows."""

import re
import time
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.optim.ngd import _warn_of_round_off
from tests.helpers import poisson

pytestmark = pytest.mark.usefixtures("quick_compilation")
LINE = ng.Interval(0.0, 1.0)
EXACT = lambda x: jnp.sin(x[0])


@pytest.fixture(params=[1, 4], ids=["step by step", "in groups"])
def group(request):
    """How many steps a call takes: nothing but the clock may tell."""
    solve.group = request.param
    yield request.param
    solve.group = None


class Report(eqx.Module):
    """The least a solver may say of a step."""

    loss: jax.Array
    change: jax.Array


class Descent(eqx.Module):
    """Gradient descent, a solver of a few lines; at step `breaks` its parameters become NaN."""

    rate: float = eqx.field(static=True, default=0.2)
    breaks: int = eqx.field(static=True, default=-1)

    def init(self, problem, params, key):
        return jnp.asarray(0)

    def step(self, problem, params, state):
        loss, slope = jax.value_and_grad(problem.loss)(params)
        bad = jnp.where(state == self.breaks, jnp.nan, 0.0)
        new = jax.tree.map(lambda a, g: a - self.rate * g + bad, params, slope)
        return new, state + 1, Report(loss, problem.difference(params, new))


class Parabola(eqx.Module):
    """a + b x + c x²."""

    a: jax.Array

    def __call__(self, x):
        return self.a[0] + self.a[1] * x[0] + self.a[2] * x[0] ** 2


def fit(residual=lambda u, x: u(x) - EXACT(x), exact=EXACT, start=(0.0, 0.0, 0.0), dtype=float):
    points = LINE.interior(20, key=jax.random.key(1))
    return ng.LeastSquares(Parabola(jnp.asarray(start, dtype)), fit=ng.Residual(residual, points), exact=exact)


@pytest.fixture(scope="module")
def problem():
    return fit()


def solve(problem, steps=8, solver=None, **options):
    return ng.solve(
        problem, Descent() if solver is None else solver, steps, **{"progress": False, "group": solve.group, **options}
    )


solve.group = None


def same(a, b):
    return np.array_equal(ravel_pytree(a)[0], ravel_pytree(b)[0])


@pytest.mark.usefixtures("group")
def test_history_has_a_record_a_step(problem):
    told = []
    solution = solve(problem, 25, evaluate_every=10, callback=lambda record: told.append(record["step"]))
    history = solution.history
    assert solution.steps == len(history) == len(history.loss) == 25
    assert solution.status == "steps"
    assert told == list(range(1, 26))
    assert {"step", "time", "loss", "errors"} <= set(history)
    np.testing.assert_array_equal(history.step, np.arange(1, 26))
    np.testing.assert_array_equal(history["loss"], history.loss)
    assert np.all(np.diff(history.time) > 0)
    assert np.all(np.diff(history.loss) < 0)
    assert solution.time == history.time[-1] > 0
    assert solution.compile_time > 0
    # errors where they were asked for, and at the end
    for name in ("l2", "h1"):
        assert list(np.flatnonzero(~np.isnan(history.errors[name])) + 1) == [10, 20, 25]
        assert solution.errors[name] == history.errors[name][-1]
    # `loss` is the loss after the step, and the solution is where the history ends
    np.testing.assert_allclose(solution.loss, problem.loss(solution.params), rtol=1e-10)
    assert solution.loss == history.loss[-1]
    np.testing.assert_allclose(solution.errors["h1"], problem.errors(solution.params)["h1"], rtol=1e-10)
    assert float(solution.u(jnp.array([0.5]))) == float(problem.network(solution.params)(jnp.array([0.5])))


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("exact", [EXACT, None])
def test_the_loss_at_other_points(exact):
    """With the errors and without them: where asked for, and at the end; and it is what it says."""
    problem = fit(exact=exact)
    solution = solve(problem, 25, evaluate_every=10)
    history = solution.history
    for name in ("validation", "training"):
        assert list(np.flatnonzero(~np.isnan(history[name])) + 1) == [10, 20, 25]
    np.testing.assert_allclose(history.training[-1], solution.loss, rtol=1e-10)
    assert solution.validation == history.validation[-1]
    np.testing.assert_allclose(solution.validation, problem.validate(solution.params)["validation"], rtol=1e-10)
    assert 0.5 < solution.validation / solution.loss < 2
    early = solve(problem, 25, evaluate_every=10, target_loss=history.loss[12])
    assert early.steps == 13
    assert early.validation == early.history.validation[-1] > solution.validation


def test_points_by_hand_have_no_validation(capsys):
    x = LINE.interior(20, key=jax.random.key(1)).x
    by_hand = ng.LeastSquares(Parabola(jnp.zeros(3)), fit=ng.Residual(lambda u, x: u(x) - EXACT(x), x))
    solution = solve(by_hand, 4, progress=True)
    assert np.isnan(solution.validation)
    assert np.isnan(solution.history.validation).all()
    assert "validation" not in capsys.readouterr().err


def test_sensors_beside_an_equation():
    """Their misfit, which no other points can have, is on neither side."""
    sensors = ng.Residual(lambda u, x, y: u(x) - y, jnp.array([[0.3]]), data=jnp.array([50.0]))
    inside = ng.Residual(lambda u, x: u(x) - EXACT(x), LINE.interior(20, key=jax.random.key(1)))
    solution = solve(ng.LeastSquares(Parabola(jnp.zeros(3)), sensors=sensors, fit=inside), 3)
    problem = ng.LeastSquares(Parabola(jnp.zeros(3)), sensors=sensors, fit=inside)
    np.testing.assert_allclose(solution.history.training[-1], problem.losses(solution.params)["fit"], rtol=1e-10)
    assert solution.history.training[-1] < solution.loss
    assert 0.5 < solution.validation / solution.history.training[-1] < 2


def test_history_says_what_it_has(problem):
    history = solve(problem, 2).history
    with pytest.raises(AttributeError, match="no 'mu' in the history: it has step, time, loss"):
        _ = history.mu
    with pytest.raises(KeyError, match="no 'mu' in the history"):
        history["mu"]
    assert "2 steps" in repr(history)


@pytest.mark.usefixtures("group")
def test_time_leaves_out_callbacks(problem):
    solution = solve(problem, 3, callback=lambda record: time.sleep(0.2))
    assert solution.time < 0.2


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"target_loss": 0.02}, "target loss"),
        ({"target_error": 0.55, "evaluate_every": 1}, "target error"),
        ({"time_limit": 1e-9}, "time"),
        ({"callback": lambda record: record["step"] == 7}, "callback"),
    ],
)
def test_stops(problem, options, status):
    solution = solve(problem, 200, **options)
    assert solution.status == status
    assert 1 <= solution.steps < 200
    history = solution.history
    if status == "target loss":
        assert history.loss[-1] <= 0.02 < history.loss[-2]
    if status == "target error":
        assert history.errors["h1"][-1] <= 0.55 < history.errors["h1"][-2]
    if status == "time":
        assert solution.steps == 1
    if status == "callback":
        assert solution.steps == 7
    assert np.isfinite(solution.errors["h1"])


@pytest.mark.usefixtures("group")
def test_patience():
    """A loss that has settled stops the run; one that still falls by a percent does not."""
    constant = fit(lambda u, x: jnp.append(0.01 * u(x), 1.0))
    assert solve(constant, 50, patience=6).steps == 7
    assert solve(constant, 50, patience=6).status == "stagnation"
    assert solve(fit(), 20, patience=6).status == "steps"


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("when", [1, 4])
def test_interruption_keeps_what_there_is(problem, when):
    def callback(record):
        if record["step"] == when:
            raise KeyboardInterrupt

    solution = solve(problem, 20, callback=callback)
    assert solution.status == "interrupted"
    assert solution.steps == when
    assert same(solution.params, solve(problem, when).params)
    assert set(solution.errors) == {"l2", "h1"}


def test_interruption_before_the_first_step(problem):
    class Impatient(Descent):
        def step(self, problem, params, state):
            raise KeyboardInterrupt  # while the step is traced

    solution = ng.solve(problem, Impatient(), 20, progress=False)
    assert (solution.status, solution.steps, solution.errors) == ("interrupted", 0, {})
    assert same(solution.params, problem.params)


def test_other_exceptions_are_not_swallowed(problem):
    with pytest.raises(ZeroDivisionError):
        solve(problem, 3, callback=lambda record: 1 / 0)


@pytest.mark.usefixtures("group")
def test_resuming_is_as_if_never_stopped():
    """Bit for bit, with everything random and remembered in the solver: a Nyström preconditioner and a warm start."""
    problem = ng.LeastSquares(
        ng.MLP(1, 1, 4, 1, key=jax.random.key(0)),
        fit=ng.Residual(lambda u, x: u(x) - jnp.sin(5 * x[0]), LINE.interior(30, key=jax.random.key(1))),
    )
    solver = ng.NaturalGradient(ng.PCG(ng.RowFactor(max_rank=8, levels=1)))
    key = jax.random.key(3)
    whole = solve(problem, 12, solver, key=key)
    half = solve(problem, 6, solver, key=key)
    rest = solve(problem, 6, solver, resume=half)
    assert same(whole.params, rest.params)
    np.testing.assert_array_equal(whole.history.loss, rest.history.loss)
    np.testing.assert_array_equal(whole.history.step, rest.history.step)
    assert np.all(np.diff(rest.history.time) > 0)
    assert rest.steps == 12
    assert half.steps == len(half.history) == 6  # untouched by going on
    assert not same(whole.params, half.params)


def energy(units):
    """½u² − fu, whose minimum −½∫f² is far from zero, in the metric of the parabola's values."""
    density = lambda u, x: units * (0.5 * u(x) ** 2 - EXACT(x) * u(x))
    metric = ng.Metric(lambda u, v, x: v(x), density=lambda u, x: jnp.asarray(units))
    points = LINE.interior(20, key=jax.random.key(1))
    return ng.EnergyMinimization(Parabola(jnp.zeros(3)), fit=ng.Energy(density, points, metric=metric))


def elements(units):
    space, form = ng.fem.rectangle((4, 4), degree=2), ng.fem.Form(diffusion=units)
    return ng.FEINNEnergy(Parabola(jnp.zeros(3)), space, form, load=lambda x: units * jnp.exp(x[0]), dirichlet=0.0)


@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("build", [energy, elements])
def test_an_energy_at_its_minimum_is_converged_in_all_units(build, units):
    """Its gradient vanishes to round-off; the energy itself does not."""
    problem = build(units)
    solution = solve(problem, 60, ng.FullNGD())
    assert solution.status == "converged"
    assert solution.loss < -1e-3 * units
    first, last = (ravel_pytree(jax.grad(problem.loss)(p))[0] for p in (problem.params, solution.params))
    assert np.linalg.norm(last) < 1e-8 * np.linalg.norm(first)


@pytest.mark.parametrize(
    ("solver", "problem", "message"),
    [
        (ng.BFGS(), {}, "the solver is BFGS and was NaturalGradient"),
        (ng.NystromNGD(max_rank=30), {}, "preconditioner.max_rank is 30 and was 20"),
        (ng.NystromNGD(max_rank=20, gamma=3.0), {}, "gamma is 3.0 and was"),
        (None, {"width": 5}, "parameter .* is float64.5, 2. and was float64.6, 2."),
        (None, {"points": 50}, "the number of rows of block pde is 50 and was 37"),
    ],
)
def test_resuming_something_else_says_what_differs(solver, problem, message):
    solved = solve(poisson(), 1, ng.NystromNGD(max_rank=20))
    with pytest.raises(ValueError, match=f"resume goes on as it began, but .*{message}.*params=") as caught:
        solve(poisson(**problem), 1, solver or ng.NystromNGD(max_rank=20), resume=solved)
    assert "\n" not in str(caught.value)


def test_starting_elsewhere(problem):
    params = jax.tree.map(lambda a: a + 1.0, problem.params)
    assert solve(problem, 1, params=params).history.loss[0] > solve(problem, 1).history.loss[0]


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("after", [0, 5])
def test_a_breakdown_ends_with_the_last_good_parameters(problem, after):
    solution = solve(problem, 20, Descent(breaks=after))
    assert solution.status == "not finite"
    assert solution.steps == len(solution.history) == after
    assert same(solution.params, solve(problem, after).params if after else problem.params)
    assert np.isfinite(solution.loss)
    np.testing.assert_allclose(solution.loss, problem.loss(solution.params), rtol=1e-12)
    assert np.isfinite(solution.errors["h1"])


def test_a_residual_that_is_nan_from_the_start():
    problem = fit(lambda u, x: jnp.nan * u(x))
    solution = solve(problem, 5, ng.FullNGD())
    assert solution.status == "not finite"
    assert solution.steps == 0
    assert same(solution.params, problem.params)


@pytest.mark.usefixtures("group")
def test_no_descent():
    """A residual that is finite at the start alone: the model promises much, and no step keeps it."""
    problem = fit(lambda u, x: jnp.where(u(x) == 0, 1.0 + u(x), jnp.nan), exact=None)
    solution = solve(problem, 50, ng.FullNGD())
    assert solution.status == "no descent"
    assert solution.steps == 10
    assert same(solution.params, problem.params)
    assert np.isfinite(solution.loss)
    assert solution.errors == {}
    assert not np.any(solution.history.accepted)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("solver", [ng.FullNGD(), ng.KernelNGD(), ng.BFGS()], ids=["full", "kernel", "bfgs"])
def test_a_start_at_the_minimum_is_converged(solver):
    problem = fit(lambda u, x: u(x), exact=None)
    solution = solve(problem, 50, solver)
    assert (solution.status, solution.steps, solution.loss) == ("converged", 1, 0.0)
    assert same(solution.params, problem.params)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("units", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("dtype", [float, jnp.float32], ids=["double", "single"])
@pytest.mark.filterwarnings("ignore:natural gradient descent in float32")
def test_a_solved_problem_is_converged_in_all_units(units, dtype):
    """At the last digit of the parameters, and μ stays where it was."""
    inside = lambda x: 1.0 - 3 * x[0] + x[0] ** 2  # which the parabola can be
    problem = fit(lambda u, x: units * (u(x) - inside(x)), exact=inside, dtype=dtype)
    solution = solve(problem, 60, ng.FullNGD())
    history = solution.history
    assert solution.status == "converged"
    assert solution.errors["h1"] < 10 * jnp.finfo(dtype).eps
    assert np.flatnonzero(history.converged).tolist() == [solution.steps - 1]
    again = solve(problem, 5, ng.FullNGD(), resume=solution)
    assert (again.status, again.steps) == ("converged", solution.steps + 1)
    np.testing.assert_allclose(again.history.mu[-1], history.mu[-1], rtol=1e-3)


def test_silent_without_progress(problem, capsys):
    solve(problem, 5)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_clean_lines_without_a_terminal(problem, capsys):
    solution = solve(problem, 40, progress=True, target_loss=1e-9)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "natgrad: 3 parameters, 20 residual rows, compiling"
    assert re.fullmatch(r"natgrad: compiled in \d+\.\d s( \(cached\))?", lines[1])
    assert 9 <= len(lines) <= 15
    assert "\r" not in captured.err
    assert "\x1b" not in captured.err
    assert lines[2].split()[0] == "4/40"
    assert all("loss" in line and line.rstrip() == line for line in lines[2:])
    assert lines[-1].startswith("stopped after 40 steps (steps)")
    assert f"loss {solution.loss:.2e}" in lines[-1]
    assert f"H¹ {solution.errors['h1']:.2e}" in lines[-1]
    assert f"validation {solution.validation:.2e}" in lines[-1]


@pytest.mark.parametrize("solver", [ng.FullNGD(), Descent(0.01)])
def test_an_energy_shows_what_it_fell_by(solver, capsys):
    """Its value is soon a constant to all digits shown; the gradient's norm is there where the solver tells it."""
    solution = ng.solve(energy(1.0), solver, 4)
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"decrease {-solution.history.change[-1]:.1e}" in last
    assert ("|∇L| " in last) == ("gradient_norm" in solution.history)
    assert "loss" not in last


def test_single_precision_warns_once(problem):
    """NGD works below the round-off of float32; first-order solvers and float64 have nothing to warn of."""
    _warn_of_round_off.cache_clear()
    single = fit(dtype=jnp.float32)
    twice = lambda: [solve(single, 2, ng.FullNGD()) for _ in range(2)]
    with pytest.warns(UserWarning, match="float32") as caught:
        first, _ = twice()
    assert len([w for w in caught if "float32" in str(w.message)]) == 1
    assert first.params.a.dtype == jnp.float32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(problem, 2, ng.FullNGD())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"problem": 3}, r"solve takes a problem such as ng\.LeastSquares.* got int"),
        ({"solver": "adam"}, r"solve takes a solver such as ng\.NystromNGD\(\), got str"),
        ({"solver": ng.NystromNGD}, "NystromNGD"),
        ({"solver": Descent}, r"write Descent\(\) with parentheses"),
        ({"steps": 0}, "steps must be a positive integer, got 0"),
        ({"steps": 2.5}, "steps must be a positive integer, got 2.5"),
        ({"evaluate_every": 0}, "evaluate_every must be a positive integer, got 0"),
        ({"patience": 0}, "patience must be a positive integer, got 0"),
        ({"group": 0}, "group must be a positive integer, got 0"),
        ({"time_limit": 0.0}, "time_limit must be a positive number or inf, got 0"),
        ({"time_limit": float("nan")}, "time_limit must be a positive number or inf, got nan"),
        ({"time_limit": "1h"}, "time_limit must be a positive number or inf, got '1h'"),
        ({"target_error": float("nan")}, "target_error must be a positive finite number, got nan"),
        ({"target_error": -1e-3}, "target_error must be a positive finite number, got -0.001"),
        ({"target_loss": float("nan")}, "target_loss must be a finite number, got nan"),
        ({"target_loss": -1.0}, "target_loss must not be negative, a sum of squares never is, got -1.0"),
        ({"memory": "8 lots"}, "memory takes a size such as 8GB or 500MB, got '8 lots'"),
        ({"problem": "no exact", "target_error": 1e-3}, "target_error needs an exact solution"),
        ({"params": (), "resume": "solution"}, "give either params or resume, not both"),
        ({"resume": 3}, "resume"),
        ({"params": jnp.zeros(2)}, "params"),
        ({"callback": 3}, "callback"),
    ],
)
def test_bad_input(problem, arguments, message):
    arguments = {"problem": problem, "solver": Descent(), "steps": 1, "progress": False, **arguments}
    if arguments["problem"] == "no exact":
        arguments["problem"] = fit(exact=None)
    if arguments.get("resume") == "solution":
        arguments["resume"] = solve(problem, 1)
    with pytest.raises(ValueError, match=message) as caught:
        ng.solve(**arguments)
    assert "\n" not in str(caught.value)
