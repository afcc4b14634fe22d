"""Unknowns within bounds, weights from noise levels, and standard deviations against the formula."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

LINE = ng.Interval(0.0, 1.0)
X = np.linspace(0.0, 1.0, 9)[:, None]
SIGMA = np.linspace(0.1, 0.3, 9)
NET = ng.MLP(1, 1, 3, 1, key=jax.random.key(0))
VALUE = lambda u, x: u(x)


@pytest.mark.parametrize(
    "bounds", [{}, {"positive": True}, {"lower": 0.1}, {"upper": 2.0}, {"lower": -1.0, "upper": 0.5}]
)
def test_an_unknown_starts_where_it_is_told_and_stays_within(bounds):
    unknown = ng.Unknown(0.3, **bounds)
    np.testing.assert_allclose(unknown.value, 0.3, rtol=1e-14)
    lower, upper = 0.0 if "positive" in bounds else bounds.get("lower", -np.inf), bounds.get("upper", np.inf)
    far = [jax.tree.map(lambda s, t=t: s + t, unknown).value for t in (-30.0, 0.1, 30.0)]
    assert lower <= far[0] < 0.3 < far[1] < far[2] <= upper  # increasing
    np.testing.assert_array_equal(unknown(jnp.ones(2)), unknown.value)


def test_arrays_and_fields_are_bounded_at_every_entry_and_point():
    np.testing.assert_allclose(ng.Unknown([0.2, 5.0], positive=True).value, [0.2, 5.0], rtol=1e-14)
    field = ng.Unknown(NET, lower=1.0, upper=2.0)
    values = jax.vmap(field)(X * 50)
    np.testing.assert_allclose(values, 1 + jax.nn.sigmoid(jax.vmap(NET)(X * 50)), rtol=1e-14)
    assert ng.num_parameters(field) == ng.num_parameters(NET)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ng.Unknown(0.0, positive=True), r"strictly within its bounds \(0, inf\), got 0.0"),
        (lambda: ng.Unknown(np.nan), "strictly within its bounds"),
        (lambda: ng.Unknown("much"), "starts from a number, an array or a network, got 'much'"),
        (lambda: ng.Unknown(1.0, lower=2, upper=1), "lower must be below upper, got 2 and 1"),
        (lambda: ng.Unknown(1.0, lower=0, positive=True), "leave one of the two out"),
        (lambda: ng.Unknown(1.0, upper=np.inf), "upper must be a finite number or None, got inf"),
        (lambda: ng.Unknown(NET).value, "this unknown is a field"),
        (lambda: ng.Residual(VALUE, X, noise=0.0), "noise must be a positive finite number"),
        (lambda: ng.Residual(VALUE, X, noise=[0.1]), r"one for each of the 9 points, got shape \(1,\)"),
        (lambda: ng.Residual(VALUE, X, noise="little"), "noise must be a"),
        (lambda: ng.Residual(VALUE, X, noise=["a"] * 9), "noise must be a number, or one for each point, got list"),
        (lambda: ng.Residual(VALUE, X, noise=np.arange(9.0)), "positive and finite, got 1 of 9 that are not"),
        (lambda: ng.Residual(VALUE, X, noise=1.0, weight="auto"), "weight=\"auto\" is left out"),
        (lambda: ng.Residual(VALUE, LINE.interior(9, key=jax.random.key(0), fresh=True), noise=1.0), "at fixed points"),
        (lambda: ng.LeastSquares(NET, weights="auto", a=noisy(), b=noisy()), "'a' has a noise level"),
        (lambda: ng.uncertainty(fit(), fit()), "takes what ng.solve gave, got LeastSquares"),
        (lambda: ng.uncertainty(None, None), "that was solved, got NoneType"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_line(make, words):
    with pytest.raises(ValueError, match=words) as told:
        make()
    assert "\n" not in str(told.value)


def noisy(**options):
    return ng.Residual(VALUE, X, noise=SIGMA, **options)


def test_the_loss_is_minus_the_logarithm_of_the_likelihood():
    """Whatever the points' own weights; `weight` multiplies it, and nobody measured at other points."""
    points = LINE.interior(9, key=jax.random.key(1))
    block = lambda **options: ng.Residual(VALUE, points, noise=SIGMA, **options)
    problem = ng.LeastSquares(NET, data=block(), half=block(weight=0.5))
    residual = jax.vmap(NET)(points.x)
    losses = problem.losses(problem.params)
    np.testing.assert_allclose(losses["data"], 0.5 * np.sum((residual / SIGMA) ** 2), rtol=1e-13)
    np.testing.assert_allclose(losses["half"], 0.5 * losses["data"], rtol=1e-13)
    assert not problem.validated


class Cubic(eqx.Module):
    """Σ a_k x^k."""

    a: jax.Array

    def __call__(self, x):
        return jnp.polyval(self.a, x[0])


