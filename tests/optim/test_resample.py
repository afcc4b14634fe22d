"""Points that move: fresh at every step or adaptive, the same in every run, in the state, and compiled once."""

from functools import partial
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.optim import KernelNGD
from tests.helpers import FAST

pytestmark = pytest.mark.usefixtures("quick_compilation")
SQUARE = ng.Box([0.0, 0.0], [1.0, 1.0])
INSIDE, RIM, KEY = (jax.random.key(seed) for seed in (1, 5, 3))
WAYS = {
    "fresh": {"fresh": True},
    "fresh sobol": {"fresh": True, "rule": "sobol"},
    "adaptive": {"adaptive": ng.ByResidual(every=2, pool=3)},
}


def exact(x):
    return jnp.sin(x[0]) * jnp.exp(x[1])


def harmonic(u, x, units=1.0):
    return units * ng.laplacian(u, x)


def slope(u, x, normal, target):
    return ng.gradient(u, x) @ normal - target


def outward(points):
    return points.normals, jax.vmap(lambda x, n: ng.gradient(exact, x) @ n)(points.x, points.normals)


def problem(seed=0, weight=2.0, units=1.0, **moves):
    return ng.LeastSquares(
        ng.MLP(2, 1, 6, 2, key=jax.random.key(seed)),
        pde=ng.Residual(
            harmonic, SQUARE.interior(20, key=INSIDE, **moves), data=lambda points: jnp.full(len(points), units)
        ),
        values=ng.Residual(lambda u, x: u(x) - exact(x), SQUARE.boundary(10, key=RIM)),
        slopes=ng.Residual(slope, SQUARE.boundary(12, key=KEY, **moves), data=outward, weight=weight),
        exact=exact,
    )


def ritz(**moves):
    points = SQUARE.interior(30, key=INSIDE, **moves)
    density = lambda u, x, f: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - f * u(x)
    return ng.EnergyMinimization(
        ng.MLP(2, 1, 6, 1, key=jax.random.key(0)),
        inside=ng.Energy(density, points, metric=ng.metrics.EnergyNorm(), data=lambda points: points.x[:, 0]),
        rim=ng.Energy(lambda u, x: u(x) ** 2, SQUARE.boundary(10, key=RIM, **moves), metric=None),
    )


SOLVER = KernelNGD(acceleration=0.0, momentum=0.5)


def loop(problem, solver, count, still=False):
    """States and infos of some steps by a loop of one's own; `still` keeps the parameters."""
    params, told = problem.params, []
    state, step = solver.init(problem, params, KEY), partial(jax.jit, compiler_options=FAST)(solver.step)
    for _ in range(count):
        new, state, info = step(problem, params, state)
        params = params if still else new
        told.append((state, info))
    assert step._cache_size() == 1
    return params, told


@pytest.mark.parametrize("way", WAYS)
def test_where_the_points_are_in_each_step(way):
    """Moving blocks alone, every step or every second one; on their sets, with weights of the same sum and data."""
    _, told = loop(problem(**WAYS[way]), ng.Resampled(SOLVER), 4)
    assert all(set(state.points) == {"pde", "slopes"} for state, _ in told)
    first = np.asarray(SQUARE.interior(20, key=INSIDE, rule=WAYS[way].get("rule", "monte-carlo")).x)
    places = [first, *(np.asarray(state.points["pde"].inputs[0]) for state, _ in told)]
    stayed = [np.array_equal(a, b) for a, b in pairwise(places)]
    assert stayed == ([True, True, False, True] if way == "adaptive" else [False] * 4)
    assert [float(info.step_size) > 0 for _, info in told].count(True) >= 2
    state, _ = told[-1]
    np.testing.assert_allclose(state.points["pde"].weights.sum(), 1.0)
    np.testing.assert_allclose(state.points["slopes"].weights.sum(), 4.0)
    x, normals, targets = state.points["slopes"].inputs
    assert np.all(SQUARE.contains(state.points["pde"].inputs[0]))
    assert np.all(SQUARE.on_boundary(x))
    np.testing.assert_allclose(np.sum(np.abs(normals), axis=1), 1.0)
    np.testing.assert_allclose(targets, jax.vmap(lambda x, n: ng.gradient(exact, x) @ n)(x, normals), rtol=1e-12)


def test_the_loss_of_a_step_is_that_at_its_points():
    """With the weight of the block."""
    made = problem(weight=7.0, fresh=True)
    _, told = loop(made, ng.Resampled(SOLVER), 3, still=True)
    losses = [float(info.loss) for _, info in told]
    assert len(set(losses)) == 3
    for (state, _), loss in zip(told, losses, strict=True):
        there = made.at(state.points)
        assert not there.moving
        np.testing.assert_allclose(there.features[2].weights.sum(), 28.0)
        np.testing.assert_allclose(there.loss(made.params), loss, rtol=1e-10)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_repeats_itself_and_goes_on_bit_for_bit(way):
    made = problem(**WAYS[way])
    train = lambda steps, **more: ng.solve(made, SOLVER, steps=steps, progress=False, **more)
    whole, half = train(6, key=KEY), train(3, key=KEY)
    rest = train(3, resume=half)
    np.testing.assert_array_equal(whole.history.loss, rest.history.loss)
    for a, b in zip(jax.tree.leaves(whole.params), jax.tree.leaves(rest.params), strict=True):
        np.testing.assert_array_equal(a, b)
    assert ng.solve(problem(**WAYS[way]), SOLVER, steps=1, progress=False).compiled == "memory"


