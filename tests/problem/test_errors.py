"""Relative errors of functions whose errors are known, and the points they are measured on."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

SQUARE = ng.Box([0.0, 0.0], [1.0, 1.0])


class Scaled(eqx.Module):
    """c·sin(x₀)·cos(2x₁), or a shift of it."""

    c: jax.Array
    shift: jax.Array

    def __call__(self, x):
        return self.c * jnp.sin(x[0]) * jnp.cos(2 * x[1]) + self.shift


class Two(eqx.Module):
    """Two fields, of one and two components."""

    p: Scaled
    u: ng.MLP


def scaled(c, shift=0.0):
    return Scaled(jnp.array(float(c)), jnp.array(float(shift)))


def least_squares(network, **options):
    points = SQUARE.interior(15, key=jax.random.key(1))
    return ng.LeastSquares(network, pde=ng.Residual(lambda u, x: u(x), points), **options)


@pytest.mark.parametrize("c", [1.0, 0.25, -1.0, 3.0])
def test_a_multiple_of_the_solution_is_off_by_that(c):
    problem = least_squares(scaled(c), exact=scaled(1.0))
    errors = problem.errors(problem.params)
    assert set(errors) == {"l2", "h1"}
    for value in errors.values():
        np.testing.assert_allclose(value, abs(c - 1), rtol=1e-13, atol=1e-15)


def test_a_shift_has_no_derivative():
    """u* + s is off by s√|Ω| in both norms: relative to u*, and to u* with its gradient."""
    problem = least_squares(scaled(1.0, 0.1), exact=scaled(1.0), evaluation=SQUARE.interior(400, rule="gauss"))
    a = 0.5 - np.sin(2) / 4  # ∫ sin²
    b = 0.5 + np.sin(4) / 8  # ∫ cos²(2·)
    l2 = a * b
    h1 = l2 + (1 - a) * b + 4 * a * (1 - b)
    errors = problem.errors(problem.params)
    np.testing.assert_allclose(errors["l2"], 0.1 / l2**0.5, rtol=1e-10)
    np.testing.assert_allclose(errors["h1"], 0.1 / h1**0.5, rtol=1e-10)


def test_fields_are_measured_by_name():
    """Only the fields named count, and the norm is over all of them together."""
    net = Two(scaled(3.0), ng.MLP(2, 2, 4, 1, key=jax.random.key(0)))
    points = SQUARE.interior(15, key=jax.random.key(1))
    residual = ng.Residual(lambda w, x: w.p(x), points)
    one = ng.LeastSquares(net, pde=residual, exact={"p": scaled(1.0)})
    np.testing.assert_allclose(list(one.errors(one.params).values()), 2.0, rtol=1e-13)

    both = ng.LeastSquares(net, pde=residual, exact={"p": scaled(1.0), "u": net.u})
    norms = both.norms
    weights, values = np.asarray(norms.weights), np.asarray(norms.values)
    p, u = weights @ values[:, 0] ** 2, np.sum(weights[:, None] * values[:, 1:] ** 2)
    errors = both.errors(both.params)
    assert errors.keys() == {"l2", "h1", "p.l2", "p.h1", "u.l2", "u.h1"}
    np.testing.assert_allclose(errors["l2"], np.sqrt(4 * p / (p + u)), rtol=1e-12)
    np.testing.assert_allclose([errors["p.l2"], errors["p.h1"]], 2.0, rtol=1e-13)
    assert errors["u.l2"] == errors["u.h1"] == 0


def test_data_in_place_of_a_solution():
    """Values at points of the user's own, of one field or several; there is no H¹ norm of them."""
    x = np.random.default_rng(0).uniform(size=(7, 2))
    values = jax.vmap(scaled(1.0))(x)
    problem = least_squares(scaled(1.25), exact=values, evaluation=x)
    errors = problem.errors(problem.params)
    assert errors.keys() == {"l2"}
    np.testing.assert_allclose(errors["l2"], 0.25, rtol=1e-13)

    net = ng.Fields(p=scaled(3.0), u=ng.MLP(2, 2, 4, 1, key=jax.random.key(0)))
    exact = {"p": values, "u": 2 * jax.vmap(net.u)(x)}
    points = SQUARE.interior(15, key=jax.random.key(1))
    both = ng.LeastSquares(net, a=ng.Residual(lambda w, x: w.p(x), points), exact=exact, evaluation=x)
    errors = both.errors(both.params)
    np.testing.assert_allclose([errors["p.l2"], errors["u.l2"]], [2.0, 0.5], rtol=1e-13)


