"""A branch that problems which step together take as one."""

import jax
import jax.numpy as jnp
import pytest

from natgrad.backend.xla import jointly


def chosen(index, x):
    return jax.lax.switch(jointly(index), [lambda: x, lambda: 2 * x, lambda: 3 * x])


def test_alone_each_takes_its_own_branch():
    assert [float(chosen(jnp.asarray(i), 1.0)) for i in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(("indices", "factor"), [([0, 0], 1), ([0, 1], 2), ([2, 0], 3)])
def test_together_all_take_the_one_of_the_largest_index(indices, factor):
    assert jax.vmap(chosen)(jnp.asarray(indices), jnp.ones(2)).tolist() == [factor, factor]


def test_one_branch_runs_and_not_all():
    of_all = jax.make_jaxpr(jax.vmap(chosen))(jnp.arange(2), jnp.ones(2))
    assert [str(e.primitive) for e in of_all.eqns].count("cond") == 1


def test_a_condition_that_is_the_same_for_all():
    two = jax.vmap(chosen, (None, 0))(jnp.asarray(1), jnp.ones(3))
    assert two.tolist() == [2, 2, 2]
