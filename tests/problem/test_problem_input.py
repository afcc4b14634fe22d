"""What a problem refuses, each time with one line that says what is wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.problem.errors import ErrorNorms

X = np.random.default_rng(0).uniform(size=(5, 2))
SQUARE = ng.Box([0.0, 0.0], [1.0, 1.0])
P = SQUARE.interior(5, key=0)
NET = ng.MLP(2, 1, 3, 1, key=jax.random.key(0))
FIELDS = ng.Fields(u=NET, p=ng.MLP(2, 1, 3, 1, key=jax.random.key(1)))
VALUE = lambda u, x: u(x)
L2 = ng.metrics.L2()


class Mixed(eqx.Module):
    """Parameters of two precisions."""

    a: jax.Array
    b: jax.Array

    def __call__(self, x):
        return self.a * x[0] + self.b


def residual(fn=VALUE, points=X, net=NET, **options):
    return ng.LeastSquares(net, pde=ng.Residual(fn, points, **options))


def two(weights=None, weight=1.0):
    return ng.LeastSquares(NET, weights=weights, pde=ng.Residual(VALUE, X), rim=ng.Residual(VALUE, X, weight=weight))


def by_hand(*points):
    return residual(points=ng.Points(*points))


def energy(density=VALUE, points=X, metric=L2, net=NET, **options):
    return ng.EnergyMinimization(net, interior=ng.Energy(density, points, metric=metric, **options))


def inside(exact, net=NET, **options):
    return ng.LeastSquares(
        net, pde=ng.Residual(lambda u, x: 1.0 * x[0], SQUARE.interior(5, key=jax.random.key(2))), exact=exact, **options
    )


CASES = {
    # networks
    "no parameters": (lambda: residual(net=lambda x: x[0]), "has no parameters"),
    "mixed dtypes": (lambda: residual(net=Mixed(jnp.float32(1), jnp.float64(1))), "mix the dtypes float32, float64"),
    "energy, no parameters": (lambda: energy(net=lambda x: x[0]), "has no parameters"),
    "half precision": (
        lambda: residual(net=ng.MLP(2, 1, 3, 1, key=0, dtype=jnp.float16)),
        "parameters must be float64 or float32, got float16",
    ),
    "complex parameters": (
        lambda: residual(net=ng.MLP(2, 1, 3, 1, key=0, dtype=jnp.complex128)),
        "must be float64 or float32, got complex128: give real and imaginary parts",
    ),
    "a parameter without numbers": (
        lambda: residual(net=Mixed(jnp.ones(0), jnp.ones(()))),
        r"parameter of shape \(0,\)",
    ),
    # points by hand
    "negative weights": (lambda: by_hand(P.x, -P.weights), "weights must not be negative, got 5 of 5"),
    "weights of zero": (lambda: by_hand(P.x, 0 * P.weights), "weights must not all be zero"),
    "weights of points in words": (lambda: by_hand(P.x, "abc"), "weights must be an array of numbers, got str"),
    "weights of others": (lambda: by_hand(P.x, P.weights[:3]), r"weights must have shape \(5,\).* got \(3,\)"),
    "no points": (lambda: by_hand(P.x[:0], P.weights[:0]), "points must not be empty"),
    "points that are NaN": (lambda: by_hand(P.x * jnp.nan, P.weights), "points must be finite, got 10 entries"),
    "normals of others": (lambda: by_hand(P.x, P.weights, P.x[:2]), r"normals must have the shape \(5, 2\)"),
    "an energy by hand": (lambda: energy(points=ng.Points(P.x, -P.weights)), "weights must not be negative"),
    "nowhere to evaluate": (
        lambda: inside(lambda x: x[0], NET, evaluation=ng.Points(P.x[:0], P.weights[:0])),
        "evaluation: points must not be empty",
    ),
    "negative evaluation": (
        lambda: inside(lambda x: x[0], NET, evaluation=ng.Points(P.x, -P.weights)),
        "evaluation: weights must not be negative",
    ),
    "evaluation of nothing": (
        lambda: inside(lambda x: x[0], NET, evaluation=ng.Points(P.x, 0 * P.weights)),
        "evaluation: weights must not all be zero",
    ),
    "evaluation elsewhere": (
        lambda: inside(lambda x: x[0], NET, evaluation=ng.Box([0], [1]).interior(5, key=0)),
        r"the network fails at a single point of shape \(1,\)",
    ),
    # indices outside the point
    "a third coordinate": (
        lambda: residual(lambda u, x: u(x) - x[5]),
        r"residual 'pde': the index 5 is outside an axis of length 2; a point has shape \(2,\), .* x\[0\] to x\[1\]$",
    ),
    "a third derivative": (
        lambda: residual(lambda u, x: ng.gradient(u, x)[2]),
        "residual 'pde': the index 2 is outside an axis of length 2",
    ),
    "a third coordinate of a density": (
        lambda: energy(lambda u, x: u(x) * x[2]),
        "energy density 'interior': the index 2 is outside an axis",
    ),
    "a third coordinate of a metric": (
        lambda: energy(metric=ng.Metric(lambda u, v, x: v(x) * x[2])),
        "metric of block 'interior': the index 2 is outside an axis",
    ),
    "a third coordinate of a solution": (
        lambda: inside(lambda x: x[2], NET),
        "the exact solution: the index 2 is outside an axis of length 2",
    ),
    "a third coordinate of a network": (
        lambda: residual(net=ng.HardBoundary(NET, distance=lambda x: x[2])),
        "residual 'pde': the index 2 is outside an axis",
    ),
    "a row of data": (
        lambda: residual(lambda u, x, d: u(x) - d[3], data=np.ones((5, 2))),
        "residual 'pde': the index 3 is outside an axis of length 2",
    ),
    # what a block is made of
    "data in words": (lambda: residual(data="abc"), "data must be arrays of numbers, got str"),
    "complex data": (lambda: residual(data=1j * np.ones(5)), "data must be real, got complex128"),
    "data that are NaN": (lambda: residual(data=np.full(5, np.nan)), "data must be finite"),
    "data that raise": (
        lambda: residual(data=lambda points: points.nope),
        "data fails at 5 points of dimension 2: AttributeError",
    ),
    "a function that draws": (lambda: residual(points=lambda key: P), "got function: others at every step are"),
    "many for all": (lambda: two().with_weights([1.0, 2.0, 3.0]), "one for each of the blocks pde, rim, got"),
    "negative for all": (lambda: two().with_weights([1.0, -2.0]), "the weight of 'rim' must be .*, got -2"),
    "words for all": (lambda: two().with_weights("pde"), "one for each of the blocks pde, rim, got 'pde'"),
    "a difference of one": (
        lambda: energy(difference=lambda u, x: u(x)),
        "difference of the energy 'interior' fails .*takes 2 positional arguments but 3 were given$",
    ),
    "a difference that is a vector": (
        lambda: energy(difference=lambda u, new, x: x),
        r"difference of the energy 'interior' must be a scalar at one point, got shape \(2,\)",
    ),
    "a metric's density that is a vector": (
        lambda: energy(metric=ng.Metric(lambda u, v, x: v(x), density=lambda u, x: x)),
        "density of the metric of 'interior' must be a scalar",
    ),
    "a metric's density that is a number": (lambda: ng.Metric(VALUE, density=3), r"density is a function of \(u, x\)"),
    # residual functions
    "a function that raises": (lambda: ng.ResidualFunction(lambda t: t.nope, X), "residual function fails: Attribute"),
    "a function of one more": (
        lambda: ng.ResidualFunction(lambda t: t[5], X[:, 0]),
        "function: the index 5 is outside",
    ),
    "parameters in words": (lambda: ng.ResidualFunction(lambda t: t, "a"), "must be arrays"),
    # residual blocks
    "no block": (lambda: ng.LeastSquares(NET), "at least one residual block"),
    "not a residual": (lambda: ng.LeastSquares(NET, pde=VALUE), r"block 'pde' must be an ng\.Residual.*function"),
    "not a function": (lambda: ng.Residual(3.0, X), r"a function of \(u, x\), got float"),
    "zero weight": (
        lambda: ng.Residual(VALUE, X, weight=0.0),
        "^weight must be a positive finite number or 'auto', got 0",
    ),
    "negative weight": (
        lambda: ng.Residual(VALUE, X, weight=-1.0),
        "weight must be .*, got -1",
    ),
    "NaN weight": (
        lambda: ng.Residual(VALUE, X, weight=float("nan")),
        "weight must be a positive finite number or 'auto', got nan",
    ),
    "weight in words": (
        lambda: ng.Residual(VALUE, X, weight="Auto"),
        "weight must be a positive finite number or 'auto', got 'Auto': did you mean 'auto'?",
    ),
    "no weight": (
        lambda: ng.Residual(VALUE, X, weight=None),
        "weight must be .*, got None",
    ),
    "alone in balance": (lambda: residual(weight="auto"), "block 'pde' has nothing to be balanced against"),
    "all of one": (lambda: ng.LeastSquares(NET, weights="auto", pde=ng.Residual(VALUE, X)), "needs two blocks or more"),
    "numbers for all": (lambda: two(weights=2.0), 'weights is "auto" or left out, got 2.0'),
    "weights in words": (lambda: two(weights="trace"), "weights is \"auto\" or left out, got 'trace'"),
    "auto and a number": (lambda: two(weights="auto", weight=10), "balances all blocks, and 'rim' has the weight 10"),
    "weight of nothing": (lambda: two().with_weights({"rims": 2.0}), "there is no block 'rims' .* pde, rim"),
    "another weight": (
        lambda: two().with_weights({"rim": "auto"}),
        "weight of 'rim' must be .*, got 'auto'",
    ),
    "flat points": (lambda: residual(points=X[:, 0]), r"points must have shape \(n, d\), got \(5,\)"),
    "empty points": (lambda: residual(points=X[:0]), "points must not be empty"),
    "NaN points": (lambda: residual(points=np.full((3, 2), np.nan)), "points must be finite"),
    "text": (lambda: residual(points="everywhere"), "points must be an array of numbers, got str"),
    "data rows": (lambda: ng.Residual(VALUE, X, data=np.ones(4)), r"one row per point \(5\), got shape \(4,\)"),
    "scalar data": (lambda: ng.Residual(VALUE, X, data=1.0), r"one row per point \(5\), got shape \(\)"),
    "matrix": (
        lambda: residual(lambda u, x: jnp.outer(x, x)),
        r"residual 'pde' must give a scalar or a vector.*\(2, 2\)",
    ),
    "tuple": (lambda: residual(lambda u, x: (u(x), u(x))), "must give a scalar or a vector at one point, got tuple"),
    "integer": (lambda: residual(lambda u, x: jnp.int32(1)), "real floating-point values, got int32"),
    "complex": (lambda: residual(lambda u, x: 1j * u(x)), "real floating-point values, got complex128"),
    "wrong dimension": (
        lambda: residual(points=np.ones((5, 3))),
        r"residual 'pde' fails at a single point of shape \(3,\)",
    ),
    "unknown name": (lambda: residual(lambda u, x: u.v(x)), "residual 'pde' fails .* AttributeError"),
    "too few arguments": (lambda: residual(data=np.ones(5)), "residual 'pde' fails .* TypeError"),
    # energies
    "no energy": (lambda: ng.EnergyMinimization(NET), "needs a metric on at least one block"),
    "no metric": (lambda: energy(metric=None), "needs a metric on at least one block"),
    "metric is a name": (lambda: energy(metric="H1"), r"metric must be an ng\.Metric .*got str"),
    "balanced energy": (
        lambda: ng.EnergyMinimization(NET, weights="auto", a=ng.Energy(VALUE, X, metric=L2)),
        "the parts of an energy are not balanced",
    ),
    "not an energy": (lambda: ng.EnergyMinimization(NET, a=VALUE), r"block 'a' must be an ng\.Energy.*function"),
    "not a density": (lambda: ng.Energy(1.0, X, metric=L2), r"a function of \(u, x\), got float"),
    "energy data rows": (lambda: energy(data=np.ones(4)), r"one row per point \(5\)"),
    "vector density": (lambda: energy(lambda u, x: u(x) * x), r"energy density 'interior' must be a scalar.*\(2,\)"),
    "density fails": (lambda: energy(lambda u, x: u.v(x)), "energy density 'interior' fails .* AttributeError"),
    "matrix metric": (
        lambda: energy(metric=ng.Metric(lambda u, v, x: jnp.outer(x, x) * v(x))),
        "metric of block 'interior' must give a scalar or a vector",
    ),
    # metrics
    "not an operator": (lambda: ng.Metric(2.0), r"a function of \(u, v, x\), got float"),
    "negative diffusion": (
        lambda: ng.metrics.EnergyNorm(-1.0),
        "diffusion must be a non-negative .*, got -1",
    ),
    "negative reaction": (
        lambda: ng.metrics.EnergyNorm(1.0, -2.0),
        "reaction must be a non-negative .*, got -2",
    ),
    "negative potential": (
        lambda: ng.metrics.GrossPitaevskii(-1.0, 1.0),
        "potential must be a .*, got -1",
    ),
    "negative beta": (
        lambda: ng.metrics.GrossPitaevskii(1.0, -3.0),
        "beta must be a non-negative .*, got -3",
    ),
    # errors
    "nowhere to measure": (
        lambda: ng.LeastSquares(NET, pde=ng.Residual(VALUE, X), exact=lambda x: x[0]),
        "errors need points: give evaluation",
    ),
    "nothing to measure": (
        lambda: ng.LeastSquares(NET, pde=ng.Residual(VALUE, X), evaluation=SQUARE.interior(5, key=jax.random.key(2))),
        "without an exact solution",
    ),
    "components of the solution": (lambda: inside(lambda x: x), r"has shape \(2,\) at one point, the network \(1,\)"),
    "components of a field": (lambda: inside({"p": lambda x: x}, FIELDS), r"exact solution of 'p' has shape \(2,\)"),
    "a solution of two points": (lambda: inside(lambda x, y: x[0]), "the exact solution fails.*argument: 'y'$"),
    "a number for a solution": (lambda: inside(0.0), "must be a function of one point, got float: lambda x: 0.0, say"),
    "a solution of many points": (
        lambda: inside(lambda x: x[:, 0]),
        r"the exact solution fails.*coordinates are x\[0\]",
    ),
    "a solution by numpy": (lambda: inside(lambda x: np.sin(x[0])), "the exact solution fails.*jax.numpy, not numpy"),
    # what a function of the user raises
    "swapped arguments": (lambda: residual(lambda x, u: x[0] * u[0]), "called with the network u first"),
    "a condition": (lambda: residual(lambda u, x: u(x) if x[0] > 0 else 0.0), "jnp.where.*not if"),
    "points instead of a point": (lambda: residual(lambda u, x: u(x[:, 0])), "x is one point"),
    "a number for a residual": (lambda: residual(lambda u, x: 1.0), "got float, which does not depend on u"),
    "a domain for points": (lambda: residual(points=SQUARE), "got Box: draw some, by .interior"),
    "many weights": (
        lambda: residual(weight=jnp.ones(5)),
        "weight must be .*, got an array float64.5.",
    ),
    "unknown field": (lambda: inside({"q": lambda x: x[0]}, FIELDS), r"exact names the fields \['q'\]"),
    "singular solution": (lambda: inside(lambda x: 1 / (0 * x[0])), "not finite at the evaluation points"),
    "singular gradient": (
        lambda: inside(lambda x: jnp.sqrt(x[0] - x[0]) + x[1]),
        "not finite at the evaluation points",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused_in_one_line(name):
    build, message = CASES[name]
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_infinite_weights():
    with pytest.raises(ValueError, match="got inf"):
        ng.Residual(VALUE, X, weight=float("inf"))


def test_components_that_do_not_match_the_exact_solution():
    """Seen when a problem is built; and, for norms by themselves, when the error is measured."""
    norms = ErrorNorms(lambda x: x, SQUARE.interior(5, key=jax.random.key(2)), float)
    with pytest.raises(ValueError, match="the network has 1 components, the exact solution 2") as caught:
        norms(NET)
    assert "\n" not in str(caught.value)


def test_points_by_hand_without_weights_stand_for_a_mean():
    np.testing.assert_allclose(by_hand(P.x, None).features[0].weights, np.full(5, 0.2), rtol=1e-15)


def test_an_error_keeps_the_one_it_comes_from():
    with pytest.raises(
        ValueError, match=r"residual 'pde' fails at a single point of shape \(2,\): KeyError: 'a'"
    ) as caught:
        residual(lambda u, x: {}["a"])
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_density_that_is_a_number_is_welcome():
    """So is a difference that does not depend on the point."""
    problem = energy(metric=ng.Metric(lambda u, v, x: v(x), density=lambda u, x: 3.0), difference=lambda u, new, x: 0.0)
    assert float(problem.difference(problem.params, problem.params)) == 0.0
