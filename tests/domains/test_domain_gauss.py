"""Gauss rules integrate polynomials of the degrees they promise without error."""

import itertools

import numpy as np
import pytest

from natgrad.domains import Ball, Box, Interval, Polygon
from tests.domains.domain_cases import (
    CROWN,
    ELL,
    ball_moment,
    box_moment,
    integral,
    polygon_moment,
    sphere_moment,
)


def moment(points, powers):
    return integral(points, (np.asarray(points.x) ** np.array(powers)).prod(axis=1))


def powers_up_to(degree, dim):
    return [p for p in itertools.product(range(degree + 1), repeat=dim) if sum(p) <= degree]


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_box(dim):
    lower, upper = [-0.5, 1, 0, 2][:dim], [1, 1.5, 2, 3][:dim]
    points = Box(lower, upper).interior(3**dim, rule="gauss")
    assert len(points) == 3**dim
    for powers in itertools.product((0, 2, 5), repeat=dim):
        np.testing.assert_allclose(moment(points, powers), box_moment(lower, upper, powers), rtol=1e-13)


def test_box_with_points_by_axis():
    box = Box([0, 0, 0], [1, 2, 3])
    points = box.interior((1, 2, 3), rule="gauss")
    assert len(points) == 6
    np.testing.assert_allclose(moment(points, (1, 3, 5)), box_moment([0] * 3, [1, 2, 3], (1, 3, 5)), rtol=1e-13)
    assert len(box.boundary((4, 5, 6), rule="gauss")) == 2 * (5 * 6 + 4 * 6 + 4 * 5)


def test_box_faces():
    box = Box([0, 0, 0], [1, 2, 3])
    points = box.boundary(9, rule="gauss", faces=[(2, "upper")])
    assert len(points) == 9
    np.testing.assert_allclose(points.x[:, 2], 3, rtol=0)
    np.testing.assert_allclose(moment(points, (4, 5, 1)), 3 * box_moment([0, 0], [1, 2], (4, 5)), rtol=1e-13)
    sides = box.boundary(200, rule="gauss", faces=[(0, "lower"), (0, "upper")])
    np.testing.assert_allclose(sides.measure, 12)


@pytest.mark.parametrize("radii", [1, 2, 3])
def test_disc_is_exact_to_degree_4m_minus_2(radii):
    points = Ball([0, 0], 1).interior(4 * radii**2, rule="gauss")
    assert len(points) == 4 * radii**2
    for powers in powers_up_to(4 * radii - 2, 2):
        np.testing.assert_allclose(moment(points, powers), ball_moment(powers), atol=1e-14)


@pytest.mark.parametrize("radii", [1, 2])
def test_ball_is_exact_to_degree_4m_minus_2(radii):
    points = Ball([0, 0, 0], 1).interior(8 * radii**3, rule="gauss")
    assert len(points) == 8 * radii**3
    for powers in powers_up_to(4 * radii - 2, 3):
        np.testing.assert_allclose(moment(points, powers), ball_moment(powers), atol=1e-14)


def test_spheres():
    circle = Ball([0, 0], 1).boundary(9, rule="gauss")
    assert len(circle) == 9
    for powers in powers_up_to(8, 2):
        np.testing.assert_allclose(moment(circle, powers), sphere_moment(powers), atol=1e-14)
    sphere = Ball([0, 0, 0], 1).boundary(50, rule="gauss")
    assert len(sphere) == 50
    for powers in powers_up_to(9, 3):
        np.testing.assert_allclose(moment(sphere, powers), sphere_moment(powers), atol=1e-14)


def test_shifted_ball_and_points_by_axis():
    points = Ball([1, 2, 3], 2).interior((3, 4, 7), rule="gauss")
    assert len(points) == 84
    volume = 4 / 3 * np.pi * 8
    np.testing.assert_allclose(moment(points, (1, 1, 1)), 6 * volume, rtol=1e-13)
    np.testing.assert_allclose(moment(points, (2, 0, 0)), (1 + 4 / 5) * volume, rtol=1e-13)


@pytest.mark.parametrize("vertices", [[(0, 0), (2, 0.5), (0.3, 1.5)], ELL, CROWN, CROWN[::-1]])
def test_polygon(vertices):
    polygon = Polygon(vertices)
    points = polygon.interior((3, 3), rule="gauss")
    assert len(points) == 9 * len(polygon.triangles)
    sign = np.sign(polygon_moment(vertices, (0, 0)))
    for powers in powers_up_to(5, 2):
        np.testing.assert_allclose(moment(points, powers), sign * polygon_moment(vertices, powers), rtol=1e-12)


def test_polygon_edges():
    points = Polygon(ELL).boundary((3,), rule="gauss", edges=[0, 4])
    assert len(points) == 6
    # y = 0 from 0 to 2, and y = 2 from 1 to 0
    np.testing.assert_allclose(moment(points, (5, 0)), 64 / 6 + 1 / 6, rtol=1e-13)
    np.testing.assert_allclose(points.normals, [[0, -1]] * 3 + [[0, 1]] * 3, atol=1e-15)


def test_spacetime():
    cylinder = Interval(0, 2) * Ball([0, 0], 1)
    points = cylinder.interior((3, 2, 7), rule="gauss")
    assert len(points) == 42
    np.testing.assert_allclose(moment(points, (5, 2, 4)), 64 / 6 * ball_moment((2, 4)), rtol=1e-13)
    points = cylinder.boundary((3, 7), rule="gauss")
    np.testing.assert_allclose(moment(points, (5, 2, 4)), 64 / 6 * sphere_moment((2, 4)), rtol=1e-13)
    brick = Interval(0, 2) * Box([0, 0], [1, 3])
    assert len(brick.interior(1000, rule="gauss")) == 1000
    lid = brick.boundary(100, rule="gauss", faces=[(1, "upper")])
    np.testing.assert_allclose(lid.x[:, 2], 3, rtol=0)
    np.testing.assert_allclose(lid.measure, 2)
    edge = (Interval(0, 2) * Polygon(ELL)).boundary(100, rule="gauss", edges=[1])
    np.testing.assert_allclose(edge.x[:, 1], 2, rtol=1e-15)


def test_gauss_converges_exponentially():
    """∫ e^x over the unit disc is 2π I₁(1)."""
    exact = 2 * np.pi * 0.5651591039924850
    errors = [
        abs(integral(p, np.exp(np.asarray(p.x)[:, 0])) - exact)
        for p in (Ball([0, 0], 1).interior(4 * m * m, rule="gauss") for m in (1, 2, 3, 4))
    ]
    assert errors[1] < 1e-3 * errors[0]
    assert errors[2] < 1e-4 * errors[1]
    assert errors[3] < 1e-13