@pytest.mark.parametrize("way", ["fresh", "adaptive"])
@pytest.mark.parametrize("at_once", [True, False])
def test_several_problems(way, at_once):
    """Each is drawn from its own key, and trained as if it were alone."""
    made, keys = [problem(seed, **WAYS[way]) for seed in (0, 1)], [jax.random.key(seed) for seed in (7, 8)]
    together = ng.solve_many(made, SOLVER, 4, keys=keys, progress=False, at_once=at_once)
    for one, key, solution in zip(made, keys, together, strict=True):
        alone = ng.solve(one, SOLVER, 4, key=key, progress=False)
        np.testing.assert_allclose(solution.history.loss, alone.history.loss, rtol=1e-6)
        np.testing.assert_allclose(
            solution.state.points["pde"].inputs[0], alone.state.points["pde"].inputs[0], rtol=1e-6
        )


def test_units_of_the_residual_do_not_move_the_points():
    adaptive = {"adaptive": ng.ByResidual(every=1, power=2.0)}
    points = []
    for units in (1.0, 2.0**20):
        _, told = loop(problem(units=units, **adaptive), ng.Resampled(SOLVER), 3, still=True)
        points.append(told[-1][0].points["pde"])
    np.testing.assert_array_equal(points[0].inputs[0], points[1].inputs[0])
    np.testing.assert_allclose(points[0].weights, points[1].weights, rtol=1e-13)


def test_an_energy_has_fresh_points_too():
    made = ritz(fresh=True)
    _, told = loop(made, ng.Resampled(ng.FullNGD()), 3, still=True)
    places = [state.points for state, _ in told]
    assert len({float(info.loss) for _, info in told}) == 3
    for (_, info), points in zip(told, places, strict=True):
        there = made.at(points)
        np.testing.assert_allclose(there.loss(made.params), info.loss, rtol=1e-10)
        np.testing.assert_array_equal(there.features[0].inputs[0], points["inside"].inputs[0])
        np.testing.assert_array_equal(points["inside"].inputs[1], points["inside"].inputs[0][:, 0])
        assert set(points) == {"inside", "rim"}
    solution = ng.solve(made, ng.FullNGD(), 3, progress=False)
    assert 0.5 < solution.history.records[-1]["elsewhere"] < 2


def test_adam_draws_and_quasi_newton_methods_stay():
    slow = ng.Adam(total=10, peak=1e-12, start=1e-12, end=1e-12)  # so slow that only the points change the loss
    losses = ng.solve(problem(fresh=True), slow, steps=3, progress=False).history.loss
    assert np.ptp(losses) > 1e-3 * losses[0]
    made = problem(fresh=True)
    stayed = ng.solve(made, ng.LBFGS(), steps=3, progress=False).state.points["pde"]
    np.testing.assert_array_equal(stayed.inputs[0], made.features[0].inputs[0])


def test_weights_are_balanced_at_the_points_of_the_step():
    made = problem(weight="auto", fresh=True)
    solution = ng.solve(made, ng.FullNGD(), 3, progress=False, key=KEY)
    assert solution.history.weights["slopes"][0] not in (0.0, 1.0)
    by_hand = ng.solve(made, ng.Resampled(ng.Balanced(ng.FullNGD())), 3, progress=False, key=KEY)
    np.testing.assert_array_equal(solution.history.loss, by_hand.history.loss)
    half = ng.solve(made, ng.FullNGD(), 2, progress=False, key=KEY)
    rest = ng.solve(made, ng.FullNGD(), 1, progress=False, resume=half)
    np.testing.assert_array_equal(solution.history.loss, rest.history.loss)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: SOLVER.step(problem(fresh=True), None, None),
            "the points of block 'pde' are drawn anew .* ng.Resampled",
        ),
        (lambda: ng.Adam().step(problem(fresh=True), None, None), "ng.solve and ng.Resampled.solver. do"),
        (lambda: ng.Resampled(SOLVER).init(problem(), None, KEY), "nothing to draw"),
        (lambda: ng.Resampled(ng.Resampled(SOLVER)), "draws points already"),
        (lambda: ng.Resampled(3), "takes a solver such as ng.NystromNGD.., got int"),
        (
            lambda: ng.Residual(harmonic, SQUARE.interior(3, key=KEY, fresh=True), data=jnp.ones(3)),
            "function of the points",
        ),
        (lambda: ng.Residual(harmonic, lambda key: SQUARE.interior(3, key=key)), "fresh=True"),
        (lambda: ritz(adaptive=ng.ByResidual()), "an energy has no residual for points to follow"),
        (
            lambda: ng.LeastSquares(
                ng.MLP(2, 1, 3, 1, key=KEY),
                pde=ng.Residual(
                    lambda u, x: u(x), jax.tree.map(lambda a: a[:2], SQUARE.interior(3, key=KEY, fresh=True))
                ),
            ),
            "picked by hand, and cannot be drawn anew",
        ),
        (
            lambda: ng.LeastSquares(
                ng.MLP(2, 1, 3, 1, key=KEY),
                pde=ng.Residual(lambda u, x: u(x), SQUARE.interior(3, key=KEY)),
                exact=exact,
                evaluation=SQUARE.interior(9, key=KEY, fresh=True),
            ),
            "points that stay",
        ),
    ],
)
def test_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_run_does_not_go_on_with_points_of_another_kind():
    before = ng.solve(problem(), SOLVER, 1, progress=False)
    with pytest.raises(ValueError, match="whether points are drawn anew in blocks is 'pde, slopes' and was ''"):
        ng.solve(problem(fresh=True), SOLVER, 1, progress=False, resume=before)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_it_learns_from_points_it_never_sees_twice(way):
    solution = ng.solve(problem(**WAYS[way]), SOLVER, steps=60, progress=False, evaluate_every=60)
    assert solution.errors["l2"] < 5e-3
