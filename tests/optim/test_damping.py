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
        (damping.Geometric(short=0.3), 0.5**4),  # s = 1 at first
        (damping.LevenbergMarquardt(start=0.3), 0.3),
    ],
)
def test_formulas(rule, value):
    np.testing.assert_allclose(mu(rule), value, rtol=1e-14)


RULES = [
    damping.Spectral,
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


FORMULAS = [damping.Spectral, damping.LossPower, damping.GradientPower, damping.Geometric]


def after(rule, state, step):
    return rule.update(state, mu=jnp.asarray(1.0), step=jnp.asarray(step), gain=jnp.asarray(1.0))


@pytest.mark.parametrize("kind", FORMULAS)
@pytest.mark.parametrize("up", [2.0, 8.0])
def test_short_steps_multiply_a_formula_and_long_ones_take_it_back(kind, up):
    rule, state = kind(gamma=1.0, short=0.3, up=up), jnp.zeros(())
    after_long = up**3 / 4
    for step, times in [(1.0, 1), (0.25, up), (0.0, up**2), (0.1, up**3), (0.5, after_long), (0.1, after_long * up)]:
        state = after(rule, state, step)
        np.testing.assert_allclose(mu(rule, state=state), times * mu(kind(gamma=1.0)), rtol=1e-14)
    while times > 1:
        state, times = after(rule, state, 1.0), max(1, times / 4)
        np.testing.assert_allclose(mu(rule, state=state), times * mu(kind(gamma=1.0)), rtol=1e-14)
    assert mu(rule, state=after(rule, state, 1.0)) == mu(kind(gamma=1.0))
    for _ in range(100):
        state = after(rule, state, 0.0)
    assert mu(damping.Spectral(1.0, short=0.3), state=state) <= 2  # λ̂₁ at most


@pytest.mark.parametrize("kind", FORMULAS)
def test_the_papers_formulas_do_not_look_at_the_steps(kind):
    state = after(kind(), jnp.zeros(()), 0.0)
    assert mu(kind(), state=state) == mu(kind())


def test_auto_goes_by_the_kind_of_problem():
    squares = SimpleNamespace(least_squares=True, damp_by_loss=True)
    elements = SimpleNamespace(least_squares=True, damp_by_loss=False)
    energy = SimpleNamespace(least_squares=False, damp_by_loss=False)
    assert damping.Auto(3.0).resolve(squares) == damping.LossPower(3.0, short=0.2)
    assert damping.Auto(3.0, published=True).resolve(squares) == damping.LossPower(3.0)
    for problem in (elements, energy):
        assert damping.Auto(3.0).resolve(problem) == damping.Geometric(3.0, 1 / 3, short=0.2, up=8.0)
    assert damping.Auto(3.0, published=True).resolve(elements) == damping.LossPower(3.0)
    assert damping.Auto(3.0, published=True).resolve(energy) == damping.Geometric(3.0)
    assert damping.Spectral(3.0).resolve(energy) == damping.Spectral(3.0)


def test_the_rules_are_public():
    assert ng.damping is damping
