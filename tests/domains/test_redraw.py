"""Points know how to be drawn again: others, of the same sets, with the same measure."""

import jax
import numpy as np
import pytest

from natgrad.domains import Ball, Box, Interval, Points, Polygon, as_points

KEY, OTHER = jax.random.key(0), jax.random.key(1)
ELL = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
CYLINDER = Interval(1, 3) * Box([0, 0], [1, 2])
SETS = {
    "box": lambda **how: Box([0, 0], [1, 2]).interior(100, **how),
    "faces": lambda **how: Box([0, 0], [1, 2]).boundary(100, faces=[(0, "lower"), (1, "upper")], **how),
    "ball": lambda **how: Ball([1, 0, 0], 2).interior(100, **how),
    "sphere": lambda **how: Ball([1, 0, 0], 2).boundary(100, **how),
    "polygon": lambda **how: ELL.interior(100, **how),
    "edges": lambda **how: ELL.boundary(100, edges=[1, 3], **how),
    "cylinder": lambda **how: CYLINDER.interior(100, **how),
    "side": lambda **how: CYLINDER.boundary(100, faces=[(1, "lower")], **how),
    "bottom": lambda **how: CYLINDER.initial(100, **how),
    "top": lambda **how: CYLINDER.final(100, **how),
}


def fixed_columns(points):
    """Coordinates in which all points agree, and their value."""
    x = np.asarray(points.x)
    return {axis: x[0, axis] for axis in range(x.shape[1]) if np.ptp(x[:, axis]) == 0}


@pytest.mark.parametrize("rule", ["monte-carlo", "sobol", "gauss"])
@pytest.mark.parametrize("name", SETS)
def test_others_of_the_same_set(name, rule):
    points = SETS[name](rule=rule, **({} if rule == "gauss" else {"key": KEY}))
    fresh = points.redraw(300, OTHER)
    assert len(fresh) == 300
    np.testing.assert_allclose(fresh.measure, points.measure, rtol=1e-12)
    assert not {tuple(x) for x in np.asarray(points.x)} & {tuple(x) for x in np.asarray(fresh.x)}
    assert fixed_columns(fresh) == pytest.approx(fixed_columns(points))
    assert (fresh.normals is None) == (points.normals is None)
    # The same set: integrals of a function agree as well as 100 points allow, on parts of a boundary too.
    integral = lambda p: float(p.integrate(np.cos(np.asarray(p.x)).prod(axis=1) ** 2))
    assert integral(fresh) == pytest.approx(integral(points), rel=0.35)
    if points.normals is not None and name != "sphere":
        assert {tuple(v) for v in np.asarray(fresh.normals)} == {tuple(v) for v in np.asarray(points.normals)}


def test_keys_say_which():
    points = Box([0, 0], [1, 1]).interior(50, key=KEY)
    assert (points.redraw(50, OTHER).x == points.redraw(50, OTHER).x).all()
    assert not (points.redraw(50, OTHER).x == points.redraw(50, jax.random.key(2)).x).any()


def test_parts_keep_their_shares_and_their_measures():
    left, right = Box([0], [1]), Box([1], [5])
    both = left.interior(90, key=KEY) + right.interior(10, rule="gauss")
    fresh = both.redraw(1000, OTHER)
    inside = np.asarray(fresh.x[:, 0]) < 1
    assert inside.sum() == 900
    np.testing.assert_allclose(np.asarray(fresh.weights)[inside].sum(), 1)
    np.testing.assert_allclose(np.asarray(fresh.weights)[~inside].sum(), 4)
    assert fresh.redraw(200, KEY) is not None


def test_scaled_weights_stay_scaled():
    points = Box([0], [2]).interior(10, key=KEY)
    mean = Points(points.x, points.weights / 2, origin=points.origin)
    np.testing.assert_allclose(mean.redraw(30, OTHER).measure, 1)


def test_points_given_by_hand_cannot_be_drawn_again():
    points = Box([0], [2]).interior(10, key=KEY)
    assert as_points(points).redraw(10, OTHER) is not None
    for given in (as_points(points.x), as_points(points, np.ones(10)), points + as_points(points.x)):
        assert given.redraw(10, OTHER) is None
    assert jax.tree.map(lambda a: a[:5], points).redraw(10, OTHER) is None


def test_how_points_were_drawn_is_compared_by_value():
    """So that a problem built again from the same domain compiles nothing anew."""
    assert ELL.boundary(9, key=KEY).origin == Polygon(ELL.vertices).boundary(9, key=OTHER).origin
    assert hash(ELL.interior(9, key=KEY).origin) == hash(Polygon(ELL.vertices).interior(9, key=KEY).origin)
    assert ELL.boundary(9, key=KEY).origin != ELL.boundary(9, key=KEY, edges=[0]).origin
