"""Loops over chunks: all is covered once, the last chunk begins sooner, and what repeats is told."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend import chunks


@pytest.mark.parametrize(("n", "size"), [(1, 1), (6, 3), (7, 3), (8, 3), (5, 5), (9, 2)])
def test_every_member_is_new_once(n, size):
    def count(first, repeated, seen):
        return seen.at[first + jnp.arange(size)].add(jnp.arange(size) >= repeated)

    np.testing.assert_array_equal(chunks.cover(n, size, count, jnp.zeros(n, int)), np.ones(n))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_are_stacked_along_an_axis(axis):
    X = jnp.asarray(np.random.default_rng(0).standard_normal((7, 7)))
    part = lambda first: jnp.sin(jax.lax.dynamic_slice_in_dim(X, first, 3, axis % 2))
    np.testing.assert_array_equal(chunks.stack(7, 3, part, axis), jnp.sin(X))


def test_what_a_stack_depends_on_has_derivatives():
    X = jnp.asarray(np.random.default_rng(0).standard_normal((7, 2)))
    fn = lambda X: jnp.sum(chunks.stack(7, 3, lambda first: jax.lax.dynamic_slice_in_dim(X, first, 3) ** 2))
    np.testing.assert_allclose(jax.grad(fn)(X), 2 * X, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 10, 64, 65])
@pytest.mark.parametrize("most", [1, 7, 64])
def test_chunks_are_few_and_even(n, most):
    size = chunks.even(n, most)
    assert size <= most
    assert -(-n // size) == -(-n // most) or (size - 1) * -(-n // most) < n
    assert -(-n // size) <= -(-n // most)


@pytest.mark.parametrize("most", [2, 3, 10])
def test_rows_and_columns_go_some_at_a_time(most):
    X = jnp.asarray(np.random.default_rng(0).standard_normal((7, 4)))
    fn = lambda x: jnp.append(jnp.cumsum(x), x[0])
    np.testing.assert_array_equal(chunks.by_rows(fn, X, most), jax.vmap(fn)(X))
    np.testing.assert_array_equal(chunks.by_columns(fn, X, most), jax.vmap(fn, 1, 1)(X))
