"""Energies, their differences and their metrics against formulas written by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from tests.helpers import energy

KAPPA, SIGMA = lambda x: 1 + x[0], lambda x: 2 + x[1]
POTENTIAL = lambda x: jnp.sum(x**2)

# (metric, F_u v at x written with the values (u, v, ∇v, x))
METRICS = {
    "L2": (ng.metrics.L2(), lambda u, v, dv, x: [v]),
    "H1": (ng.metrics.H1(), lambda u, v, dv, x: [*dv, v]),
    "energy": (ng.metrics.EnergyNorm(), lambda u, v, dv, x: [*dv]),
    "diffusion": (ng.metrics.EnergyNorm(3.0), lambda u, v, dv, x: [*(3**0.5 * dv)]),
    "reaction": (
        ng.metrics.EnergyNorm(KAPPA, SIGMA),
        lambda u, v, dv, x: [*((1 + x[0]) ** 0.5 * dv), (2 + x[1]) ** 0.5 * v],
    ),
    "newton": (ng.metrics.NewtonCubic(), lambda u, v, dv, x: [*dv, 3**0.5 * u * v]),
    "gross-pitaevskii": (
        ng.metrics.GrossPitaevskii(POTENTIAL, 5.0),
        lambda u, v, dv, x: [*dv, (np.sum(x**2) + 5 * u**2) ** 0.5 * v],
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_metrics_are_their_formulas(name):
    metric, formula = METRICS[name]
    u = lambda x: jnp.sin(x[0]) * x[1] - 2.0
    v = lambda x: jnp.exp(x[0]) + x[1] ** 3
    for x in np.random.default_rng(0).uniform(size=(3, 2)):
        dv = np.array([np.exp(x[0]), 3 * x[1] ** 2])
        expected = np.array(formula(float(u(x)), float(v(x)), dv, x))
        ours = np.atleast_1d(metric.features(u, v, jnp.asarray(x)))
        # a square is what enters the Gramian: √(V + βu²) v and its negative are the same metric
        np.testing.assert_allclose(ours**2, expected**2, rtol=1e-13)
        np.testing.assert_allclose(metric.features(u, lambda x: 2 * v(x), jnp.asarray(x)), 2 * ours, rtol=1e-13)


def test_loss_is_the_weighted_sum():
    problem = energy()
    u = problem.network(problem.params)
    interior, boundary = problem.features
    x, edge = interior.inputs[0], boundary.inputs[0]
    slope, inside, outside = jax.jit(lambda: (jax.vmap(jax.grad(u))(x), jax.vmap(u)(x), jax.vmap(u)(edge)))()
    f = 2 * np.pi**2 * np.prod(np.sin(np.pi * np.asarray(x)), axis=1)
    total = np.sum(interior.weights * (0.5 * np.sum(np.asarray(slope) ** 2, axis=1) - f * inside))
    total += 50 * np.sum(boundary.weights * outside**2)
    np.testing.assert_allclose(jax.jit(lambda p: problem.loss(p))(problem.params), total, rtol=1e-12)


def test_difference_by_default():
    problem = energy()
    new = jax.tree.map(lambda a: 1.1 * a + 0.01, problem.params)
    expected = problem.loss(new) - problem.loss(problem.params)
    np.testing.assert_allclose(problem.difference(problem.params, new), expected, rtol=1e-12)


class Constant(eqx.Module):
    """u = c."""

    c: jax.Array

    def __call__(self, x):
        return self.c


def test_a_difference_of_the_users_own_does_not_cancel():
    """e = (u − 1)²/2 + 1 at u = 1 + 1e-9 → 1: the change −5e-19 is far below the round-off of e ≈ 1."""
    density = lambda u, x, t: 0.5 * (u(x) - t) ** 2 + 1
    points, data = jnp.zeros((4, 1)), jnp.ones(4)
    change = lambda u, new, x, t: 0.5 * (new(x) - u(x)) * (new(x) + u(x) - 2 * t)
    build = lambda difference: ng.EnergyMinimization(
        Constant(jnp.array(1 + 1e-9)),
        block=ng.Energy(density, points, metric=ng.metrics.L2(), difference=difference, data=data),
    )
    plain, careful = build(None), build(change)
    new = jax.tree.map(jnp.ones_like, plain.params)
    assert plain.difference(plain.params, new) == 0
    exact = -0.5 * float((jnp.array(1 + 1e-9) - 1) ** 2)
    np.testing.assert_allclose(careful.difference(careful.params, new), exact, rtol=1e-6)
    far = jax.tree.map(lambda c: c + 1, plain.params)
    np.testing.assert_allclose(careful.difference(far, new), plain.difference(far, new), rtol=1e-12)


def test_blocks_without_a_metric_count_in_the_loss_alone():
    points = jnp.zeros((4, 1))
    problem = ng.EnergyMinimization(
        Constant(jnp.array(3.0)),
        a=ng.Energy(lambda u, x: u(x) ** 2, points, metric=ng.metrics.L2()),
        b=ng.Energy(lambda u, x: 10 * u(x), points, metric=None),
    )
    assert float(problem.loss(problem.params)) == pytest.approx(39.0, rel=1e-14)
    assert [block.name for block in problem.features] == ["a"]
    assert not problem.least_squares
