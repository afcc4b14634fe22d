"""Several problems of one shape: the same iterates as one by one, one compilation, and each ends by itself."""

import jax
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.backend.programs import COMPILATIONS
from tests.helpers import energy, poisson

pytestmark = pytest.mark.usefixtures("quick_compilation")
SEEDS = (0, 1, 2)
SOLVER = ng.NystromNGD(max_rank=20)


def problems(**options):
    return [poisson(seed=seed, **options) for seed in SEEDS]


def keys():
    return [jax.random.key(seed) for seed in SEEDS]


def many(steps=8, solver=SOLVER, some=None, **options):
    options = {"progress": False, "evaluate_every": 4, **options}
    return ng.solve_many(some or problems(), solver, steps, **options)


def alone(index, steps=8, solver=SOLVER, **options):
    return ng.solve(problems()[index], solver, steps, progress=False, evaluate_every=4, **options)


def flat(solution):
    return np.asarray(ravel_pytree(solution.params)[0])


SOLVERS = [pytest.param(SOLVER, marks=pytest.mark.slow), pytest.param(ng.FullNGD(), marks=pytest.mark.slow), ng.Adam()]


@pytest.mark.parametrize("solver", SOLVERS, ids=["nystrom", "full", "adam"])
def test_at_once_as_one_by_one(solver):
    """To round-off, which inner solves enlarge from step to step; errors and validation where they are due."""
    steps, close = (4, 1e-3) if solver is SOLVER else (8, 1e-6)
    together = many(steps, solver=solver, at_once=True, keys=keys(), group=4)
    for index, solution in enumerate(together):
        other = alone(index, steps, solver=solver, key=keys()[index])
        assert (solution.status, solution.steps) == ("steps", steps)
        np.testing.assert_allclose(solution.history.loss, other.history.loss, rtol=close)
        np.testing.assert_allclose(solution.errors["h1"], other.errors["h1"], rtol=close)
        np.testing.assert_allclose(solution.validation, other.validation, rtol=close)
        assert list(solution.history) == list(other.history)
        assert np.all(np.diff(solution.history.time) > 0)
    assert len({solution.loss for solution in together}) == len(SEEDS)


def test_in_turn_to_the_last_bit():
    for index, solution in enumerate(many(at_once=False, keys=keys())):
        other = alone(index, key=keys()[index])
        np.testing.assert_array_equal(flat(solution), flat(other))
        np.testing.assert_array_equal(solution.history.loss, other.history.loss)


@pytest.mark.parametrize("at_once", [True, False])
def test_one_compilation(at_once):
    ng.clear_cache()
    one, other = problems(), problems()
    before = COMPILATIONS["new"]
    first = many(5, at_once=at_once, some=one)
    assert COMPILATIONS["new"] - before <= 3  # the step, the evaluation, and what takes one problem out of several
    before = COMPILATIONS["new"]
    many(5, at_once=at_once, some=other, resume=first)
    assert COMPILATIONS["new"] == before


@pytest.mark.parametrize("at_once", [True, False])
def test_one_that_ends_stays_while_others_go_on(at_once):
    """Amid a group: what is taken again is what was taken."""
    stop = lambda index, record: "enough" if (index, record["step"]) == (1, 3) else None
    solutions = many(at_once=at_once, callback=stop, group=4)
    assert [(s.status, s.steps) for s in solutions] == [("steps", 8), ("enough", 3), ("steps", 8)]
    whole, short = many(at_once=at_once, group=4), many(3, at_once=at_once, group=4)
    np.testing.assert_array_equal(flat(solutions[1]), flat(short[1]))
    for index in (0, 2):
        np.testing.assert_array_equal(flat(solutions[index]), flat(whole[index]))
    np.testing.assert_allclose(solutions[1].loss, problems()[1].loss(solutions[1].params), rtol=1e-9)


@pytest.mark.parametrize("at_once", [True, False])
def test_resuming_is_as_if_never_stopped(at_once):
    whole, half = many(at_once=at_once, group=3), many(4, at_once=at_once, group=3)
    rest = many(4, at_once=at_once, group=3, resume=half)
    for a, b in zip(whole, rest, strict=True):
        np.testing.assert_array_equal(flat(a), flat(b))
        np.testing.assert_array_equal(a.history.loss, b.history.loss)


