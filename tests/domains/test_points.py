"""Points as values: checks, concatenation, and points that lie outside."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.domains import Ball, Box, Points, as_points


def test_as_points_takes_means():
    points = as_points(np.arange(6).reshape(3, 2))
    assert len(points) == 3
    assert points.x.dtype == jnp.float64
    np.testing.assert_allclose(points.weights, 1 / 3)
    np.testing.assert_allclose(points.measure, 1)
    np.testing.assert_allclose(points.integrate(points.x), [2, 3])
    assert as_points(jnp.ones((2, 1), jnp.float32)).x.dtype == jnp.float32


def test_as_points_keeps_points():
    circle = Ball([0, 0], 1).boundary(8, rule="gauss")
    again = as_points(circle)
    assert (again.x == circle.x).all()
    assert (again.weights == circle.weights).all()
    assert (again.normals == circle.normals).all()
    np.testing.assert_allclose(as_points(circle, np.ones(8)).measure, 8)


@pytest.mark.parametrize(
    ("x", "weights", "message"),
    [
        (np.zeros(5), None, r"shape \(n, d\), got \(5,\).*x\[:, None\]"),
        (np.zeros((2, 2, 2)), None, r"shape \(n, d\), got \(2, 2, 2\)"),
        (np.zeros((0, 2)), None, "must not be empty"),
        (np.zeros((3, 2)), np.ones(2), r"weights must have shape \(3,\).*got \(2,\)"),
        (np.zeros((3, 2)), np.ones((3, 1)), r"weights must have shape \(3,\)"),
        (np.zeros((2, 1)), [1, -1], "weights must not be negative, got 1 of 2"),
        (np.zeros((2, 1)), [1, np.nan], "weights must be finite, got 1"),
        ([[np.inf], [0]], None, "points must be finite, got 1"),
        (np.zeros((2, 1), complex), None, "must be real"),
        ("abc", None, "array of numbers, got str"),
    ],
)
def test_as_points_refuses(x, weights, message):
    with pytest.raises(ValueError, match=message) as caught:
        as_points(x, weights)
    assert "\n" not in str(caught.value)


def test_as_points_under_jit_checks_shapes_alone():
    assert jax.jit(lambda x: as_points(x).measure)(jnp.full((4, 2), jnp.nan)) == 1
    with pytest.raises(ValueError, match="shape"):
        jax.jit(lambda x: as_points(x).measure)(jnp.ones(4))


def test_concatenation():
    square = Box([0, 0], [1, 1])
    inside, around = square.interior(4, rule="gauss"), square.boundary(8, rule="gauss")
    both = inside + around
    assert len(both) == 12
    assert both.normals is None
    np.testing.assert_allclose(both.measure, 5)
    twice = Points.concatenate(around, around, around)
    assert twice.normals.shape == (24, 2)
    with pytest.raises(ValueError, match="at least one block"):
        Points.concatenate()
    with pytest.raises(ValueError, match=r"different dimensions \[1, 2\]"):
        _ = inside + as_points(np.zeros((2, 1)))
    with pytest.raises(TypeError):
        _ = inside + 1


def test_points_are_a_pytree():
    circle = Ball([0, 0], 1).boundary(8, rule="gauss")
    assert len(jax.tree.leaves(circle)) == 3
    np.testing.assert_allclose(jax.jit(lambda p: p.measure)(circle), 2 * np.pi)


def test_interior_points_remember_their_domain():
    square = Box([0, 0], [1, 1])
    inside = square.interior(4, rule="gauss")
    assert inside.domain == as_points(inside).domain == square
    assert as_points(inside.x).domain is None
    assert square.boundary(4, rule="gauss").domain is None
    assert (inside + inside).domain is None
