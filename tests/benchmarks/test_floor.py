"""The five numbers at the end of a run, where each is known."""

import jax
import jax.numpy as jnp
import pytest

import natgrad as ng
from benchmarks import floor

KEY = jax.random.key(0)


def line(points=40, exact=lambda x: jnp.sin(2 * x[0])):
    """u = sin 2x by its values, for which a network of one sine is enough."""
    x = ng.Box([0.0], [1.0]).interior(points, key=KEY)
    net = ng.MLP(1, 1, 2, 1, activation=jnp.sin, key=jax.random.key(2))
    return ng.LeastSquares(net, fit=ng.Residual(lambda u, x: u(x) - exact(x), x), exact=exact)


def test_the_numbers_of_a_network_that_can_do_it():
    problem = line()
    solution = ng.solve(problem, ng.FullNGD(), steps=12, progress=False)
    found = floor.floor(problem, solution, 30, KEY)
    assert found["represents"] < 1e-9
    assert found["represents"] <= found["error"]
    assert 0 < found["promised"] <= found["promised, mu = 0"] <= 1 + 1e-9
    assert found["mu over least"] > 0
    assert found["round-off"] > 0.1  # twelve steps are enough: nothing is left
    assert found["alpha"] in {0.5**k for k in range(floor.TRIALS)}
    assert found["bend"] > 0


@pytest.mark.slow
def test_too_few_points_and_too_small_a_network_are_told_apart():
    few, small = line(points=3), line(exact=lambda x: jnp.abs(x[0] - 0.3))
    found = floor.floor(few, ng.solve(few, ng.FullNGD(), steps=12, progress=False), 2, KEY)
    assert found["points"] > 1e3
    assert floor.represents(small, small.params, 10) > 1e-3


def test_round_off_of_the_residuals_is_that_of_their_digits():
    problem = line()
    size = float(problem.loss(problem.params))
    assert 1e-36 < floor.round_off(problem, problem.params, KEY) / size < 1e-28


def test_problems_without_a_solution_are_refused():
    options = {
        "problem": "deepritz2d",
        "preset": "small",
        "set": [],
        "solver": "ng.NGD()",
        "steps": 1,
        "seed": 0,
        "fit": 1,
    }
    with pytest.raises(ValueError, match="deepritz2d has no residuals at points"):
        floor.run(floor.argparse.Namespace(**options))
