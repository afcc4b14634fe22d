"""Parameters as further coordinates: points, weights, normals, values by name."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.domains import Ball, Box, Interval, Parameters
from tests.domains.domain_cases import NO_GAUSS, SPACES

KEY = jax.random.key(0)
FAMILY = Parameters(nu=(0.5, 2), k=(-1, 1))  # of area 3
SQUARE = Box([0, 0], [1, 2])


@pytest.mark.parametrize("rule", ["monte-carlo", "sobol", "gauss"])
@pytest.mark.parametrize("name", ["interval", "plate", "dice", "grid"])
def test_products(name, rule):
    base = SPACES[name]
    if rule == "gauss" and name in NO_GAUSS:
        pytest.skip("no Gauss rule")
    domain = base * FAMILY
    inside, around = (draw(70, key=KEY, rule=rule) for draw in (domain.interior, domain.boundary))
    assert inside.x.shape[1] == base.dim + 2
    np.testing.assert_allclose(float(inside.measure), 3 * base.measure, rtol=1e-12)
    np.testing.assert_allclose(float(around.measure), 3 * base.boundary_measure, rtol=1e-12)
    assert (np.asarray(around.normals)[:, -2:] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(around.normals, axis=1), 1)
    assert np.asarray(domain.contains(inside.x)).all()
    assert np.asarray(domain.on_boundary(around.x)).all()
    assert np.asarray(base.on_boundary(np.asarray(around.x)[:, :-2])).all()
    for points in (inside, around):
        nu, k = (np.asarray(values) for values in FAMILY(points.x))
        assert nu.min() >= 0.5
        assert nu.max() <= 2
        assert abs(k).max() <= 1
        assert np.unique(np.round(nu, 9)).size > 1


def test_what_lies_beyond_the_ranges_is_outside():
    domain = SQUARE * FAMILY
    assert np.asarray(domain.contains([[0.5, 0.5, 1, 0], [0.5, 0.5, 3, 0], [0.5, 3, 1, 0]])).tolist() == [
        True,
        False,
        False,
    ]
    assert domain.bounds() == ((0, 0, 0.5, -1), (1, 2, 2, 1))


def test_values_by_name():
    z = jnp.array([0.1, 0.2, 0.7, -0.3])
    assert FAMILY(z).nu == z[2]
    assert FAMILY(z).k == z[3]
    u = lambda z: z[0] + 10 * z[2] + 100 * z[3]
    assert float(FAMILY.fix(u, k=1, nu=2)(jnp.array([1.0, 5.0]))) == 121
    with pytest.raises(ValueError, match=r"^k is from -1 to 1 in this family, got 3$"):
        FAMILY.fix(u, k=3, nu=2)
    gradient = jax.grad(lambda z: FAMILY(z).nu ** 2)(z)
    np.testing.assert_allclose(gradient, [0, 0, 1.4, 0])


def test_parts_and_times():
    domain = Interval(0, 2) * SQUARE * FAMILY
    for draw, t in ((domain.initial, 0), (domain.final, 2)):
        points = draw(40, rule="sobol")
        assert (points.x[:, 0] == t).all()
        assert float(points.measure) == pytest.approx(6)
    left = domain.boundary(40, key=KEY, faces=[(0, "lower")])
    np.testing.assert_array_equal(left.x[:, 1], 0)
    assert float(left.measure) == pytest.approx(2 * 2 * 3)
    assert (Interval(0, 2) * (SQUARE * FAMILY)).initial(9, key=KEY).x.shape == (9, 5)


def test_families_are_combined_through_their_bases():
    hole = Ball([0.5, 0.5], 0.2)
    domain = SQUARE * FAMILY - hole * FAMILY
    assert domain == (SQUARE - hole) * FAMILY
    points = domain.boundary(50, rule="gauss", part=hole)
    assert points.redraw(80, KEY).x.shape == (80, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Parameters(), "needs a range by name, for example"),
        (lambda: Parameters(nu=1), "a parameter is a name and a range, .* got nu=1"),
        (lambda: Parameters(nu=(1, 1)), "a parameter is a name and a range"),
        (lambda: Parameters(nu=(0, np.inf)), "nu must be finite"),
        (lambda: SQUARE * FAMILY * Parameters(a=(0, 1)), "takes parameters once"),
        (lambda: Interval(0, 1) * (Interval(0, 1) * SQUARE * FAMILY), "a domain without time"),
        (lambda: (SQUARE * FAMILY).initial(9, key=KEY), "has no time"),
        (lambda: SQUARE * FAMILY - SQUARE, "combine their bases first"),
        (lambda: FAMILY.fix(lambda z: z[0], nu=1), "a value of each parameter, nu, k, got nu"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
