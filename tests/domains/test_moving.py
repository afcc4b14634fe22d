"""Points that move: what may be asked of a domain, and points drawn anew under jit."""

import jax
import numpy as np
import pytest

import natgrad as ng
from natgrad.domains import Ball, Box, Interval, Polygon

KEY = jax.random.key(0)
CYLINDER = Interval(1, 3) * Box([0, 0], [1, 2])
ELL = Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
SETS = {
    "box": Box([0, 0], [1, 2]).interior,
    "faces": Box([0, 0], [1, 2]).boundary,
    "ball": Ball([1, 0, 0], 2).interior,
    "sphere": Ball([1, 0, 0], 2).boundary,
    "polygon": ELL.interior,
    "edges": ELL.boundary,
    "cylinder": CYLINDER.interior,
    "side": CYLINDER.boundary,
    "bottom": CYLINDER.initial,
    "top": CYLINDER.final,
}


@pytest.mark.parametrize("rule", ["monte-carlo", "sobol"])
@pytest.mark.parametrize("name", SETS)
def test_others_for_each_key_under_jit(name, rule):
    points = SETS[name](64, key=KEY, rule=rule, fresh=True)
    assert points.moving
    (part,) = points.origin
    draw = jax.jit(lambda key: part.anew(64, key))
    one, other = draw(KEY), draw(jax.random.key(1))
    assert not {tuple(x) for x in np.asarray(one.x)} & {tuple(x) for x in np.asarray(other.x)}
    np.testing.assert_allclose(one.x, part.anew(64, KEY).x, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.measure, points.measure, rtol=1e-12)
    assert (one.normals is None) == (points.normals is None)
    integral = lambda p: float(p.integrate(np.cos(np.asarray(p.x)).prod(axis=1) ** 2))
    assert integral(one) == pytest.approx(integral(SETS[name](4_096, key=KEY)), rel=0.2 if rule == "sobol" else 0.5)


def test_a_shifted_sequence_is_as_even_as_the_first():
    """Each interval of length 1/64 holds two of 128 points or one less or more, in all coordinates."""
    (part,) = Box([0, 0], [1, 1]).interior(128, key=KEY, rule="sobol", fresh=True).origin
    for seed in range(3):
        x = np.asarray(part.anew(128, jax.random.key(seed)).x)
        for axis in range(2):
            counts = np.histogram(x[:, axis], bins=64, range=(0, 1))[0]
            assert counts.min() >= 1
            assert counts.max() <= 3


def test_parts_keep_their_own_policy():
    square = Box([0, 0], [1, 1])
    both = square.interior(5, key=KEY) + square.interior(7, key=KEY, adaptive=ng.ByResidual())
    assert [part.policy for part in both.origin] == [None, ng.ByResidual()]
    assert both.moving
    assert not square.interior(5, key=KEY).moving
    again = square.interior(5, key=KEY) + square.interior(7, key=KEY, adaptive=ng.ByResidual())
    assert hash(both.origin) == hash(again.origin)
    assert both.origin == again.origin


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"fresh": True, "rule": "gauss"}, "a Gauss rule has no other points, and fresh ones take rule='monte-carlo'"),
        ({"adaptive": ng.ByResidual(), "rule": "gauss"}, "a Gauss rule has no other points, and adaptive ones"),
        ({"fresh": 1}, "fresh is True or False, got 1"),
        ({"adaptive": True}, "adaptive takes a rule such as ng.ByResidual.., got True"),
        ({"fresh": True, "adaptive": ng.ByResidual()}, "either fresh at every step or adaptive"),
    ],
)
def test_refused_in_one_line(how, message):
    key = {} if how.get("rule") == "gauss" else {"key": KEY}
    for draw in (CYLINDER.interior, CYLINDER.boundary, CYLINDER.initial, CYLINDER.final, ELL.boundary):
        with pytest.raises(ValueError, match=message) as caught:
            draw(9, **key, **how)
        assert "\n" not in str(caught.value)


def test_the_ends_of_an_interval_are_all_there_are():
    with pytest.raises(ValueError, match="a set of single points has no others: leave fresh out"):
        Interval(0, 1).boundary(fresh=True)


@pytest.mark.parametrize("option", [{"every": 0}, {"power": 0.0}, {"floor": 0.0}, {"pool": 1.5}])
def test_options_are_in_their_ranges(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be a positive"):
        ng.ByResidual(**option)
