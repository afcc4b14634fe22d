"""Poisson in d dimensions: the presets have the sizes of the literature, and fresh points when asked."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.networks import MLP, num_parameters
from natgrad.zoo import get

BENCHMARK = get("poisson_nd")


@pytest.mark.parametrize(("preset", "parameters"), [("5d", 10_065), ("10d", 118_145), ("100d", 1_325_057)])
def test_the_presets_have_the_networks_of_the_literature(preset, parameters):
    options = BENCHMARK.preset(preset).options
    assert num_parameters(MLP(options["dim"], 1, options["width"], key=jax.random.key(0))) == parameters
    assert options["fresh"]


@pytest.mark.parametrize("fresh", [False, True])
def test_points_are_fresh_where_asked(fresh):
    problem = BENCHMARK.problem(jax.random.key(0), dim=3, width=4, depth=1, interior=8, boundary=6, fresh=fresh)
    assert set(problem.moving) == ({"pde", "boundary"} if fresh else set())
    x, source = problem.features[0].inputs
    np.testing.assert_allclose(source, jnp.pi**2 * jnp.sum(jnp.cos(jnp.pi * x), axis=1), rtol=1e-12)
