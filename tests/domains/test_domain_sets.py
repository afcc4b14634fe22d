"""What holds for every domain, every set and every rule."""

import copy

import jax
import numpy as np
import pytest

from tests.domains.domain_cases import DOMAINS, NO_GAUSS, SPACES, SPACETIMES, integral

RULES = ["monte-carlo", "sobol", "gauss"]
CASES = [(name, rule) for name in DOMAINS for rule in RULES if not (rule == "gauss" and name in NO_GAUSS)]
KEY = jax.random.key(7)


def as_numpy(points):
    """The same points with numpy leaves: operations on them compile nothing."""
    return jax.tree.map(np.asarray, points)


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_interior(name, rule):
    domain = DOMAINS[name]
    points = domain.interior(90, key=KEY, rule=rule)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(points))
    points = as_numpy(points)
    assert points.x.shape == (len(points), domain.dim)
    assert points.x.dtype == points.weights.dtype == np.float64
    assert points.normals is None
    assert rule == "gauss" or len(points) == 90
    assert (points.weights > 0).all()
    np.testing.assert_allclose(points.weights.sum(), domain.measure, rtol=1e-13)
    assert np.all(domain.contains(points.x, tol=0))
    assert not np.any(domain.on_boundary(points.x))


@pytest.mark.parametrize(("name", "rule"), CASES)
def test_boundary(name, rule):
    domain = DOMAINS[name]
    points = as_numpy(domain.boundary(90, key=KEY, rule=rule))
    assert points.x.shape == points.normals.shape == (len(points), domain.dim)
    assert domain.dim == 1 or rule == "gauss" or len(points) == 90
    assert (points.weights > 0).all()
    np.testing.assert_allclose(points.weights.sum(), domain.boundary_measure, rtol=1e-13)
    assert np.all(domain.on_boundary(points.x))
    assert np.all(domain.contains(points.x))
    np.testing.assert_allclose(np.linalg.norm(points.normals, axis=1), 1, rtol=1e-13)
    assert not np.any(domain.contains(points.x + 1e-6 * points.normals))
    assert np.all(domain.contains(points.x - 1e-6 * points.normals))
    if name in SPACETIMES:
        assert (points.normals[:, 0] == 0).all()


@pytest.mark.parametrize(("name", "rule"), [case for case in CASES if case[0] in SPACETIMES])
def test_initial_and_final(name, rule):
    domain = DOMAINS[name]
    for draw, t in ((domain.initial, 0.5), (domain.final, 2.0)):
        points = as_numpy(draw(90, key=KEY, rule=rule))
        assert (points.x[:, 0] == t).all()
        assert np.all(domain.contains(points.x))
        assert points.normals is None
        np.testing.assert_allclose(points.weights.sum(), domain.space.measure, rtol=1e-13)


@pytest.mark.parametrize("name", sorted(set(DOMAINS) - NO_GAUSS))
def test_divergence_theorem(name):
    """∫ div F = ∫ F·ν for Fᵢ = cᵢ τ (s² yᵢ + 1 + yᵢ³), with s = Σ i yᵢ and τ = t² in space-time, else 1."""
    domain = DOMAINS[name]
    timed = name in SPACETIMES
    curved = "plate" in name or "keyhole" in name  # cells between arcs: no polynomials, and many
    n = (200 if curved else 8) * (3 if "box5" in name else 4) ** domain.dim
    inside, around = (as_numpy(draw(n, rule="gauss")) for draw in (domain.interior, domain.boundary))
    i = np.arange(1, domain.dim - timed + 1)
    c = np.sin(i)

    def split(points):
        y = points.x[:, timed:]
        return points.x[:, :1] ** 2 if timed else 1.0, (y @ i)[:, None], y

    tau, s, y = split(inside)
    divergence = np.sum(c * tau * (2 * s * i * y + s**2 + 3 * y**2), axis=1)
    tau, s, y = split(around)
    flux = np.sum(c * tau * (s**2 * y + 1 + y**3) * around.normals[:, timed:], axis=1)
    assert abs(integral(inside, divergence)) > 1e-3
    np.testing.assert_allclose(integral(inside, divergence), integral(around, flux), rtol=1e-11)


@pytest.mark.parametrize("name", [*SPACES, "time-segment", "time-brick", "time-ball3", "time-ell"])
def test_random_rules_converge(name):
    """Monte Carlo within 5 standard errors of Sobol with many points, on interiors and boundaries."""
    domain = DOMAINS[name]

    def f(points):
        x = np.asarray(points.x)
        return np.cos(x @ np.sin(np.arange(1, domain.dim + 1))) + x[:, 0]

    for draw in (domain.interior, domain.boundary):
        precise, rough = draw(2**11, rule="sobol"), draw(1000, key=jax.random.key(3))
        error = abs(integral(rough, f(rough)) - integral(precise, f(precise)))
        measure = float(np.sum(rough.weights))
        assert error <= 5 * np.std(f(rough)) * measure / np.sqrt(len(rough)) + 1e-12


