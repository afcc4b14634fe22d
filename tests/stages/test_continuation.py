"""One problem for several values of a parameter, each begun where the last one ended."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.backend import programs
from tests.stages.test_march import same

VALUES = (1.0, 2.0, 4.0)


def reaction(value):
    """u'' = k sinh u, u(0) = 0, u(1) = 1; k is data."""
    line = ng.Interval(0, 1)
    points = line.interior(30, rule="gauss")
    return ng.LeastSquares(
        ng.MLP(1, 1, 6, 1, key=jax.random.key(0)),
        pde=ng.Residual(
            lambda u, x, k: ng.partial(u, x, 0, 0) - k * jnp.sinh(u(x)),
            points, data=lambda points: np.full(len(points), value),
        ),
        ends=ng.Residual(lambda u, x: u(x) - x[0], jnp.array([[0.0], [1.0]]), weight=10),
    )  # fmt: skip


def solve(values=VALUES, steps=12, problem=reaction, **options):
    return ng.continuation(problem, values, ng.FullNGD(), steps, progress=False, **options)


def test_the_last_value_is_the_solution():
    ng.clear_cache()
    before = dict(programs.COMPILATIONS)
    solution = solve()
    assert programs.COMPILATIONS["new"] - before["new"] == 2  # the step and the evaluation
    assert [record["value"] for record in solution.history.records] == [v for v in VALUES for _ in range(12)]
    assert len(solution.params) == 3
    assert float(reaction(4.0).loss(solution.params[-1])) == pytest.approx(solution.loss, rel=1e-6)
    assert solution.u(jnp.array([0.3])) == reaction(4.0).solution(solution.params[-1])(jnp.array([0.3]))
    cold = ng.solve(reaction(4.0), ng.FullNGD(), 1, progress=False)
    assert solution.history.loss[24] < 0.1 * cold.history.loss[0]


def test_what_is_fixed_in_a_network_may_differ():
    """The trained arrays go on; the distance of a hard boundary, say, is that of the problem."""
    points = ng.Interval(0, 1).interior(30, rule="gauss")

    def fit(value):
        inner = ng.MLP(1, 1, 6, 1, key=jax.random.key(0))
        u = ng.HardBoundary(inner, lambda x: x[0] ** value)
        return ng.LeastSquares(u, fit=ng.Residual(lambda u, x: u(x) - jnp.sin(x[0]), points))

    solution, own = solve((1.0, 2.0), 4, fit), fit(2.0)
    arrays = jax.tree.leaves(solution.params[0])
    params = jax.tree.unflatten(jax.tree.structure(own.params), arrays)
    assert solution.history.loss[4] < float(own.loss(params)) < 0.5 * float(own.loss(own.params))
    x = jnp.array([0.3])
    np.testing.assert_allclose(solution.u(x), 0.09 * solution.params[1].network(x), rtol=1e-12)
    stopped = solve((1.0, 2.0), 4, fit, callback=lambda record: record["step"] == 6)
    same(solution, solve((1.0, 2.0), 4, fit, resume=stopped))


@pytest.mark.parametrize("stop", [5, 12, 20])
def test_it_goes_on_with_the_same_bits(stop):
    stopped = solve(callback=lambda record: record["step"] == stop)
    same(solve(), solve(resume=stopped))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([], "values must be finite numbers, at least one"),
        ([1, float("nan")], "values must be finite numbers"),
        ([1, 2, 1], "values must differ from one another"),
        (3, "values must be a sequence of numbers, got 3"),
        (["a"], "values must be a sequence of numbers"),
    ],
)
def test_bad_values_end_in_one_line(values, words):
    with pytest.raises(ValueError, match=words):
        solve(values)


def test_what_is_no_function_is_refused():
    with pytest.raises(ValueError, match="continuation takes a function value -> problem, got LeastSquares"):
        solve(problem=reaction(1.0))
    with pytest.raises(ValueError, match="steps must be one number, or one for each of 3, got 1"):
        solve(steps=[1])
