"""Fourier series with coefficients that a network gives: the formula, the start, and an equation in time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

KEY = jax.random.key(0)


def filled(u):
    """The same module with parameters drawn at random."""
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), u)


def test_it_is_the_formula():
    u = filled(ng.FourierSeries((None, 3.0), modes=2, width=4, key=KEY))
    hidden, last = u.network.layers
    t, x = 0.4, 1.1
    c = last.weight @ np.sin(hidden.weight @ np.array([t]) + hidden.bias) + last.bias
    phase = 2 * np.pi * np.array([1, 2]) * x / 3
    np.testing.assert_allclose(u(jnp.array([t, x])), c @ np.r_[1, np.cos(phase), np.sin(phase)], rtol=1e-13)


def test_waves_beyond_the_knee_are_low():
    """1/(1 + (k/K)⁴) of what they are without."""
    u, plain = (filled(ng.FourierSeries((None, 3.0), modes=3, width=4, knee=knee, key=KEY)) for knee in (2.0, None))
    x = jnp.array([0.4, 1.1])
    height = 1 / (1 + (np.arange(1, 4) / 2) ** 4)
    np.testing.assert_allclose(u.basis(x), plain.basis(x) * np.r_[1, height, height], rtol=1e-14)


def test_several_periods_have_all_products():
    """Two fields in a plane: every product of waves can be had, and nothing else changes with the place."""
    u = filled(ng.FourierSeries((2.0, None, 3.0), modes=(2, None, 1), width=3, out_size=2, key=KEY))
    assert u.network.out_size == 2 * 5 * 3
    x = np.random.default_rng(1).uniform(size=(40, 3)) * [2, 0, 3] + [0, 0.3, 0]
    values = np.asarray(jax.vmap(u)(x))
    a, b = (2 * np.pi * x[:, i] / period for i, period in ((0, 2), (2, 3)))
    first = np.stack([np.ones(40), *(wave(k * a) for k in (1, 2) for wave in (np.cos, np.sin))])
    second = np.stack([np.ones(40), np.cos(b), np.sin(b)])
    basis = (first[:, None] * second).reshape(15, 40)
    coefficients, *_ = np.linalg.lstsq(basis.T, values, rcond=None)
    np.testing.assert_allclose(basis.T @ coefficients, values, atol=1e-10)
    assert np.abs(coefficients).min() > 1e-3
    np.testing.assert_allclose(u(x[0] + np.array([2.0, 0, -3.0])), values[0], rtol=1e-10)


def test_it_starts_at_zero_whatever_the_key():
    for seed in (0, 1):
        u = ng.FourierSeries((None, 1.0), modes=3, width=4, out_size=2, key=jax.random.key(seed))
        assert np.all(np.asarray(u(jnp.array([0.2, 0.7]))) == 0)
    assert (
        ng.FourierSeries((None, 1.0), modes=3, width=4, key=KEY, dtype=jnp.float32)(jnp.ones(2, "float32")).dtype
        == jnp.float32
    )


def test_an_equation_in_time_is_solved_within_a_few_steps():
    """u_t = u_xx/4 on a circle, with six features of time for three modes."""
    exact = lambda z: jnp.exp(-z[0] / 4) * jnp.cos(z[1]) + 0.5 * jnp.exp(-z[0]) * jnp.sin(2 * z[1])
    tube = ng.Interval(0, 1) * ng.Interval(0, 2 * np.pi)
    inside, start = jax.random.split(KEY)
    problem = ng.LeastSquares(
        ng.FourierSeries((None, 2 * np.pi), modes=3, width=6, key=KEY),
        pde=ng.Residual(lambda u, z: ng.partial(u, z, 0) - ng.partial(u, z, 1, 1) / 4, tube.interior(300, key=inside)),
        initial=ng.Residual(lambda u, z: u(z) - exact(z), tube.initial(40, key=start)),
        exact=exact,
    )
    solution = ng.solve(problem, ng.Polish(), 15, evaluate_every=15, progress=False)
    assert solution.errors["h1"] < 2e-6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"modes": 0}, "modes must be a positive integer"),
        ({"knee": -1.0}, "knee must be"),
        ({"modes": (2, 3)}, r"modes must be a number, or one for each period of \(None, 1.0\), got \(2, 3\)"),
        ({"periods": (None, -1.0)}, "periods must be .*, got"),
        ({"periods": (None, None)}, "periods must have None for the coordinates that the coefficients depend on"),
        ({"periods": (1.0,)}, "periods must have None for the coordinates that the coefficients depend on"),
        ({"width": 0}, "width must be a positive integer, got 0"),
        ({"frequency": 0.0}, "frequency must be"),
    ],
)
def test_misuse_is_named(options, words):
    with pytest.raises(ValueError, match=words):
        ng.FourierSeries(**{"periods": (None, 1.0), "modes": 2, "width": 3, "key": KEY, **options})
