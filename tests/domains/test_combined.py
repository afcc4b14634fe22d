"""Differences, unions and intersections: measures in closed form, parts of the boundary, and what vanishes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.domains import Ball, Box, Interval, Mesh, Polygon, SpaceTime, volumes
from natgrad.domains.rejection import Inside
from natgrad.experiment import fields
from natgrad.zoo.registry import Picture, scalar
from tests.domains.domain_cases import DOMAINS, ELL, GRID

PI = np.pi
KEY = jax.random.key(0)
SQUARE, HOLE, CUBE = Box([0, 0], [1, 1]), Ball([0.5, 0.5], 0.2), Box([0] * 3, [1] * 3)
NINE = SQUARE
for i in range(9):
    NINE = NINE - Ball([0.2 + 0.3 * (i // 3), 0.2 + 0.3 * (i % 3)], 0.07)
CASES = {  # domain, measure, measure of its boundary
    "hole": (SQUARE - HOLE, 1 - 0.04 * PI, 4 + 0.4 * PI),
    "quarter": (SQUARE - Ball([0, 0], 0.5), 1 - PI / 16, 3 + PI / 4),
    "side by side": (SQUARE | Box([1, 0], [2, 1]), 2, 6),
    "shelf": (SQUARE | Box([1, 0.25], [2, 0.5]), 1.25, 6),
    "touching hole": (SQUARE - Ball([0.5, 0.25], 0.25), 1 - PI / 16, 4 + PI / 2),
    "filled again": ((SQUARE - HOLE) | HOLE, 1, 4),
    "the same twice": (SQUARE & Box([0, 0], [1, 1]), 1, 4),
    "lens": (Ball([0, 0], 1) & Ball([1, 0], 1), 2 * PI / 3 - 3**0.5 / 2, 4 * PI / 3),
    "ring": (Ball([0, 0], 1) - Ball([0, 0], 0.5), 0.75 * PI, 3 * PI),
    "ell": (Box([0, 0], [2, 2]) - Box([1, 1], [2, 2]), 3, 8),
    "ell, a disc less": (Polygon(ELL) - Ball([1, 1], 0.5), 3 - 3 / 16 * PI, 8 - 1 + 3 / 4 * PI),
    "nine holes": (NINE, 1 - 9 * PI * 0.0049, 4 + 9 * PI * 0.14),
    "two parts": (SQUARE - Box([0.4, -1], [0.6, 2]), 0.8, 2 * 2.8),
    "mesh": (Mesh(*GRID) - Ball([0, 0], 0.5), 5 - PI / 16, 9 - 1 + PI / 4),
    "gap": (Interval(0, 2) - Interval(0.5, 1), 1.5, 4),
    "bubble": (CUBE - Ball([0.5] * 3, 0.3), 1 - 4 / 3 * PI * 0.027, 6 + 4 * PI * 0.09),
    "corner": (CUBE - Ball([0] * 3, 0.5), 1 - PI / 6 * 0.125, 6 - 3 * PI / 16 + PI / 8),
    "stack": (CUBE | Box([0, 0, 1], [0.5, 1, 2]), 1.5, 9),
    "dent": (CUBE - Box([0.25, 0.25, 0.5], [0.75, 0.75, 1]), 0.875, 7),
}
FLAT = [name for name, (domain, _, _) in CASES.items() if domain.dim == 2]


@pytest.mark.parametrize("name", CASES)
def test_measures(name):
    domain, measure, around = CASES[name]
    assert domain.measure == pytest.approx(measure, rel=1e-12)
    assert domain.boundary_measure == pytest.approx(around, rel=1e-12)


@pytest.mark.parametrize("name", FLAT)
def test_integrals_in_the_plane_are_as_exact_as_gauss_rules(name):
    """∫ x·n = d |Ω|, and ∫ div F = ∫ F·n for F = (eˣ cos y, 0)."""
    domain, measure, _ = CASES[name]
    inside, around = domain.interior(4000, rule="gauss"), domain.boundary(1500, rule="gauss")
    (x, w), (y, v, n) = (inside.x, inside.weights), (around.x, around.weights, around.normals)
    assert float(v @ jnp.sum(y * n, axis=1)) == pytest.approx(2 * measure, rel=1e-9)
    values = lambda x: np.exp(np.asarray(x[:, 0])) * np.cos(np.asarray(x[:, 1]))
    rough = 1e-4 if name in ("mesh", "touching hole") else 1e-8  # thin cells; eight cells of few points
    assert float(w @ values(x)) == pytest.approx(float(v @ (values(y) * np.asarray(n[:, 0]))), rel=rough, abs=rough)


@pytest.mark.parametrize(
    ("name", "n", "tol"), [("bubble", 2**13, 2e-3), ("corner", 2**13, 2e-3), ("hole", 2**11, 1e-3)]
)
def test_integrals_by_sobol_sequences(name, n, tol):
    domain, measure, _ = CASES[name]
    around = domain.boundary(n, rule="sobol")
    flux = float(around.weights @ jnp.sum(around.x * around.normals, axis=1))
    assert flux == pytest.approx(domain.dim * measure, rel=tol)


def test_slices_agree_with_an_estimate(monkeypatch):
    monkeypatch.setattr(volumes, "SAMPLES", 2**15)
    domain = (CUBE | Ball([1, 0.5, 0.5], 0.4)) - Ball([0.2, 0.3, 0.9], 0.35)
    for pieces in (Inside(domain), domain.boundary_pieces()):
        np.testing.assert_allclose(pieces.measures, volumes._estimated(pieces), atol=1e-2)


@pytest.mark.parametrize("rule", ["monte-carlo", "sobol", "gauss"])
def test_normals_of_a_hole_point_into_it(rule):
    points = (SQUARE - HOLE).boundary(40, key=KEY, rule=rule, part=HOLE)
    assert float(points.measure) == pytest.approx(0.4 * PI)
    np.testing.assert_allclose(np.asarray(points.x) + 0.2 * np.asarray(points.normals), 0.5, atol=1e-12)


def test_parts_by_primitive():
    other = Ball([0, 0], 0.3)
    plate = SQUARE - (HOLE | other)
    known = {SQUARE: 4 - 0.6, HOLE: 0.4 * PI, other: 0.15 * PI}
    for part, measure in known.items():
        assert float(plate.boundary(30, rule="gauss", part=part).measure) == pytest.approx(measure)
    assert float(plate.boundary(30, rule="gauss", part=[HOLE, SQUARE]).measure) == pytest.approx(3.4 + 0.4 * PI)
    assert float(plate.boundary(30, rule="gauss", part=HOLE | other).measure) == pytest.approx(0.55 * PI)
    left = plate.boundary(30, rule="gauss", part=SQUARE, faces=[(0, "lower")])
    assert float(left.measure) == pytest.approx(0.7)
    assert (left.x[:, 0] == 0).all()
    heat = Interval(0, 2) * plate
    assert float(heat.boundary(30, rule="gauss", part=HOLE).measure) == pytest.approx(0.8 * PI)


def test_names_of_a_mesh_that_is_cut():
    mesh = Mesh(*GRID, {"left": lambda x: x[0] == 0, "right": lambda x: x[0] == 2})
    cut = mesh - Ball([0, 0], 0.5)
    assert float(cut.boundary(9, rule="gauss", part="left").measure) == pytest.approx(2)
    with pytest.raises(ValueError, match=r"no primitive of .* has a boundary 'top'"):
        cut.boundary(9, rule="gauss", part="top")


def test_what_coincides_belongs_to_the_first():
    """The right half is cut away: its left edge bounds what is left, and the edges of both count once."""
    half = SQUARE - Box([0.5, 0], [1, 1])
    assert half.boundary_measure == pytest.approx(3)
    assert float(half.boundary(20, rule="gauss", part=SQUARE).measure) == pytest.approx(2)
    inner, edge, gone = np.array([[0.2, 0.2], [0.5, 0.5], [0.5, 0]]), [[0.5, 0.3]], [[1, 0.5], [0.7, 0], [0.6, 0.5]]
    assert np.asarray(half.contains(np.concatenate([inner, edge]))).all()
    assert np.asarray(half.on_boundary(edge)).all()
    assert not np.asarray(half.contains(gone)).any()
    assert not np.asarray(half.on_boundary(gone)).any()
    joined = SQUARE | Box([1, 0], [2, 1])
    assert np.asarray(joined.contains([[1, 0.5]])).all()
    assert np.asarray(joined.on_boundary([[1, 0.5], [1, 0]])).tolist() == [False, True]


def test_cylinders_over_one_interval_are_combined_through_their_bases():
    time = Interval(0, 1)
    heat = time * SQUARE - time * HOLE
    assert isinstance(heat, SpaceTime)
    assert heat.space == SQUARE - HOLE
    assert float(heat.initial(9, rule="gauss").measure) == pytest.approx(SQUARE.measure - HOLE.measure)


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize("name", ["dice", "time-plate"])
def test_monte_carlo_under_jit(name):
    """A fixed number of candidates serves every key; the points are those drawn outside jit."""
    domain = DOMAINS[name]
    inside, around = jax.jit(lambda key: (domain.interior(50, key=key), domain.boundary(50, key=key)))(KEY)
    for compiled, eager in ((inside, domain.interior(50, key=KEY)), (around, domain.boundary(50, key=KEY))):
        np.testing.assert_allclose(compiled.x, eager.x, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(compiled.weights, eager.weights, rtol=1e-12)
    assert np.unique(np.asarray(around.x), axis=0).shape == around.x.shape


def test_other_points_for_validation():
    for domain in (SQUARE - HOLE, CASES["bubble"][0]):
        points = domain.boundary(60, rule="sobol", part=domain.b)
        fresh = points.redraw(200, jax.random.key(1))
        np.testing.assert_allclose(fresh.measure, points.measure, rtol=1e-12)
        assert np.asarray(domain.b.on_boundary(fresh.x)).all()
    again = SQUARE - Ball([0.5, 0.5], 0.2)
    assert again == SQUARE - HOLE
    assert again.interior(9, key=KEY).origin == (SQUARE - HOLE).interior(9, key=KEY).origin


def test_a_picture_leaves_the_hole_out():
    plate = SQUARE - HOLE
    view = Picture((0.0, 0.0), (1.0, 1.0), ("x", "y"), scalar(None), inside=plate.contains)
    (panel,) = fields.row(view, {}, "u", "", lambda points: points[:, 0], None)
    x, y = np.meshgrid(panel.x, panel.y)
    np.testing.assert_array_equal(np.isnan(panel.values), np.hypot(x - 0.5, y - 0.5) < 0.2 - 1e-9)


def test_high_dimensions(monkeypatch):
    monkeypatch.setattr(volumes, "SAMPLES", 2**16)
    domain = Box([0] * 4, [1] * 4) - Ball([0.5] * 4, 0.4)
    volume = 1 - PI**2 / 2 * 0.4**4
    assert domain.measure == pytest.approx(volume, rel=3e-3)
    assert domain.boundary_measure == pytest.approx(8 + 2 * PI**2 * 0.4**3, rel=3e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: SQUARE - CUBE, "needs domains of one dimension, got .* in 2D and .* in 3D"),
        (lambda: SQUARE - Box([-1, -1], [2, 2]), "the difference of .* is empty: the second covers the first"),
        (lambda: SQUARE - Box([0, 0], [1, 1]), "is empty: the second covers the first"),
        (lambda: CUBE - Ball([0.5] * 3, 2), "is empty: the second covers the first"),
        (lambda: SQUARE & Box([1, 0], [2, 1]), "the intersection of .* is empty: they do not overlap"),
        (lambda: CUBE & Ball([5] * 3, 1), "is empty: they do not overlap"),
        (lambda: Interval(0, 1) * SQUARE - Interval(0, 2) * HOLE, "combine their bases first"),
        (lambda: Interval(0, 1) * SQUARE - CUBE, "combine their bases first"),
        (lambda: (SQUARE - HOLE).boundary(9, key=KEY, part=CUBE), "no part of the boundary, the parts are Box.*, Ball"),
        (lambda: (SQUARE - HOLE).boundary(9, key=KEY, part="hole"), "has a boundary 'hole'"),
        (lambda: (SQUARE - HOLE).boundary(9, key=KEY, faces=[(0, "lower")]), "faces= goes with part="),
        (lambda: (SQUARE | HOLE).boundary(9, key=KEY, part=HOLE), "no boundary of .* belongs to Ball"),
        (lambda: CASES["bubble"][0].interior(9, rule="gauss"), "in the plane, .*take rule='sobol'"),
        (lambda: (SQUARE - HOLE).contains(np.zeros(3)), "must have 2 coordinates"),
    ],
)
def test_refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_only_domains_are_combined():
    with pytest.raises(TypeError, match="unsupported operand"):
        SQUARE - 1
