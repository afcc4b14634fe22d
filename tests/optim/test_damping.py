"""Each rule for μ against its formula, and the guard around a rule."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.optim import damping

EPS = np.finfo(float).eps


def seen(largest=2.0, loss=3.0, gradient=5.0, iteration=4):
    return damping.Seen(*map(jnp.asarray, (largest, loss, gradient, iteration)))


def start(rule):
    return rule.init(jnp.dtype(float))


def mu(rule, state=None, **known):
    return float(rule.mu(start(rule) if state is None else state, seen(**known)))


def after(rule, state, step=1.0, gain=1.0, grown=1.0, **known):
    """The state after a step whose factorization took `grown` times the μ asked for."""
    asked = rule.mu(state, seen(**known))
    told = damping.Outcome(seen(**known), asked, grown * asked, jnp.asarray(step), jnp.asarray(gain))
    return rule.update(state, told)


RULES = {
    "spectral": damping.Spectral,
    "loss": damping.LossPower,
    "gradient": damping.GradientPower,
    "geometric": damping.Geometric,
    "levenberg": damping.LevenbergMarquardt,
    "relative": lambda gamma=10.0: damping.Relative(gamma, 1e-3, 0.5, by_loss=True),
    "energy": lambda gamma=10.0: damping.Relative(gamma, 1e-3, 0.5, by_loss=False),
    "guarded": lambda gamma=10.0: damping.Guarded(damping.Relative(gamma, 1e-3, 0.5, by_loss=True)),
}


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        (damping.Spectral(7.0), 7 * EPS * 2),
        (damping.LossPower(), 1e-4 * 3.0**2),
        (damping.LossPower(10.0, 1e-2, 1.0), 1e-2 * 3.0),
        (damping.GradientPower(10.0, 1e-3, 1.5), 1e-3 * 5.0**1.5),
        (damping.Geometric(), 0.5**4),
        (damping.Geometric(10.0, 0.1), 1e-4),
        (damping.LevenbergMarquardt(start=0.3), 0.3 * 2),
        (damping.Guarded(damping.Geometric(), short=0.3), 0.5**4),  # s = 1 at first
    ],
)
def test_formulas(rule, value):
    np.testing.assert_allclose(mu(rule), value, rtol=1e-14)


def test_relative_compares_with_the_first_step():
    rule, energy = damping.Relative(10.0, 1e-3, 0.5, by_loss=True), damping.Relative(10.0, 1e-3, 0.5, by_loss=False)
    state = start(rule)
    np.testing.assert_allclose(mu(rule, state, largest=2.0, loss=3.0, iteration=0), 1e-3 * 2)
    state = after(rule, state, largest=2.0, loss=3.0, iteration=0)
    state = after(rule, state, largest=50.0, loss=2.0, iteration=1)
    np.testing.assert_allclose(mu(rule, state, largest=99.0, loss=0.3, iteration=2), 1e-3 * 99 / 4 * 0.01)
    np.testing.assert_allclose(mu(energy, state, largest=99.0, loss=-7.0, iteration=2), 1e-3 * 2 / 4)


@pytest.mark.parametrize("name", RULES)
def test_never_below_round_off(name):
    """μ ≥ γ·eps·λ̂₁, and positive where the Gramian is zero."""
    rule, near = RULES[name](gamma=4.0), {"loss": 1e-30, "gradient": 1e-30, "iteration": 300}
    state = after(rule, start(rule), largest=1e-20, iteration=0)
    np.testing.assert_allclose(mu(rule, state, largest=1e6, **near), 4 * EPS * 1e6, rtol=1e-14)
    assert 0 < mu(rule, largest=0.0, **near) < 1e-10


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("loss", [np.nan, np.inf, 0.0])
def test_any_loss_leaves_a_finite_mu(name, loss):
    rule = RULES[name]()
    assert np.isfinite(mu(rule, loss=loss, gradient=loss))
    assert np.isfinite(mu(rule, after(rule, start(rule), loss=loss, gradient=loss), loss=1.0, iteration=5))


def test_negative_energies_count_by_size():
    assert mu(damping.LossPower(), loss=-3.0) == mu(damping.LossPower(), loss=3.0)


@pytest.mark.parametrize("name", ["spectral", "levenberg", "relative", "energy", "guarded"])
@pytest.mark.parametrize("power", [-40, 7, 40])
def test_rules_without_units(name, power):
    """Residuals times s = 2^power: L, λ̂₁ and μ grow by s², ‖∇L‖ too, bit for bit."""
    rule, s = RULES[name](gamma=0.1), 2.0**power
    one, other = start(rule), start(rule)
    for k, (step, gain) in enumerate([(1.0, 0.9), (0.1, 0.2), (0.0, 0.0), (0.5, 0.5), (0.05, 0.1), (1.0, 0.8)]):
        known = {"largest": 3.0 * (k + 1), "loss": 7.0 / (k + 1), "gradient": 2.0 / (k + 1)}
        scaled = {key: s**2 * value for key, value in known.items()}
        assert mu(rule, other, iteration=k, **scaled) == s**2 * mu(rule, one, iteration=k, **known)
        one = after(rule, one, step, gain, iteration=k, **known)
        other = after(rule, other, step, gain, iteration=k, **scaled)


@pytest.mark.parametrize(("gain", "factor"), [(0.9, 1 / 3), (0.5, 1.0), (0.1, 2.0), (0.0, 2.0), (-1.0, 2.0)])
def test_levenberg_marquardt_follows_the_gain(gain, factor):
    rule = damping.LevenbergMarquardt(start=0.3)
    state = after(rule, start(rule), gain=gain)
    np.testing.assert_allclose(mu(rule, state), 0.6 * factor, rtol=1e-14)


@pytest.mark.parametrize("name", ["spectral", "loss", "gradient", "geometric"])
@pytest.mark.parametrize("up", [2.0, 8.0])
def test_short_steps_multiply_a_rule_and_long_ones_take_it_back(name, up):
    alone = RULES[name](gamma=1.0)
    rule = damping.Guarded(alone, short=0.3, up=up)
    state, known = start(rule), {"largest": 1e9}
    after_long = up**3 / 4
    for step, times in [(1.0, 1), (0.25, up), (0.0, up**2), (0.1, up**3), (0.5, after_long), (0.1, after_long * up)]:
        state = after(rule, state, step, **known)
        assert float(rule.guard(state, float)) == times
        np.testing.assert_allclose(mu(rule, state, **known), times * mu(alone, **known), rtol=1e-14)
    while times > 1:
        state, times = after(rule, state, 1.0, **known), max(1, times / 4)
        np.testing.assert_allclose(mu(rule, state, **known), times * mu(alone, **known), rtol=1e-14)
    assert mu(rule, after(rule, state, 1.0, **known), **known) == mu(alone, **known)


def test_a_guard_stops_at_the_largest_eigenvalue():
    """Beyond it a step is a gradient step; one long step less, and μ is on its way back."""
    rule = damping.Guarded(damping.Spectral(1.0))
    state = start(rule)
    for _ in range(100):
        state = after(rule, state, 0.0)
        assert mu(rule, state) <= 2.0
    np.testing.assert_allclose(mu(rule, state), 2.0)
    np.testing.assert_allclose(mu(rule, after(rule, state, 1.0)), 0.5)
    assert mu(damping.Guarded(damping.LossPower(scale=1.0))) == 9.0  # a rule may ask for more


def test_a_guard_hears_of_a_factorization_that_took_more():
    rule = damping.Guarded(damping.Spectral(1.0))
    state = after(rule, start(rule), 1.0, grown=100.0)
    np.testing.assert_allclose(mu(rule, state), 25 * mu(damping.Spectral(1.0)))


@pytest.mark.parametrize("name", ["spectral", "loss", "gradient", "geometric"])
def test_the_papers_rules_do_not_look_at_the_steps(name):
    rule = RULES[name]()
    assert mu(rule, after(rule, start(rule), 0.0)) == mu(rule)
    assert float(rule.guard(start(rule), float)) == 1.0


def test_defaults_ask_the_problem():
    squares = SimpleNamespace(least_squares=True, caution=(1e-4, 1.0))
    energy = SimpleNamespace(least_squares=False, caution=(1e-2, 0.5))
    default = damping.Guarded(damping.Relative(3.0))
    assert default.resolve(squares) == damping.Guarded(damping.Relative(3.0, 1e-4, 1.0, True))
    assert default.resolve(energy) == damping.Guarded(damping.Relative(3.0, 1e-2, 0.5, False))
    assert damping.Relative(3.0, 1e-6, 0.7, True).resolve(energy) == damping.Relative(3.0, 1e-6, 0.7, True)
    assert damping.Published(3.0).resolve(squares) == damping.LossPower(3.0)
    assert damping.Published(3.0).resolve(energy) == damping.Geometric(3.0)
    assert ng.NystromNGD(gamma=3.0).damping == default
    assert ng.NystromNGD(gamma=3.0, recipe="published").damping == damping.Published(3.0)
    for stand_in in (damping.Relative(), damping.Published()):
        with pytest.raises(TypeError, match="stands for"):
            mu(stand_in)


@pytest.mark.parametrize("bad", [{"short": 0.0}, {"short": 2.0}, {"up": 1.0}, {"down": 0.5}])
def test_a_guard_that_cannot_work_is_refused(bad):
    allowed = r"short must be a number in \(0, 1\]" if "short" in bad else "must be a finite number above 1"
    with pytest.raises(ValueError, match=allowed):
        damping.Guarded(damping.Spectral(), **bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf"), float("nan")])
def test_a_start_that_cannot_work_is_refused(bad):
    with pytest.raises(ValueError, match="start must be a positive finite number or None"):
        damping.Relative(start=bad)
    with pytest.raises(ValueError, match=r"decay must be a number in \(0, 1\] or None"):
        damping.Relative(decay=bad)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("bad", [0, -1.0, float("inf"), float("nan"), True, "10", None])
def test_no_rule_takes_a_gamma_that_is_no_positive_number(name, bad):
    with pytest.raises(ValueError, match="gamma must be a positive finite number, got"):
        RULES[name](gamma=bad)


def test_states_keep_their_type():
    """A loop of steps on a device needs a state of one structure, shape and dtype."""
    for name in RULES:
        rule = RULES[name]()
        shapes = lambda state: jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), state)
        assert shapes(start(rule)) == shapes(after(rule, start(rule)))


def test_the_rules_are_public():
    assert ng.damping is damping
