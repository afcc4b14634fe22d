"""Windows of time: one solution of all, each begun exactly where the last one ended, by one compiled program."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.backend import programs
from tests.stages.equations import decay, heat, march, wave

EVALUATED = {"validation", "training", "elsewhere", "size", "errors"}  # of a run that was stopped, at its end too


@pytest.fixture(scope="module")
def whole():
    return march(target_loss=1e-6, steps=16)


def same(one, other):
    """Bit for bit, the clock aside."""
    for record, again in zip(one.history.records, other.history.records, strict=True):
        names = record.keys() - {"time"} - EVALUATED
        assert {name: record[name] for name in names} == {name: again[name] for name in names}
    for a, b in zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params), strict=True):
        assert np.array_equal(a, b)
    for name in ("status", "steps", "loss", "validation", "errors", "diagnosis"):
        assert getattr(one, name) == getattr(other, name)


def test_windows_share_one_compiled_program():
    """The step, the evaluation and the table of the exact solution, for windows of whatever length."""
    ng.clear_cache()
    before = dict(programs.COMPILATIONS)
    march(heat(width=5), times=4, steps=2)
    march(heat(width=5), times=[0, 0.1, 0.7, 0.9], steps=2)
    new = {name: count - before[name] for name, count in programs.COMPILATIONS.items()}
    assert new["new"] + new["disk"] == 3
    assert new["memory"] == 3 * 7 - 3


def test_fresh_points_share_it_too():
    ng.clear_cache()
    before = dict(programs.COMPILATIONS)
    fresh = lambda cylinder: cylinder.interior(40, key=jax.random.key(7), fresh=True)
    march(heat(None, points={"pde": fresh, "initial": 20, "ends": 10}), times=3, steps=2)
    assert programs.COMPILATIONS["new"] + programs.COMPILATIONS["disk"] - before["new"] - before["disk"] == 2


def test_one_function_of_all_times(whole):
    u, parts = whole.u, whole.u.functions
    assert u.times == (0.0, 0.5, 1.0, 1.5, 2.0)
    at = lambda t: jnp.array([t, 0.3])
    for t, number in [(-1, 0), (0, 0), (0.4, 0), (0.5, 1), (0.9, 1), (1.0, 2), (1.5, 3), (1.9, 3), (2.0, 3), (9, 3)]:
        assert u(at(t)) == parts[number](at(t))
    z = jax.random.uniform(jax.random.key(0), (40, 2)) * jnp.array([2.0, 1.0])
    numbers = np.floor(np.asarray(z[:, 0]) / 0.5).astype(int)
    values, slopes = jax.jit(jax.vmap(u))(z), jax.vmap(jax.grad(u))(z)
    for n, part in enumerate(parts):
        own = z[numbers == n]
        np.testing.assert_allclose(values[numbers == n], jax.vmap(part)(own), rtol=1e-12)
        np.testing.assert_allclose(slopes[numbers == n], jax.vmap(jax.grad(part))(own), rtol=1e-11)
    np.testing.assert_allclose(values, jax.vmap(decay)(z), atol=0.1)


def test_a_window_that_does_not_count_spoils_no_derivative():
    """exp(t) of a window a thousand units away is infinite, and 0·∞ is no number."""
    parts = [lambda z: jnp.exp(z[0] ** 2), lambda z: jnp.exp((z[0] - 1000) ** 2)]
    u = ng.problem.Windows(parts, (0, 1, 1000))
    slope = jax.vmap(jax.grad(u))(jnp.array([[0.5], [1000.0]]))
    np.testing.assert_allclose(slope[0], np.exp(0.25), rtol=1e-12)
    assert np.isfinite(slope).all()


def test_errors_are_those_over_all_of_time(whole):
    total = heat().whole()
    found = total.norms(whole.u)
    assert whole.errors["l2"] == pytest.approx(float(found["l2"]), rel=0.15)
    assert whole.errors["h1"] == pytest.approx(float(found["h1"]), rel=0.15)
    ends = [window[-1]["errors"]["h1"] for window in windows(whole)]
    assert min(ends) < whole.errors["h1"] < max(ends)


def windows(solution):
    return [list(group) for _, group in itertools.groupby(solution.history.records, lambda record: record["window"])]


def test_records_say_their_window(whole):
    assert [record["step"] for record in whole.history.records] == list(range(1, whole.steps + 1))
    assert [(w[0]["window"], w[0]["t0"], w[0]["t1"]) for w in windows(whole)] == [
        (1, 0.0, 0.5), (2, 0.5, 1.0), (3, 1.0, 1.5), (4, 1.5, 2.0)
    ]  # fmt: skip
    assert all(np.isfinite(window[-1]["validation"]) and window[-1]["errors"] for window in windows(whole))
    assert (np.diff(whole.history.time) >= 0).all()
    assert len(whole.params) == 4


def test_a_window_begins_where_the_last_one_ended(whole):
    """Its initial values are those of u and, of second order, of u_t: to the last bits."""
    start = whole.u.functions[0]
    block = next(b for b in heat()(0.5, 1.0, start).features if b.name == "initial")
    z = block.inputs[0].at[:, 0].set(0.5)
    np.testing.assert_allclose(block.inputs[1][:, 0], jax.vmap(start)(z), rtol=0, atol=2e-15)
    other = wave()(0, 0.1).solution(wave()(0, 0.1).params)
    block = next(b for b in wave()(0.1, 0.5, other).features if b.name == "initial")
    z = block.inputs[0].at[:, 0].set(0.1)
    np.testing.assert_allclose(block.inputs[1][:, 0], jax.vmap(other)(z), rtol=0, atol=1e-14)
    np.testing.assert_allclose(block.inputs[1][:, 1], jax.vmap(lambda p: ng.partial(other, p, 0))(z), atol=1e-13)


def test_a_second_order_equation_goes_on_with_its_velocity():
    """At t = 0.25 the string is flat, and all there is is its velocity."""
    solution = march(wave(), times=2, steps=160)
    assert solution.errors["l2"] < 0.02
    z = jnp.array([0.5, 0.5])
    np.testing.assert_allclose(solution.u(z), -1, atol=0.03)


def test_a_window_begins_with_the_parameters_of_the_last(whole):
    """And with its own where the shapes are others."""
    wide = heat(width=7)
    changed = lambda t0, t1, start: (heat() if t0 < 1 else wide)(t0, t1, start)
    found = march(changed, times=[0, 0.5, 1, 1.5], steps=1)
    sizes = [ng.num_parameters(own) for own in found.params]
    assert sizes == [25, 25, 29]
    first = [float(jnp.asarray(window[0]["loss"])) for window in windows(whole)]
    assert max(first[1:]) < 0.5 * float(heat().whole().loss(heat().whole().params))


@pytest.mark.parametrize("stop", [5, 16, 21])
def test_interrupted_anywhere_it_goes_on_with_the_same_bits(whole, stop):
    stopped = march(target_loss=1e-6, steps=16, callback=lambda record: record["step"] == stop)
    assert (stopped.status, stopped.steps) == ("callback", stop)
    same(whole, march(target_loss=1e-6, steps=16, resume=stopped))


def test_what_is_over_goes_on_to_later_times(whole):
    part = march(times=[0, 0.5, 1.0], steps=16, target_loss=1e-6)
    same(whole, march(target_loss=1e-6, steps=16, resume=part))
    again = march(target_loss=1e-6, steps=16, resume=whole)
    same(whole, again)
    with pytest.raises(ValueError, match=r"resume goes on as it began, but a window is .*'t1': 0.4.* and was .*0.5"):
        march(times=[0, 0.4], resume=whole)
    with pytest.raises(ValueError, match="resume has a window that is not asked for"):
        march(times=[0, 0.5], resume=whole)


def test_checkpoints_hold_all_windows():
    """What the checkpoint was given is enough to go on."""
    kept = []
    done = march(times=3, steps=3, checkpoint=lambda params, state: kept.append((params, state)), group=1)
    assert [len(params) for params, _ in kept] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    records = done.history.records[:5]
    params, state = kept[4]
    there = dataclasses.replace(done, params=params, state=state, history=ng.History(records), status="interrupted")
    same(done, march(times=3, steps=3, resume=there, group=1))


def test_windows_end_at_a_target(whole):
    assert whole.status in ("steps", "target loss")
    quick = march(target_loss=0.3, steps=30)
    assert quick.status == "target loss"
    assert all(window[-1]["loss"] <= 0.3 and len(window) < 30 for window in windows(quick))
    limited = march(steps=30, time_limit=1e-9)
    assert (limited.status, limited.steps) == ("time", 1)


def test_stopped_between_two_windows():
    """By Ctrl-C where the second one is built: the first one, which had ended at its target, takes no more steps."""

    problem = heat()

    def build(t0, t1, start):
        if start is not None and impatient:
            raise KeyboardInterrupt
        return problem(t0, t1, start)

    impatient = True
    stopped = march(build, times=[0, 0.5, 1], steps=30, target_loss=0.3)
    assert stopped.status == "interrupted"
    assert stopped.steps < 30
    impatient = False
    resumed = march(build, times=[0, 0.5, 1], steps=30, target_loss=0.3, resume=stopped)
    same(march(times=[0, 0.5, 1], steps=30, target_loss=0.3), resumed)
    with pytest.raises(ValueError, match="give either params or resume, not both"):
        march(resume=stopped, params=stopped.params[0])


def test_ended_is_called_window_by_window():
    heard = []
    march(times=3, steps=2, ended=lambda index, solution: heard.append((index, solution.steps, solution.errors)))
    assert [(index, steps) for index, steps, _ in heard] == [(0, 2), (1, 2), (2, 2)]
    assert all(errors for _, _, errors in heard)


def test_steps_may_differ():
    assert [len(w) for w in windows(march(times=3, steps=[4, 2, 1]))] == [4, 2, 1]


def test_fields_and_what_is_carried_over():
    """A flow without an initial pressure: fields by name in equations, exact solutions and the result."""
    net = ng.Fields(u=ng.MLP(2, 1, 4, 1, key=jax.random.key(0)), p=ng.MLP(2, 1, 4, 1, key=jax.random.key(1)))
    flow = ng.Evolution(
        net, ng.Interval(0, 1),
        pde=lambda w, z: jnp.stack([ng.partial(w.u, z, 0) + ng.partial(w.p, z, 1), w.p(z) - w.u(z)]),
        initial=lambda x: x[0], carry=lambda w, z: w.u(z), exact={"u": lambda z: z[1] - z[0]},
        points={"pde": 60, "initial": 20},
    )  # fmt: skip
    solution = march(flow, times=2, steps=25)
    assert solution.errors["l2"] < 0.05
    z = jnp.array([0.75, 0.5])
    assert solution.u.p(z) == solution.u.functions[1].p(z)
    np.testing.assert_allclose(solution.u(z), [solution.u.u(z), solution.u.p(z)])
    with pytest.raises(AttributeError, match="no field 'q'"):
        solution.u.q  # noqa: B018


def test_any_function_of_the_times_will_do():
    """A problem of one's own, in its own time, and without an exact solution."""
    network = ng.MLP(1, 1, 4, 1, key=jax.random.key(0))

    def problem(t0, t1, start):
        before = jnp.ones((1, 1)) if start is None else jax.vmap(start)(jnp.array([[t0]]))[:, None]
        return ng.LeastSquares(
            network,
            ode=ng.Residual(lambda u, t: ng.partial(u, t, 0) + u(t), ng.Interval(t0, t1).interior(20, rule="gauss")),
            start=ng.Residual(lambda u, t, y: u(t) - y[0], jnp.array([[t0]]), data=before),
        )

    solution = march(problem, times=[0, 1, 2], steps=40)
    np.testing.assert_allclose(solution.u(jnp.array([2.0])), np.exp(-2), rtol=1e-3)
    assert solution.errors == {}
    with pytest.raises(ValueError, match=r"times=3 needs the total time: give interval=\(start, end\)"):
        march(problem, times=3)
    assert march(problem, times=2, steps=1, interval=(0, 1)).u.times == (0, 0.5, 1)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([], "times must be at least two, the start and the end of a window, got 0"),
        ([0.0], "times must be at least two, the start and the end of a window, got 1"),
        ([0, 1, 1], "times must increase, got 1 after 1"),
        ([0, 1, 0.5], "times must increase, got 0.5 after 1"),
        ([0, float("nan")], "times must be finite, got nan"),
        ([0, float("inf")], "times must be finite, got inf"),
        ([0, "a"], r"times must be a sequence of numbers, got \[0, 'a'\]"),
        (None, "times must be a sequence of numbers, got None"),
        ([0.5, 1], "times must begin at 0, where the initial values are, got 0.5"),
        ([0, 3], r"times must not be outside the problem's interval \(0, 2\), got 3"),
        (0, "the number of windows must be an integer from 1 to 10000, got 0"),
        (-2, "the number of windows must be an integer from 1 to 10000, got -2"),
        (True, "the number of windows must be an integer from 1 to 10000, got True"),
        (10**9, "the number of windows must be an integer from 1 to 10000"),
        (2.5, "times must be a sequence of numbers, got 2.5"),
        ("soon", "times must be \"auto\", a number of windows or a sequence of times, got 'soon'"),
    ],
)
def test_bad_times_end_in_one_line(times, words):
    with pytest.raises(ValueError, match=words) as caught:
        march(times=times)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"times": [0, 1], "interval": (0, 1)}, "interval does too: leave interval out"),
        ({"interval": (1, 0)}, r"two finite times, the earlier one first, got \(1, 0\)"),
        ({"interval": 3}, r"interval must be two times such as \(0, 1\), got 3"),
        ({"tolerance": 1e-3}, 'tolerance belongs to times="auto": leave it out'),
        ({"times": "auto", "tolerance": -1}, "tolerance must be a positive"),
        ({"steps": [1, 2]}, "steps must be one number, or one for each of 4, got 2"),
        ({"steps": 0}, "steps must be a positive integer, got 0"),
        ({"resume": 3}, r"resume takes the solution of an earlier solve, or ng.load_solution\(path\), got int"),
        ({"callback": 3}, "callback must be a function, or a list of functions, got int"),
    ],
)
def test_bad_options_end_in_one_line(options, words):
    with pytest.raises(ValueError, match=words):
        march(**options)


def test_what_is_no_evolution_is_refused():
    with pytest.raises(ValueError, match=r"march takes an ng.Evolution or a function .*, got LeastSquares"):
        march(heat().whole())
    with pytest.raises(ValueError, match=r"solve takes a problem such as ng.LeastSquares\(…\), got int"):
        march(lambda t0, t1, start: 3, times=[0, 1])
    with pytest.raises(ValueError, match="there is no block 'rim' to give weights: there are pde, initial, ends"):
        heat(weights={"rim": 1})
    with pytest.raises(ValueError, match="initial must be a function of x, or a pair of them"):
        ng.Evolution(eqx.nn.Identity(), ng.Interval(0, 1), pde=print, initial=3)
    fresh = lambda cylinder: cylinder.initial(20, key=jax.random.key(7), fresh=True)
    with pytest.raises(ValueError, match="the points of 'initial' must stay where they are"):
        heat(points={"initial": fresh})