def fit(extra=(), **blocks):
    """A cubic and an unknown amplitude of e^{3x}, linear in all of them, from data with a noise level each."""
    y = np.sin(3 * X[:, 0]) + SIGMA * np.random.default_rng(0).standard_normal(9)
    net = ng.Fields(u=Cubic(jnp.zeros(4)), nu=ng.Unknown(0.5), **dict(extra))
    measured = lambda net, x, y: net.u(x) + net.nu.value * jnp.exp(3 * x[0]) - y
    return ng.LeastSquares(net, data=ng.Residual(measured, X, data=y, noise=SIGMA), **blocks)


def solved(problem):
    return ng.solve(problem, ng.FullNGD(), 3, progress=False)


@pytest.mark.usefixtures("quick_compilation")
def test_standard_deviations_of_a_linear_model_are_those_of_the_formula():
    problem = fit(u0=ng.Residual(lambda net, x: net.u(x), X[:1], weight=7.0))
    known = ng.uncertainty(problem, solved(problem))
    A = np.column_stack([X**3, X**2, X, np.ones_like(X), np.exp(3 * X)])
    first = np.array([0.0, 0.0, 0.0, 1.0, 0.0])
    covariance = np.linalg.inv(A.T @ (A / SIGMA[:, None] ** 2) + 7 * np.outer(first, first))
    np.testing.assert_allclose(known.std("nu"), np.sqrt(covariance[4, 4]), rtol=1e-10)
    Q = np.column_stack([A[:, :4], np.zeros(9)])
    np.testing.assert_allclose(known.std("u", X), np.sqrt(np.diag(Q @ covariance @ Q.T)), rtol=1e-10)
    both = lambda net: jnp.append(net.u.a, net.nu.value)
    np.testing.assert_allclose(known.covariance(both), covariance, rtol=1e-8, atol=1e-12)
    slope = known.std(lambda net, x: ng.gradient(net.u, x), X[:3])
    D = np.column_stack([3 * X**2, 2 * X, np.ones_like(X), np.zeros((9, 2))])[:3]
    np.testing.assert_allclose(slope[:, 0], np.sqrt(np.diag(D @ covariance @ D.T)), rtol=1e-10)


@pytest.mark.usefixtures("quick_compilation")
def test_bounds_change_the_parameter_and_not_the_standard_deviation():
    """Of ν: the chain rule. And what no data hold has no finite one, and spoils no other."""
    y = np.full(9, 2.0)
    measured = lambda net, x, y: net.nu.value - y
    problem = lambda **bounds: ng.LeastSquares(
        ng.Fields(nu=ng.Unknown(1.9, **bounds), idle=ng.Unknown(1.0)),
        data=ng.Residual(measured, X, data=y, noise=0.3),
    )
    for bounds in ({}, {"positive": True}, {"lower": 1.0, "upper": 4.0}):
        case = problem(**bounds)
        known = ng.uncertainty(case, ng.solve(case, ng.FullNGD(), 20, progress=False))
        np.testing.assert_allclose(known.std("nu"), 0.1, rtol=1e-7)
        assert known.std("idle") > 1e8


@pytest.mark.usefixtures("quick_compilation")
def test_what_is_asked_of_an_uncertainty():
    problem = fit(extra={"k": ng.Unknown(NET, positive=True)}, k=ng.Residual(lambda net, x: net.k(x), X))
    known = ng.uncertainty(problem, solved(problem))
    assert known.std("k", X).shape == (9,)
    cases = {
        "no field 'mu'; the fields are u, nu, k": lambda: known.std("mu"),
        "'nu' is the same at all points": lambda: known.std("nu", X),
        "'u' is a field: give the points": lambda: known.std("u"),
        "name of a field or a function, got int": lambda: known.std(3),
        "the quantity fails: TypeError": lambda: known.std(lambda: 1.0),
        "a quantity is a real array": lambda: known.std(lambda net: net),
    }
    for words, call in cases.items():
        with pytest.raises(ValueError, match=words):
            call()
    bare = ng.LeastSquares(NET, data=ng.Residual(VALUE, X))
    with pytest.raises(ValueError, match="no block has a noise level"):
        ng.uncertainty(bare, solved(bare))


@pytest.mark.usefixtures("quick_compilation")
def test_an_unknown_number_is_no_field_whose_size_is_watched():
    """ν may become a thousand times smaller than at the start; u is what `size` is about."""
    net = ng.Fields(u=NET, nu=ng.Unknown(1e3, positive=True))
    problem = ng.LeastSquares(net, a=ng.Residual(lambda net, x: net.u(x) - 1 + net.nu.value - 1, X))
    new = ng.Fields(u=NET, nu=ng.Unknown(1.0, positive=True))
    params = ng.LeastSquares(new, a=ng.Residual(VALUE, X)).params
    np.testing.assert_allclose(problem.solution_size(params)["size"], 1.0)