@pytest.mark.parametrize("at_once", [True, False])
def test_an_interruption_keeps_what_there_is(at_once):
    def stop(index, record):
        if (index, record["step"]) == (1, 3):
            raise KeyboardInterrupt

    solutions = many(at_once=at_once, callback=stop, group=4)
    assert [s.status for s in solutions][1:] == ["interrupted"] * 2
    assert [s.steps for s in solutions] == ([4, 3, 0] if at_once else [8, 3, 0])
    for solution, problem in zip(solutions, problems(), strict=True):
        loss = solution.loss if solution.steps else float(problem.loss(problem.params))
        np.testing.assert_allclose(loss, problem.loss(solution.params), rtol=1e-9)


def test_checkpoints_name_their_problem():
    seen = []
    many(8, at_once=True, group=4, checkpoint=lambda index, params, state: seen.append((index, int(state.iteration))))
    assert seen == [(index, step) for step in (4, 8) for index in range(3)]


def test_what_all_share_is_there_once():
    """The evaluation points of equal domains, but no weights of networks and no points."""
    from natgrad.batch import Batch
    from natgrad.plan import plan

    some = problems()
    solver = plan(SOLVER, some[0])
    places = [(p.params, solver.init(p, p.params, jax.random.key(0))) for p in some]
    batch = Batch(some, solver, places, 1, False)
    leaves = jax.tree.leaves(some[0])
    single = [new.shape == old.shape for new, old in zip(batch.data, leaves, strict=True)]
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(some[0])]
    once = {name for name, alone in zip(names, single, strict=True) if alone}
    assert any(name.startswith(".norms") for name in once)
    assert not any("weight" in name for name in once if name.startswith(".params"))
    assert not any(name.startswith(".features[0].inputs") for name in once)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda some: [], "at least one problem, got none"),
        (lambda some: [*some, poisson(points=40)], "problem 3 has 40 rows in block 'pde' and problem 0 has 37"),
        (lambda some: [*some, poisson(width=5)], r"problem 3 has .*weight.* of float64\[5, 2\] and problem 0"),
        (lambda some: [some[0], energy()], "problem 1 is EnergyMinimization and problem 0 is LeastSquares"),
        (lambda some: [some[0], some[1].with_weights({"pde": 2.0}), poisson(dim=3)], "problem 2 has"),
        (lambda some: [some[0], 3], "solve takes a problem"),
    ],
)
def test_other_shapes_are_named(change, message):
    with pytest.raises(ValueError, match=message) as caught:
        ng.solve_many(change(problems()), SOLVER, 1, progress=False)
    assert "\n" not in str(caught.value)


def test_other_equations_are_refused():
    line = ng.Interval(0.0, 1.0).interior(20, key=jax.random.key(0))
    build = lambda power: ng.LeastSquares(
        ng.MLP(1, 1, 4, 1, key=jax.random.key(0)), fit=ng.Residual(lambda u, x: u(x) - x[0] ** power, line)
    )
    with pytest.raises(ValueError, match="problem 1 differs from problem 0 in a function"):
        ng.solve_many([build(2), build(3)], SOLVER, 1, progress=False)


@pytest.mark.parametrize("name", ["keys", "params", "resume"])
def test_one_entry_a_problem(name):
    with pytest.raises(ValueError, match=f"{name} must have one entry for each of the 3 problems, got 1"):
        many(1, **{name: [None]})


@pytest.mark.parametrize("at_once", [True, False])
def test_lengths_of_their_own(at_once):
    """Each ends after its own steps, is told then and there, and is checkpointed while it goes on alone."""
    told, kept = [], []
    solutions = many(
        [3, 8, 5],
        solver=ng.Adam(),
        at_once=at_once,
        group=1,
        ended=lambda index, solution: told.append((index, solution.steps)),
        checkpoint=lambda index, params, state: kept.append(index),
    )
    assert [s.steps for s in solutions] == [3, 8, 5]
    assert told == ([(0, 3), (2, 5), (1, 8)] if at_once else [(0, 3), (1, 8), (2, 5)])
    assert [kept.count(index) for index in range(3)] == [3, 8, 5]
    whole = many(8, solver=ng.Adam(), at_once=at_once, group=1)
    np.testing.assert_array_equal(solutions[2].history.loss, whole[2].history.loss[:5])


def test_time_limits_of_their_own():
    solutions = many(8, solver=ng.Adam(), at_once=False, group=1, time_limit=[None, 1e-9, None])
    assert [(s.status, s.steps) for s in solutions] == [("steps", 8), ("time", 1), ("steps", 8)]


@pytest.mark.parametrize("name", ["steps", "time_limit"])
def test_one_length_for_all_or_one_each(name):
    with pytest.raises(ValueError, match=f"{name} must have one entry for each of the 3 problems, got 2"):
        many(**{"steps": 1, name: [1, 2]})