@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("square", 4),
        ("brick", 4),
        ("box5", 4),
        ("disc", 4),
        ("ball3", 4),
        ("ball5", 2),
        ("ell", 4),
        ("time-disc", 4),
    ],
)
def test_sobol_beats_monte_carlo(name, factor):
    """For a smooth integrand the root mean square error over seeds is several times smaller."""
    domain = DOMAINS[name]

    def estimate(n, seed, rule):
        points = domain.interior(n, key=jax.random.key(seed), rule=rule)
        return integral(points, np.cos(np.asarray(points.x).sum(axis=1)))

    exact = estimate(2**15, 99, "sobol")

    def error(rule):
        return np.sqrt(np.mean([(estimate(1000, seed, rule) - exact) ** 2 for seed in range(8)]))

    assert error("sobol") < error("monte-carlo") / factor


@pytest.mark.parametrize("name", DOMAINS)
def test_keys_decide(name):
    domain = DOMAINS[name]
    for rule in ("monte-carlo", "sobol"):
        one, again, other = (np.asarray(domain.interior(90, key=jax.random.key(s), rule=rule).x) for s in (1, 1, 2))
        assert (one == again).all()
        assert not (one == other).any(axis=1).all()
    np.testing.assert_array_equal(*(domain.interior(33, rule="sobol").x for _ in range(2)))


@pytest.mark.parametrize("name", ["brick", "ball5", "time-ell"])
def test_monte_carlo_under_jit(name):
    """One compilation draws fresh points for every key, the same as outside jit up to round-off."""
    domain = DOMAINS[name]
    traces = []

    @jax.jit
    def draw(key):
        traces.append(key)
        inside, around = domain.interior(90, key=key), domain.boundary(90, key=key)
        return inside, around, domain.contains(inside.x) & domain.on_boundary(around.x)

    for seed in range(3):
        key = jax.random.key(seed)
        inside, around, right = draw(key)
        assert np.all(right)
        for compiled, eager in (
            (inside, domain.interior(90, key=key)),
            (around, domain.boundary(90, key=key)),
        ):
            np.testing.assert_allclose(compiled.x, eager.x, rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(compiled.weights, eager.weights, rtol=1e-14)
    assert len(traces) == 1
    with pytest.raises(ValueError, match="outside jit only"):
        jax.jit(lambda key: domain.interior(8, key=key, rule="sobol"))(key)


@pytest.mark.parametrize("name", ["ball5", "crown", "time-brick", "plate", "dice", "grid"])
def test_single_precision(name):
    domain = DOMAINS[name]
    with jax.enable_x64(False):
        for rule in RULES:
            if rule == "gauss" and name in NO_GAUSS:
                continue
            inside, around = (draw(90, key=KEY, rule=rule) for draw in (domain.interior, domain.boundary))
            assert {leaf.dtype for leaf in jax.tree.leaves((inside, around))} == {np.dtype("float32")}
            assert np.all(domain.contains(inside.x))
            assert np.all(domain.on_boundary(around.x))
            np.testing.assert_allclose(np.sum(inside.weights), domain.measure, rtol=1e-5)
            np.testing.assert_allclose(np.sum(around.weights), domain.boundary_measure, rtol=1e-5)


def test_domains_are_static_and_hashable():
    for domain in DOMAINS.values():
        assert jax.tree.leaves(domain) == []
        assert copy.copy(domain) == domain
        assert hash(copy.copy(domain)) == hash(domain)
        assert "\n" not in repr(domain)


def test_monte_carlo_is_uniform_over_the_faces():
    brick = DOMAINS["brick"]
    points = as_numpy(brick.boundary(20_000, key=jax.random.key(5)))
    for axis, area in enumerate((1.5, 6.0, 1.0)):
        for sign in (-1, 1):
            share = np.mean(points.normals[:, axis] == sign)
            expected = area / brick.boundary_measure
            assert abs(share - expected) < 5 * np.sqrt(expected / 20_000)


def test_sobol_points_follow_the_measures_of_the_pieces():
    points = as_numpy(DOMAINS["brick"].boundary(100, rule="sobol"))
    counts = [int(np.sum(points.normals[:, a] == s)) for a in range(3) for s in (-1, 1)]
    assert counts == [9, 9, 35, 35, 6, 6]
    assert len(DOMAINS["brick"].boundary(1, rule="sobol")) == 1