@pytest.mark.usefixtures("quick_compilation")
def test_a_target_against_data_is_that_of_l2(capsys):
    x = np.random.default_rng(0).uniform(size=(7, 2))
    problem = ng.LeastSquares(
        scaled(3.0),
        fit=ng.Residual(lambda u, x: u(x) - scaled(1.0)(x), x),
        exact=jax.vmap(scaled(1.0))(x),
        evaluation=x,
    )
    solution = ng.solve(problem, ng.FullNGD(), 20, target_error=1e-6, evaluate_every=1)
    assert solution.status == "target error"
    assert solution.errors["l2"] <= 1e-6
    assert "L² " in capsys.readouterr().err


VALUES = np.ones(7)
AT = np.full((7, 2), 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"exact": VALUES}, "evaluation=x"),
        ({"exact": VALUES[:3], "evaluation": AT}, r"shape \(3,\): there are 7 evaluation points"),
        ({"exact": np.full(7, np.nan), "evaluation": AT}, "must be finite"),
        ({"exact": ["a"] * 7, "evaluation": AT}, "arrays of numbers"),
        ({"exact": {"c": VALUES, "shift": scaled(1.0)}, "evaluation": AT}, "not both"),
        ({"exact": {}}, "exact names no field"),
    ],
)
def test_data_that_cannot_be_compared(options, words):
    with pytest.raises(ValueError, match=words) as told:
        least_squares(scaled(1.0), **options)
    assert "\n" not in str(told.value)


def test_evaluation_points_are_independent_and_ten_times_as_many():
    problem = least_squares(scaled(2.0), exact=scaled(1.0))
    x, training = np.asarray(problem.norms.x), np.asarray(problem.features[0].inputs[0])
    assert len(x) == 10 * len(training)
    assert np.min(np.linalg.norm(x[:, None] - training, axis=-1)) > 0
    again = least_squares(scaled(2.0), exact=scaled(1.0))
    np.testing.assert_array_equal(again.norms.x, x)
    np.testing.assert_allclose(problem.norms.weights.sum(), 1.0, rtol=1e-12)


def test_evaluation_points_of_the_users_own():
    mine = SQUARE.interior(9, rule="gauss")
    problem = least_squares(scaled(2.0), exact=scaled(1.0), evaluation=mine)
    np.testing.assert_array_equal(problem.norms.x, mine.x)


def test_errors_against_zero_are_absolute():
    problem = least_squares(scaled(2.0), exact=lambda x: 0.0 * x[0])
    ones = least_squares(scaled(2.0), exact=scaled(1.0))  # relative to u = scaled(1)
    errors = problem.errors(problem.params)
    assert np.isfinite(list(errors.values())).all()
    size = float(jnp.sqrt(jnp.sum(ones.norms.weights * ones.norms.values[:, 0] ** 2)))
    np.testing.assert_allclose(errors["l2"], 2 * size, rtol=1e-12)


def test_without_an_exact_solution_there_are_no_errors():
    problem = least_squares(scaled(2.0))
    assert problem.errors(problem.params) == {}


def test_energies_have_errors_too():
    problem = ng.EnergyMinimization(
        scaled(2.0),
        interior=ng.Energy(lambda u, x: u(x) ** 2, SQUARE.interior(15, key=jax.random.key(1)), metric=ng.metrics.L2()),
        exact=scaled(1.0),
    )
    np.testing.assert_allclose(list(problem.errors(problem.params).values()), 1.0, rtol=1e-13)
