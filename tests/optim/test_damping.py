"""Each rule for μ against its formula."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.optim import damping

EPS = np.finfo(float).eps


def mu(rule, largest=2.0, loss=3.0, gradient=5.0, iteration=4, state=None):
    state = rule.init(jnp.dtype(float)) if state is None else jnp.asarray(state)
    told = {"loss": jnp.asarray(loss), "gradient_norm": jnp.asarray(gradient), "iteration": jnp.asarray(iteration)}
    return float(rule.mu(state, largest=jnp.asarray(largest), **told))


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (damping.Spectral(7.0), 7 * EPS * 2),
        (damping.LossPower(), 1e-4 * 3.0**2),
        (damping.LossPower(10.0, 1e-2, 1.0), 1e-2 * 3.0),
        (damping.GradientPower(10.0, 1e-3, 1.5), 1e-3 * 5.0**1.5),
        (damping.Geometric(), 0.5**4),
        (damping.Geometric(10.0, 0.1), 1e-4),
        (damping.LevenbergMarquardt(start=0.3), 0.3),
        (damping.FollowSteps(), 1e-4 * 3.0**2),  # from the upper bound on
    ],
)
def test_formulas(rule, value):
    np.testing.assert_allclose(mu(rule), value, rtol=1e-14)


RULES = [
    damping.Spectral,
    damping.FollowSteps,
    damping.LossPower,
    damping.GradientPower,
    damping.Geometric,
    damping.LevenbergMarquardt,
]


@pytest.mark.parametrize("rule", RULES)
def test_never_below_round_off(rule):
    """μ ≥ γ·eps·λ̂₁, and positive where the Gramian is zero."""
    near = {"loss": 1e-30, "gradient": 1e-30, "iteration": 300}
    np.testing.assert_allclose(mu(rule(gamma=4.0), largest=1e6, state=0.0, **near), 4 * EPS * 1e6, rtol=1e-14)
    zero = mu(rule(), largest=0.0, state=0.0, **near)
    assert 0 < zero < 1e-10


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("loss", [np.nan, np.inf])
def test_a_loss_that_is_not_finite_leaves_a_finite_mu(rule, loss):
    assert np.isfinite(mu(rule(), loss=loss, gradient=loss))


def test_negative_energies_count_by_size():
    assert mu(damping.LossPower(), loss=-3.0) == mu(damping.LossPower(), loss=3.0)


@pytest.mark.parametrize(("gain", "factor"), [(0.9, 1 / 3), (0.5, 1.0), (0.1, 2.0), (0.0, 2.0), (-1.0, 2.0)])
def test_levenberg_marquardt_follows_the_gain(gain, factor):
    rule = damping.LevenbergMarquardt()
    told = {"mu": jnp.asarray(0.6), "step": jnp.asarray(1.0), "gain": jnp.asarray(gain)}
    state = rule.update(rule.init(jnp.dtype(float)), **told)
    np.testing.assert_allclose(state, 0.6 * factor, rtol=1e-14)
    np.testing.assert_allclose(mu(rule, state=state), 0.6 * factor, rtol=1e-14)


def test_following_steps_stays_between_its_bounds():
    rule = damping.FollowSteps(gamma=1.0, low=1e-8, high=1e-2)
    told = lambda now, step: rule.update(
        jnp.zeros(()), mu=jnp.asarray(now), step=jnp.asarray(step), gain=jnp.asarray(1.0)
    )
    np.testing.assert_allclose(mu(rule, loss=1e-1, state=told(1e-6, 0.125)), 1e-5, rtol=1e-14)  # short: up
    np.testing.assert_allclose(mu(rule, loss=1e-1, state=told(1e-6, 0.25)), 1e-7, rtol=1e-14)  # long: down
    np.testing.assert_allclose(mu(rule, loss=1e-1, state=told(1e-6, 0.0)), 1e-5, rtol=1e-14)  # rejected: up
    np.testing.assert_allclose(mu(rule, loss=1e-1, state=told(1.0, 0.0)), 1e-4, rtol=1e-14)  # high·L²
    np.testing.assert_allclose(mu(rule, loss=1e-1, state=told(1e-9, 1.0)), 1e-9, rtol=1e-14)  # low·L
    np.testing.assert_allclose(mu(rule, loss=1e-7, state=told(1.0, 0.0)), 1e-15, rtol=1e-12)  # low·L > high·L²
    np.testing.assert_allclose(mu(rule, loss=1e-12, state=told(1.0, 0.0)), EPS * 2, rtol=1e-14)


def test_auto_goes_by_the_kind_of_problem():
    squares, energy = SimpleNamespace(least_squares=True), SimpleNamespace(least_squares=False)
    assert damping.Auto(3.0).resolve(squares) == damping.LossPower(3.0)
    assert damping.Auto(3.0, published=True).resolve(squares) == damping.LossPower(3.0)
    assert damping.Auto(3.0).resolve(energy) == damping.LevenbergMarquardt(3.0)
    assert damping.Auto(3.0, published=True).resolve(energy) == damping.Geometric(3.0)
    assert damping.Spectral(3.0).resolve(energy) == damping.Spectral(3.0)


def test_the_rules_are_public():
    assert ng.damping is damping
