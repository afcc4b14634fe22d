"""References by exponential time differencing: what they state of their own accuracy holds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.zoo import _reference
from natgrad.zoo._reference import etdrk4, periodic

QUICK = {"kdv": 0.3, "kuramoto_sivashinsky": 0.06}
LONG = {"allen_cahn_standard": 1.0, "kdv": 1.0, "kuramoto_sivashinsky": 1.0}
SLOWER = {"allen_cahn_standard": 0.004, "ginzburg_landau": 0.02, "gray_scott": 0.01}


def points(series, end, n, first=0.0):
    """In time and space."""
    lower = np.array([first, *series.lower])
    upper = np.array([end, *(a + 2 * np.pi / rate for a, rate in zip(series.lower, series.rates, strict=True))])
    return lower + (upper - lower) * np.random.default_rng(0).random((n, len(lower)))


def heat(k2):
    return -0.3 * k2 + 0.5


def test_a_linear_equation_is_solved_exactly():
    """û_k(t) = exp(L_k t) û_k(0), whatever the step."""
    line = etdrk4.Equation(
        lambda k: heat(k**2) + 2j * k, lambda k: 0.0, lambda u: u, lambda x: np.cos(3 * x)[None], (0.0,), (2 * np.pi,)
    )
    (found,) = etdrk4.integrate(line, 8, [0.7], 0.5)
    assert abs(found[0, 3] - 0.5 * np.exp((heat(9) + 6j) * 0.7)) < 1e-15
    plane = etdrk4.Equation(
        lambda k, l: heat(k**2 + l**2), lambda k, l: 0.0, lambda u: u,
        lambda x, y: (np.sin(2 * x) * np.cos(3 * y))[None], (0.0, 0.0), (2 * np.pi, 2 * np.pi),
    )  # fmt: skip
    found = etdrk4.tables(plane, 6, [0.0, 0.5, 1.0], 12, 0.5)
    series = _series(found, (0.0, 0.5, 1.0), plane)
    t, x, y = points(series, 1.0, 10).T
    exact = np.exp(heat(13) * t) * np.sin(2 * x) * np.cos(3 * y)
    np.testing.assert_allclose(jax.vmap(series)(jnp.stack([t, x, y], axis=1)), exact, atol=1e-12)


def _series(found, edges, equation):
    rates = tuple(2 * np.pi / (b - a) for a, b in zip(equation.lower, equation.upper, strict=True))
    return periodic.Series(found["table"], edges, rates, equation.lower, float(found["accuracy"].max()))


def test_steps_are_of_fourth_order_and_what_is_kept_of_a_higher_one():
    """u_t = u² by the nonlinear part alone has u = 1/(2 − t): û_0 has the errors of the steps."""
    growing = etdrk4.Equation(
        lambda k: 0.0 * k, lambda k: 1.0, lambda u: u**2, lambda x: 0.5 + 0.0 * x[None], (0.0,), (1.0,)
    )
    errors = [abs(etdrk4.integrate(growing, 2, [1.0], h)[0, 0, 0] - 1) for h in (0.1, 0.05)]
    assert 14 < errors[0] / errors[1] < 18
    found = etdrk4.tables(growing, 2, [0.0, 1.0], 20, 0.05)
    series = _series(found, (0.0, 1.0), growing)
    assert abs(series.values(np.array([[1.0, 0.3]])) - 1) < found["accuracy"][0] / 3


@pytest.mark.parametrize("name", sorted(QUICK | SLOWER))
def test_a_point_and_many_points_agree(name):
    series = getattr(_reference, name)(end=(QUICK | SLOWER)[name] / 10)
    z = points(series, series.edges[-1], 5)
    one = np.reshape(jax.jit(jax.vmap(series))(jnp.asarray(z)), (len(z), -1))
    np.testing.assert_allclose(one, series.values(z), atol=1e-13)


@pytest.mark.parametrize("name", sorted(QUICK))
def test_finer_tables_change_no_more_than_is_stated(name):
    compare(name, QUICK[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOWER | LONG))
def test_finer_tables_change_no_more_than_is_stated_over_a_long_time(name):
    compare(name, (SLOWER | LONG)[name])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "end"), [("ginzburg_landau", 1.0), ("gray_scott", 2.0)])
def test_the_tables_of_the_records_are_good_to_the_end(name, end):
    """What is less accurate than 5e-9 is refused."""
    assert getattr(_reference, name)(end=end).edges[-1] == end


def compare(name, end):
    make = getattr(_reference, name)
    coarse, fine = make(end=end), make(end=end, finer=True)
    z = points(coarse, end, 300, first=0.0025 if name in ("allen_cahn_standard", "gray_scott") else 0.0)
    if name == "allen_cahn_standard":
        z[:, 1] *= 0.99
    difference = np.sqrt(np.mean((coarse.values(z) - fine.values(z)) ** 2))
    print(name, coarse.accuracy, difference)
    assert coarse.accuracy < 1e-9
    assert difference < max(1e-10, 3 * coarse.accuracy)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: _reference.kdv(mu=0.001, end=1.0),
            "the solution of kdv with mu 0.001 up to t = 1 has waves too short",
        ),
        (lambda: _reference.kdv(mu=float("nan")), "mu of kdv must be a finite number, got nan"),
        (lambda: _reference.kdv(end=0.0), "the reference solution of kdv needs a positive end, got 0.0"),
        (lambda: _reference.allen_cahn_standard(1e-9, 5.0, 0.01), "with diffusion 1e-09 and reaction 5"),
    ],
)
def test_what_cannot_be_resolved_is_refused(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
