"""Callbacks with the record alone, with the parameters as well, and several of them."""

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

pytestmark = pytest.mark.usefixtures("quick_compilation")
LINE = ng.Interval(0, 1).interior(9, rule="gauss")
MISFIT = lambda u, x: u(x) - jnp.sin(5 * x[0])


def fit():
    return ng.LeastSquares(ng.MLP(1, 1, 4, 1, key=jax.random.key(0)), fit=ng.Residual(MISFIT, LINE))


def leaves(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def solve(steps=7, **options):
    return ng.solve(fit(), ng.FullNGD(), steps, progress=False, **{"evaluate_every": 5, **options})


class Follower:
    """Asks for everything at every step."""

    def __init__(self):
        self.seen, self.due, self.end = [], [], None

    def __call__(self, record, now):
        self.seen.append(leaves(now.params))
        self.due += [record["step"]] if now.due else []
        assert leaves(jax.tree.leaves(now.network)).size >= self.seen[-1].size
        assert now.params is now.params

    def ended(self, solution):
        self.end = solution


@pytest.mark.parametrize("group", [1, 4])
def test_parameters_are_those_after_the_step_to_the_last_bit(group):
    follower = Follower()
    solution = solve(callback=follower, group=group)
    assert follower.end is solution
    assert follower.due == [5, 7]
    expected = [leaves(solve(step, group=group, evaluate_every=100).params) for step in (1, 3, 5, 7)]
    np.testing.assert_array_equal([follower.seen[step - 1] for step in (1, 3, 5, 7)], expected)


def test_asking_changes_nothing():
    np.testing.assert_array_equal(leaves(solve(callback=Follower(), group=4).params), leaves(solve(group=4).params))


def test_parameters_at_due_steps_take_no_step_twice(monkeypatch):
    from natgrad.stepping import Stepper

    counts, call = [], Stepper.__call__
    monkeypatch.setattr(Stepper, "__call__", lambda self, start, n: counts.append(n) or call(self, start, n))
    solve(callback=lambda record, now: now.due and leaves(now.params).sum() and None, group=5)
    assert counts == [5, 2]


def test_several_are_all_told_and_the_first_wish_counts():
    told = []
    several = [
        lambda record: told.append(("a", record["step"])),
        lambda record, now: "enough" if record["step"] == 2 else None,
        lambda record, loud=True: told.append(("c", record["step"])),
        lambda *given: len(given) > 1,  # true where it is given more
    ]
    assert solve(callback=several, group=4).status == "enough"
    assert told == [("a", 1), ("c", 1), ("a", 2), ("c", 2)]


@pytest.mark.parametrize("at_once", [False, True])
def test_of_many_problems_each_has_its_own(at_once):
    found = {}

    def look(index, record, now):
        found.setdefault(index, []).append(leaves(now.params))

    problems = [fit(), fit()]
    starts = [problems[0].params, jax.tree.map(lambda a: a + 0.1, problems[0].params)]
    solutions = ng.solve_many(
        problems, ng.FullNGD(), 3, params=starts, callback=look, progress=False, at_once=at_once, group=3
    )
    for index, solution in enumerate(solutions):
        np.testing.assert_array_equal(found[index][-1], leaves(solution.params))
        alone = leaves(ng.solve(problems[index], ng.FullNGD(), 1, params=starts[index], progress=False).params)
        np.testing.assert_allclose(found[index][0], alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("wrong", [3, [print, "b"]])
def test_what_is_no_callback(wrong):
    with pytest.raises(ValueError, match="callback must be a function, or a list of functions, got "):
        solve(callback=wrong)
    with pytest.raises(ValueError, match=r"callback takes an object, and Counter is a class: write Counter\(…\)"):
        solve(callback=Counter)


def test_a_network_with_an_activation_is_seen_whole():
    class Odd(eqx.Module):
        scale: jax.Array
        activation: object

        def __call__(self, x):
            return self.scale * self.activation(x[0])

    problem = ng.LeastSquares(Odd(jnp.asarray(2.0), jnp.tanh), fit=ng.Residual(MISFIT, LINE))
    seen = []
    ng.solve(problem, ng.FullNGD(), 2, progress=False, callback=lambda record, now: seen.append(now.network.activation))
    assert seen == [jnp.tanh] * 2
