"""Rows of the Jacobian made some points at a time, in one array or in two."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.gramian import base, stored
from tests.helpers import FAST, relative


def problem(n: int) -> ng.LeastSquares:
    """Two components a point, so that rows are not points."""
    keys = jax.random.split(jax.random.key(0), 2)
    points = ng.Box([0, 0], [1, 1]).interior(n, key=keys[1])
    residual = lambda u, x: jnp.stack([ng.laplacian(u, x), u(x)])
    return ng.LeastSquares(ng.MLP(2, 1, 4, 1, key=keys[0]), pde=ng.Residual(residual, points))


@pytest.mark.parametrize(("n", "parts"), [(1, 1), (8, 1), (2, 2), (7, 2), (65, 2)])
def test_chunks_of_any_number_of_points_make_the_same_rows(n, parts, monkeypatch):
    """A last chunk that would be short begins sooner; the two parts differ by a point where n is odd."""
    monkeypatch.setattr(base, "CHUNK", 3)
    monkeypatch.setattr(base, "ENTRIES", 1)
    p = problem(n)
    (block,) = p.features
    rows = lambda p: base.weighted_jacobian(p, block, p.params, block.inputs, block.weights, parts=parts)
    arrays = jax.jit(rows, compiler_options=FAST)(p)
    assert len(arrays) == parts
    flat, unravel = ravel_pytree(p.params)
    expected = jax.jacrev(lambda v: base.weighted_features(p, unravel(v), p.params))(flat)
    assert relative(np.concatenate(arrays), expected) < 1e-13


def test_a_large_block_is_in_two_arrays_and_its_products_are_those_of_one(monkeypatch):
    one = ng.gramian(problem(33), strategy="jacobian")
    monkeypatch.setattr(stored, "LARGE", 1)
    two = ng.gramian(problem(33), strategy="jacobian")
    assert [len(A) for A in one.blocks] == [66]
    assert [len(A) for A in two.blocks] == [32, 34]
    assert relative(two.as_matrix(), one.as_matrix()) < 1e-13
    assert relative(two.loss_gradient(), one.loss_gradient()) < 1e-13
