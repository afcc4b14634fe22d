"""Least-squares problems against sums written by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from tests.helpers import flow, poisson


class Quadratic(eqx.Module):
    """u(x) = a·x + b |x|²: everything about it is known."""

    a: jax.Array
    b: jax.Array

    def __call__(self, x):
        return self.a @ x + self.b * jnp.sum(x**2)


@pytest.fixture
def quadratic():
    return Quadratic(jnp.array([1.0, -2.0]), jnp.array(0.5))


def test_weights_and_block_weights_multiply_the_squares(quadratic):
    x = np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]])
    w = np.array([0.2, 0.3, 0.5])
    problem = ng.LeastSquares(
        quadratic,
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + x[0], ng.Points(jnp.asarray(x), jnp.asarray(w))),
        boundary=ng.Residual(lambda u, x: u(x) - 1.0, x[:2], weight=7.0),
    )
    u = x @ [1.0, -2.0] + 0.5 * np.sum(x**2, axis=1)
    pde = 0.5 * np.sum(w * (2.0 + x[:, 0]) ** 2)  # Δu = 4b = 2
    boundary = 0.5 * 7.0 * np.mean((u[:2] - 1) ** 2)  # a plain array stands for a mean
    losses = problem.losses(problem.params)
    assert list(losses) == ["pde", "boundary"]
    np.testing.assert_allclose(losses["pde"], pde, rtol=1e-14)
    np.testing.assert_allclose(losses["boundary"], boundary, rtol=1e-14)
    np.testing.assert_allclose(problem.loss(problem.params), pde + boundary, rtol=1e-14)
    np.testing.assert_allclose(problem.residuals(problem.params)["pde"][:, 0], 2.0 + x[:, 0], rtol=1e-13)
    assert problem.num_rows == 5
    assert problem.num_parameters == 3


def test_data_rows_go_with_their_points(quadratic):
    """Each measurement meets its own point: shuffling the rows of the data alone changes the residuals."""
    x = np.random.default_rng(0).uniform(size=(6, 2))
    y = np.arange(6.0)
    fn = lambda u, x, y: u(x) - y
    problem = ng.LeastSquares(quadratic, data=ng.Residual(fn, x, data=jnp.asarray(y)))
    expected = x @ [1.0, -2.0] + 0.5 * np.sum(x**2, axis=1) - y
    np.testing.assert_allclose(problem.residuals(problem.params)["data"][:, 0], expected, rtol=1e-13)
    shuffled = ng.LeastSquares(quadratic, data=ng.Residual(fn, x, data=jnp.asarray(y[::-1])))
    assert not np.allclose(shuffled.residuals(problem.params)["data"][:, 0], expected)


def test_normals_as_data(quadratic):
    """A Neumann condition: ∂u/∂n with the normals of the boundary points, and integer data become floats."""
    edge = ng.Box([0.0, 0.0], [1.0, 1.0]).boundary(12, key=jax.random.key(0))
    sign = jnp.arange(12)
    problem = ng.LeastSquares(
        quadratic,
        flux=ng.Residual(lambda u, x, n, s: s * (ng.gradient(u, x) @ n), edge, data=(edge.normals, sign)),
    )
    x, n = np.asarray(edge.x), np.asarray(edge.normals)
    expected = np.arange(12.0) * np.sum((np.array([1.0, -2.0]) + x) * n, axis=1)
    np.testing.assert_allclose(problem.residuals(problem.params)["flux"][:, 0], expected, rtol=1e-13, atol=1e-14)


def test_vector_residuals_sum_over_components():
    problem = flow()
    residuals, loss = jax.jit(lambda p: (problem.residuals(p), problem.loss(p)))(problem.params)
    r = {name: np.asarray(value) for name, value in residuals.items()}
    assert r["momentum"].shape == (23, 3)
    assert r["data"].shape == (9, 2)
    w = [np.asarray(block.weights) for block in problem.features]
    expected = 0.5 * np.sum(w[0][:, None] * r["momentum"] ** 2) + 0.5 * np.sum(w[1][:, None] * r["data"] ** 2)
    np.testing.assert_allclose(loss, expected, rtol=1e-13)
    # square.interior has the area 2 of its domain as total weight, times the block's weight ½
    np.testing.assert_allclose(w[1].sum(), 1.0, rtol=1e-12)
    assert problem.num_rows == 23 * 3 + 9 * 2


def test_difference_is_that_of_the_losses_far_from_the_minimum():
    problem = poisson()
    new = jax.tree.map(lambda a: 1.1 * a + 0.01, problem.params)
    loss, difference = jax.jit(lambda p: problem.loss(p)), jax.jit(lambda p, q: problem.difference(p, q))
    expected = loss(new) - loss(problem.params)
    np.testing.assert_allclose(difference(problem.params, new), expected, rtol=1e-12)
    assert difference(problem.params, problem.params) == 0


def test_difference_survives_where_subtraction_does_not():
    """r = (1, ε) with ε moved from 1e-9 to 0: the loss ½ + ½ε² changes by 5e-19, which subtraction rounds to zero."""

    class Number(eqx.Module):
        value: jax.Array

        def __call__(self, x):
            return self.value

    problem = ng.LeastSquares(
        Number(jnp.array(1e-9)),
        constant=ng.Residual(lambda u, x: 0 * u(x) + 1.0, jnp.zeros((1, 1))),
        small=ng.Residual(lambda u, x: u(x), jnp.zeros((1, 1))),
    )
    new = jax.tree.map(jnp.zeros_like, problem.params)
    assert problem.loss(new) - problem.loss(problem.params) == 0
    np.testing.assert_allclose(problem.difference(problem.params, new), -5e-19, rtol=1e-12)


def test_rebuilding_a_problem_compiles_nothing_anew(quadratic):
    """Two problems from the same functions and other numbers share one compilation."""
    traces = []

    def residual(u, x):
        traces.append(1)
        return u(x)

    build = lambda scale: ng.LeastSquares(quadratic, pde=ng.Residual(residual, scale * jnp.ones((4, 2))))
    first, second = build(1.0), build(2.0)
    loss = eqx.filter_jit(lambda problem: problem.loss(problem.params))
    one = loss(first)
    count = len(traces)
    assert loss(second) != one
    assert len(traces) == count


def test_parameters_decide_the_dtype():
    net = ng.MLP(2, 1, 4, 1, key=jax.random.key(0), dtype=jnp.float32)
    points = np.ones((3, 2))
    problem = ng.LeastSquares(net, data=ng.Residual(lambda u, x, y: u(x) - y, points, data=np.ones(3)))
    assert problem.dtype == jnp.float32
    assert problem.loss(problem.params).dtype == jnp.float32
    assert problem.difference(problem.params, problem.params).dtype == jnp.float32


def test_other_weights_are_those_of_a_problem_built_with_them():
    """In the losses, their sum and its changes, the Gramian's gradient; by name and in order."""
    key, params = jax.random.key(3), None
    x = jax.random.uniform(key, (7, 2))
    blocks = lambda a, b: {
        "a": ng.Residual(lambda u, x: u(x) - 1, x, weight=a), "b": ng.Residual(lambda u, x: u(x) + x, x, weight=b)
    }  # fmt: skip
    net = ng.MLP(2, 1, 4, 1, key=key)
    built, made = ng.LeastSquares(net, **blocks(2.0, 30.0)), ng.LeastSquares(net, **blocks(2.0, "auto"))
    params, new = built.params, jax.tree.map(lambda leaf: 1.1 * leaf, built.params)
    assert made.losses(params)["b"] == pytest.approx(float(built.losses(params)["b"]) / 30)
    for found in (made.with_weights({"b": 30.0}), made.with_weights(jnp.array([2.0, 30.0]))):
        assert not found.auto
        assert made.auto == ("b",)
        np.testing.assert_allclose(found.weights, [2, 30])
        np.testing.assert_allclose(found.loss(params), built.loss(params), rtol=1e-14)
        np.testing.assert_allclose(found.difference(params, new), built.difference(params, new), rtol=1e-13)
        np.testing.assert_allclose(
            ng.gramian(found).loss_gradient(), ng.gramian(built).loss_gradient(), rtol=1e-12, atol=1e-12
        )
