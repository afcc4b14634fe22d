"""Rows of the Jacobian are made some points at a time, and sums over points in parts."""

import jax
import jax.numpy as jnp
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.backend import tuning
from natgrad.gramian import base
from tests.helpers import FAST, relative


@pytest.mark.parametrize("n", [1, 3, 7, 65])
def test_any_number_of_points_makes_the_rows_of_reverse_mode(n, monkeypatch):
    """Chunks of three points at most, where the last would be short; two components, so that rows are not points."""
    monkeypatch.setattr(tuning, "JACOBIAN_POINTS", 3)
    monkeypatch.setattr(tuning, "JACOBIAN_NUMBERS", 1)
    keys = jax.random.split(jax.random.key(0), 2)
    points = ng.Box([0, 0], [1, 1]).interior(n, key=keys[1])
    residual = lambda u, x: jnp.stack([ng.laplacian(u, x), u(x)])
    problem = ng.LeastSquares(ng.MLP(2, 1, 4, 1, key=keys[0]), pde=ng.Residual(residual, points))
    (block,) = problem.features
    rows = lambda p: base.weighted_jacobian(p, block, p.params, block.inputs, block.weights)
    flat, unravel = ravel_pytree(problem.params)
    expected = jax.jacrev(lambda v: base.weighted_features(problem, unravel(v), problem.params))(flat)
    assert relative(jax.jit(rows, compiler_options=FAST)(problem), expected) < 1e-13
    in_parts = jax.jacrev(lambda v: base.weighted_features(problem, unravel(v), problem.params, parts=4))(flat)
    assert relative(in_parts, expected) < 1e-13
