"""Several steps a call: the same iterates however they are divided, one trace, and groups that end where they must."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad import stepping
from natgrad.backend import tuning
from natgrad.experiment.optimizers import NAMES, build
from tests.helpers import poisson

pytestmark = pytest.mark.usefixtures("quick_compilation")
STEPS = 7


@pytest.fixture
def calls(monkeypatch):
    """The number of steps of each call, in the order they were made."""
    counts, call = [], stepping.Stepper.__call__

    def spy(self, start, count):
        counts.append(count)
        return call(self, start, count)

    monkeypatch.setattr(stepping.Stepper, "__call__", spy)
    return counts


@functools.cache
def problem():
    return poisson()


class Told(eqx.Module):
    """A solver's report."""

    loss: jax.Array
    change: jax.Array
    first: jax.Array


def solve(steps=STEPS, solver=None, **options):
    return ng.solve(problem(), solver or ng.NystromNGD(max_rank=20), steps, progress=False, **options)


def flat(solution):
    return np.asarray(ravel_pytree(solution.params)[0])


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_steps_in_groups(name, calls):
    """Its state has the shapes and types after a step that it had before."""
    solution = solve(solver=build(name, "default", {}, STEPS), group=STEPS)
    assert calls == [STEPS]
    assert solution.history.loss[-1] < solution.history.loss[0]
    np.testing.assert_allclose(solution.loss, problem().loss(solution.params), rtol=1e-9)


@pytest.mark.parametrize(("solver", "close"), [(ng.FullNGD(), 1e-8), (ng.NystromNGD(max_rank=20), 1e-2)])
def test_groups_go_where_single_steps_go(solver, close):
    """Inner solves end at a relative error of 1e-5, round-off decides at which iteration; a direct solver is exact."""
    one, many = solve(solver=solver, group=1), solve(solver=solver, group=STEPS)
    np.testing.assert_allclose(many.history.loss, one.history.loss, rtol=close)
    np.testing.assert_allclose(flat(many), flat(one), atol=close * np.max(np.abs(flat(one))))
    assert set(many.history) == set(one.history)


def test_bits_do_not_depend_on_the_groups():
    """Nor on where a run stops amid one: what is taken again is what was taken."""
    whole, pieces = solve(group=5), solve(group=5, evaluate_every=2)
    np.testing.assert_array_equal(flat(whole), flat(pieces))
    np.testing.assert_array_equal(whole.history.loss, pieces.history.loss)
    stopped = solve(group=5, callback=lambda record: record["step"] == 3)
    rest = solve(STEPS - 3, group=5, resume=stopped)
    assert stopped.steps == 3
    np.testing.assert_array_equal(flat(whole), flat(rest))
    np.testing.assert_array_equal(whole.history.loss, rest.history.loss)


def test_groups_are_traced_once():
    traces = 0

    class Counted(ng.NaturalGradient):
        def step(self, problem, params, state):
            nonlocal traces
            traces += 1
            return super().step(problem, params, state)

    solve(12, Counted(ng.Direct()), group=4, evaluate_every=5)
    assert traces == 1


def test_groups_end_at_evaluations_and_at_the_end(calls):
    seen = []
    at = lambda params, state: seen.append(int(state.iteration))
    solution = solve(17, group=4, evaluate_every=6, checkpoint=at)
    assert calls == [4, 2, 4, 2, 4, 1]
    assert seen == list(np.cumsum(calls))
    assert list(np.flatnonzero(~np.isnan(solution.history.errors["h1"])) + 1) == [6, 12, 17]
    assert np.all(np.diff(solution.history.time) > 0)


def test_a_group_that_is_cut_is_taken_again_up_to_there(calls):
    solution = solve(20, group=10, target_loss=0.2 * float(problem().loss(problem().params)))
    assert solution.status == "target loss"
    assert 1 < solution.steps < 10
    assert calls == [10, solution.steps]
    np.testing.assert_allclose(solution.loss, problem().loss(solution.params), rtol=1e-9)
    assert int(solution.state.iteration) == solution.steps


def test_a_call_takes_what_its_time_allows(monkeypatch, calls):
    """As many as fit into the period by the call before, the first by itself."""
    monkeypatch.setattr(tuning, "SECONDS", 1e9)
    monkeypatch.setattr(tuning, "STEPS", 8)
    solve(11, ng.FullNGD(), evaluate_every=1000)
    assert calls == [1, 8, 2]
    calls.clear()
    monkeypatch.setattr(tuning, "SECONDS", 1e-9)
    solve(3, ng.FullNGD(), evaluate_every=1000)
    assert calls == [1, 1, 1]


def test_large_steps_on_a_cpu_go_one_by_one(monkeypatch):
    assert stepping.most(problem()) == tuning.STEPS
    size = problem().num_parameters * problem().num_rows
    monkeypatch.setattr(tuning, "STEP_NUMBERS", tuning.STEP_NUMBERS._replace(cpu=size - 1))
    assert stepping.most(problem()) == 1
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert stepping.most(problem()) == tuning.STEPS


def test_weak_types_and_vectors_pass():
    """A solver of someone else's may count in Python numbers and tell more than numbers."""

    class Simple:
        adam = optax.adam(1e-2)

        def init(self, problem, params, key):
            return self.adam.init(params), 0

        def step(self, problem, params, state):
            inner, count = state
            loss, slope = jax.value_and_grad(problem.loss)(params)
            updates, inner = self.adam.update(slope, inner, params)
            new = optax.apply_updates(params, updates)
            told = {"loss": loss, "change": problem.loss(new) - loss, "first": jnp.ones(2) * count}
            return new, (inner, count * 1 + 1), Told(**told)

    for group in (1, 3):
        history = solve(5, Simple(), group=group).history
        np.testing.assert_array_equal(history["first"], np.arange(5)[:, None] * np.ones(2))
