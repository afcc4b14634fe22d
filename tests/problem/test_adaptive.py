"""The draw of adaptive points: integrals stay right, densities have no units, parts that stay do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.problem.moving import moves, relative_density, systematic

KEY = jax.random.key(0)
SQUARE = ng.Box([0.0, 0.0], [1.0, 2.0])
RULE = ng.ByResidual(every=1, power=1.0, floor=0.5, pool=20)


def peak(inputs):
    return jnp.exp(-50 * jnp.sum((inputs[0] - jnp.array([0.5, 1.0])) ** 2, axis=1))


def adapted(points, score, seeds, iteration=1):
    move = moves(points, lambda points: (2 * points.x[:, 0],))
    now = move.placed((points.x, 2 * points.x[:, 0]), points.weights)
    draw = jax.jit(lambda key: move(now, key, jnp.asarray(iteration), score))
    return [draw(jax.random.key(seed)) for seed in range(seeds)]


def test_integrals_stay_right():
    """∫1 exactly, those of smooth functions in the mean over draws, and nearer than by points spread evenly."""
    draws = adapted(SQUARE.interior(200, key=KEY, adaptive=RULE), peak, 200)
    for draw in draws[:5]:
        np.testing.assert_allclose(draw.weights.sum(), 2.0, rtol=1e-12)
        np.testing.assert_array_equal(draw.inputs[1], 2 * draw.inputs[0][:, 0])
    sums = lambda f: np.asarray([float(draw.weights @ f(draw.inputs[0])) for draw in draws])
    smooth = sums(lambda x: jnp.cos(x[:, 0]) * x[:, 1])
    assert np.mean(smooth) == pytest.approx(2 * np.sin(1), abs=4 * np.std(smooth) / np.sqrt(200))
    bump = sums(lambda x: peak((x,)))
    assert np.mean(bump) == pytest.approx(np.pi / 50, rel=0.02)
    even = [float(jnp.sum(peak((SQUARE.interior(200, key=jax.random.key(k)).x,))) * 2 / 200) for k in range(50)]
    assert np.std(bump) < 0.7 * np.std(even)


def test_points_crowd_where_the_residual_is():
    (draw,) = adapted(SQUARE.interior(400, key=KEY, adaptive=RULE), peak, 1)
    near = np.sum((np.asarray(draw.inputs[0]) - [0.5, 1.0]) ** 2, axis=1) < 0.04
    assert np.mean(near) > 0.5 > 0.2 > np.pi * 0.04 / 2
    assert np.max(draw.weights[near]) < np.min(draw.weights[~near]) * 3


def test_a_part_that_stays_stays():
    still, rule = SQUARE.interior(30, key=KEY), ng.ByResidual(every=3)
    points = still + SQUARE.interior(50, key=KEY, adaptive=rule) + SQUARE.interior(20, key=KEY, fresh=True)
    (due,), (not_due,) = (adapted(points, peak, 1, iteration) for iteration in (3, 4))
    for draw, moved in ((due, [False, True, True]), (not_due, [False, False, True])):
        same = np.all(np.asarray(draw.inputs[0]) == np.asarray(points.x), axis=1)
        assert [not np.any(same[part]) for part in (slice(30), slice(30, 80), slice(80, 100))] == moved


@pytest.mark.parametrize("score", [jnp.zeros(8), jnp.full(8, jnp.nan), jnp.full(8, jnp.inf), jnp.full(8, 1e300)])
def test_a_residual_that_says_nothing_spreads_points_evenly(score):
    np.testing.assert_allclose(relative_density(score, jnp.ones(8), RULE), 1.0)


def test_densities_have_the_mean_one_and_no_units():
    score, weights = jax.random.uniform(KEY, (2, 50))
    density = relative_density(score, weights, RULE)
    np.testing.assert_allclose(weights @ density, weights.sum())
    np.testing.assert_array_equal(relative_density(2.0**70 * score, weights, RULE), density)
    assert density.min() >= 0.5 / 1.5


def test_systematic_sampling_takes_each_candidate_as_often_as_it_should():
    weights, density = jax.random.uniform(KEY, (2, 40)) + 0.1
    share = np.asarray(weights * density / (weights @ density))
    for offset in (0.0, 0.3, 0.999):
        chosen, found = systematic(weights, density, 200, jnp.asarray(offset))
        counts = np.bincount(np.asarray(chosen), minlength=40)
        assert np.all(np.abs(counts - 200 * share) <= 1)
        np.testing.assert_allclose(found, (weights / (200 * share))[chosen])
