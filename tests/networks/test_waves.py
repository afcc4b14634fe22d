"""Sums of waves: the formula, the start, and that natural gradients find frequencies that are not among those."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.networks.waves import evenly

KEY = jax.random.key(0)


def test_it_is_the_formula():
    u, rng, x = ng.Waves(2, 3, 5, up_to=4.0, key=KEY), np.random.default_rng(0), np.array([0.3, -0.7])
    assert ng.num_parameters(u) == 5 * (2 + 2 * 3)
    leaves = [rng.normal(size=leaf.shape) for leaf in jax.tree.leaves(u)]
    u = jax.tree.unflatten(jax.tree.structure(u), leaves)
    k, a, b = leaves
    np.testing.assert_allclose(u(x), a @ np.sin(k @ x) + b @ np.cos(k @ x), rtol=1e-13)
    assert ng.Waves(2, 1, 5, up_to=4.0, key=KEY)(x).shape == ()


def test_it_starts_at_zero_with_frequencies_that_cover_their_box():
    """No cell of the half box is far from a frequency: of n cells of equal size the farthest is three sides away."""
    u = ng.Waves(2, 1, 200, up_to=(6.0, 30.0), key=KEY)
    assert float(u(jnp.ones(2))) == 0
    k = np.asarray(u.frequencies) / [6.0, 30.0]
    assert k[:, 0].min() >= 0
    assert np.abs(k).max() <= 1
    places = np.stack(np.meshgrid(np.linspace(0, 1, 40), np.linspace(-1, 1, 80)), axis=-1).reshape(-1, 2)
    nearest = np.linalg.norm(places[:, None] - k, axis=-1).min(axis=1)
    side = np.sqrt(2 / 200)
    assert nearest.max() < 1.5 * side
    rows = np.linalg.norm(k[:, None] - k, axis=-1) + np.eye(200)
    assert rows.min() > 0.3 * side


def test_the_start_follows_from_the_key():
    draw = lambda key, **kind: np.asarray(ng.Waves(2, 1, 8, up_to=1.0, key=key, **kind).frequencies)
    np.testing.assert_array_equal(draw(KEY), draw(jax.random.key(0)))
    assert np.abs(draw(KEY) - draw(jax.random.key(1))).max() > 0.01
    assert draw(KEY, dtype=jnp.float32).dtype == np.float32


@pytest.mark.parametrize("d", [1, 2, 5])
def test_points_are_even_in_any_dimension(d):
    """The mean of cos 2πx over 512 of them is far below that of independent ones, 1/√1024."""
    x = evenly(512, np.linspace(0.1, 0.7, d))
    assert np.abs(np.cos(2 * np.pi * x).mean(axis=0)).max() < 4e-3


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_polish_finds_frequencies_to_the_last_digit(seed):
    """Poisson's equation with waves sin 4πx sin 3πy: once the frequencies are found, nothing is left."""
    square, rates = ng.Box([-1, -1], [1, 1]), np.array([4 * np.pi, 3 * np.pi])
    exact = lambda x: jnp.prod(jnp.sin(rates * x))
    net, inside, rim = jax.random.split(jax.random.key(seed), 3)
    problem = ng.LeastSquares(
        ng.Waves(2, 1, 64, up_to=1.1 * 4 * np.pi, key=net),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) / sum(rates**2) + exact(x), square.interior(640, key=inside, rule="sobol")
        ),
        boundary=ng.Residual(lambda u, x: u(x), square.boundary(160, key=rim, rule="sobol")),
        exact=exact,
    )
    solution = ng.solve(problem, ng.Polish(), 40, target_error=1e-12, evaluate_every=5, progress=False)
    assert solution.errors["l2"] < 1e-12


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: ng.Waves(2, 1, 0, up_to=1.0, key=KEY), "width must be a positive integer"),
        (lambda: ng.Waves(2, 1, 4, up_to=0.0, key=KEY), "up_to must be .*, got 0"),
        (lambda: ng.Waves(2, 1, 4, up_to=(1.0, 2.0, 3.0), key=KEY), "up_to must be a number, or one for each of 2"),
        (lambda: ng.Waves(2, 1, 4, up_to=1.0, key="a"), "key must be a JAX random key"),
        (
            lambda: ng.Waves(2, 1, 4, up_to=1.0, key=KEY)(np.ones((5, 2))),
            r"one point of shape \(2,\), got \(5, 2\); use",
        ),
    ],
)
def test_misuse_is_named(build, words):
    with pytest.raises(ValueError, match=words):
        build()
