"""Polygons: triangulation, orientation, membership."""

import jax
import numpy as np
import pytest

from natgrad.domains import Interval, Polygon
from natgrad.domains.triangulate import signed_area
from tests.domains.domain_cases import CROWN, ELL


def star(n, seed):
    """A star-shaped polygon with n corners at random distances from the origin."""
    rng = np.random.default_rng(seed)
    angles, radii = np.linspace(0, 2 * np.pi, n, endpoint=False), rng.uniform(0.2, 1, n)
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)


def comb(teeth):
    """A comb: every other corner reflex, ears only at the tips."""
    top = [(x + dx, y) for x in range(teeth) for dx, y in ((0, 1), (0.4, 5), (0.8, 1))]
    return [(teeth, 0), *reversed(top), (0, 0)]


@pytest.mark.parametrize("vertices", [ELL, CROWN, comb(6), *(star(n, n) for n in (3, 8, 25, 60))])
def test_triangles_fill_the_polygon(vertices):
    for order in (1, -1):
        corners = np.array(vertices, float)[::order]
        polygon = Polygon(corners)
        areas = [signed_area(corners[list(triangle)]) for triangle in polygon.triangles]
        assert min(areas) > 0
        np.testing.assert_allclose(sum(areas), abs(signed_area(corners)), rtol=1e-13)
        centroids = np.array([corners[list(triangle)].mean(axis=0) for triangle in polygon.triangles])
        assert np.all(polygon.contains(centroids))


def test_ell():
    ell = Polygon(ELL)
    assert ell.measure == 3
    assert ell.boundary_measure == 8
    assert len(ell.triangles) == 4
    inside = [(0.5, 0.5), (1.5, 0.5), (0.5, 1.5), (1, 1), (0, 0), (2, 0.3)]
    outside = [(1.5, 1.5), (1 + 1e-9, 1 + 1e-9), (-1, 0), (3, 0), (0.5, 2.1), (-1, 1), (-1, 2)]
    assert np.all(ell.contains(np.array(inside)))
    assert not np.any(ell.contains(np.array(outside)))
    assert ell.contains(np.array([0.5, 0.5])).shape == ()
    assert np.all(ell.on_boundary(np.array([(1, 1.5), (1, 1), (2, 0)])))
    assert not np.any(ell.on_boundary(np.array([(1, 0.5), (0.5, 1), (2.5, 0)])))


def test_edges_keep_the_numbers_they_were_given():
    """Also where the corners run clockwise."""
    for vertices in (ELL, ELL[::-1]):
        polygon = Polygon(vertices)
        for i, (a, b) in enumerate(zip(vertices, [*vertices[1:], vertices[0]], strict=True)):
            points = jax.tree.map(np.asarray, polygon.boundary(2, rule="gauss", edges=[i]))
            np.testing.assert_allclose(points.x.mean(axis=0), np.add(a, b) / 2, atol=1e-15)
            np.testing.assert_allclose(points.normals @ np.subtract(b, a), 0, atol=1e-15)
            assert not np.any(polygon.contains(points.x + 1e-6 * points.normals))


def test_straight_angles_split_edges():
    split = Polygon([(0, 0), (0.25, 0), (1, 0), (1, 1), (0, 1)])
    assert split.measure == 1
    assert len(split.triangles) == 2
    np.testing.assert_allclose(split.boundary(4, rule="sobol", edges=[0]).measure, 0.25)


def test_a_repeated_first_corner_closes_the_ring():
    assert Polygon([*ELL, ELL[0]]) == Polygon(ELL)


def test_far_from_the_origin():
    far = Polygon(np.add(ELL, (1e6, -1e6)))
    np.testing.assert_allclose(far.measure, 3, rtol=1e-9)
    assert np.all(far.contains(far.interior(100, rule="sobol").x))
    assert np.all(far.on_boundary(far.boundary(100, rule="sobol").x))


def test_space_time_over_a_polygon():
    cylinder = Interval(0, 2) * Polygon(ELL)
    assert cylinder.dim == 3
    assert cylinder.measure == 6
    assert cylinder.boundary_measure == 16
    assert not np.any(cylinder.contains(np.array([(2.5, 0.5, 0.5), (1, 1.5, 1.5)])))
