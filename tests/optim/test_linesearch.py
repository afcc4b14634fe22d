"""Searches: the step they accept satisfies what they promise, and none raises the loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

# φ(α) = −slope·α + ½ c α²: minimum at slope/c, negative up to 2·slope/c
CURVATURES = [0.5, 1.0, 3.0, 30.0, 1e4]


def search(how, change, slope=1.0):
    return how(change, jnp.asarray(slope))


@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("decrease", [1e-4, 0.3])
def test_armijo_takes_the_first_step_that_decreases_enough(c, decrease):
    phi = lambda a: -a + 0.5 * c * a**2
    result = search(ng.Armijo(decrease=decrease), phi)
    step = float(result.step_size)
    steps = 0.5 ** np.arange(30)
    good = [a for a in steps if phi(a) <= -decrease * a]
    assert step == good[0]
    np.testing.assert_allclose(result.change, phi(step), rtol=1e-14)
    assert int(result.evaluations) == list(steps).index(step) + 1


def test_armijo_evaluates_no_more_than_it_says():
    count = []

    def phi(a):
        jax.debug.callback(lambda: count.append(1))
        return -a + 50.0 * a**2

    result = jax.block_until_ready(search(ng.Armijo(), phi))
    jax.effects_barrier()
    assert len(count) == int(result.evaluations)


@pytest.mark.parametrize("how", [ng.Armijo(), ng.GridSearch(), ng.Armijo(shrink=0.1)])
@pytest.mark.parametrize(
    "phi",
    [lambda a: a, lambda a: 0 * a, lambda a: jnp.nan * a, lambda a: jnp.inf * a],
    ids=["up", "flat", "nan", "inf"],
)
def test_no_descent_is_a_step_of_zero(how, phi):
    result = search(how, phi)
    assert float(result.step_size) == 0
    assert float(result.change) == 0


@pytest.mark.parametrize("how", [ng.Armijo(), ng.GridSearch()])
def test_flat_slope_never_raises_the_loss(how):
    """With a slope of zero every φ ≤ 0 satisfies Armijo's condition; standing still is no step."""
    assert float(search(how, lambda a: 0 * a, slope=0.0).step_size) == 0


@pytest.mark.parametrize(
    ("how", "bad"),
    [
        (ng.Armijo(), np.nan),
        (ng.Armijo(), np.inf),
        (ng.Armijo(), -np.inf),
        (ng.GridSearch(), np.nan),
        (ng.GridSearch(), np.inf),
        (ng.GridSearch(), -np.inf),
    ],
)
def test_values_that_are_not_finite_are_rejected(how, bad):
    """A path that leaves the domain of the loss beyond α = 0.3 ends inside it."""
    result = search(how, lambda a: jnp.where(a > 0.3, bad, -a))
    assert float(result.step_size) == 0.25
    assert float(result.change) == -0.25


def test_armijo_gives_up_after_its_trials():
    result = search(ng.Armijo(max_trials=4), lambda a: jnp.where(a > 1e-3, a, -a))
    assert float(result.step_size) == 0
    assert int(result.evaluations) == 4


@pytest.mark.parametrize("c", CURVATURES)
def test_grid_search_takes_the_best(c):
    phi = lambda a: -a + 0.5 * c * a**2
    result = search(ng.GridSearch(), phi)
    steps = 0.5 ** np.arange(30)
    best = steps[np.argmin(phi(steps))]
    assert float(result.step_size) == best
    np.testing.assert_allclose(result.change, phi(best), rtol=1e-14)
    assert float(result.change) < 0
