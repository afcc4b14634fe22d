"""Indices outside their array are found in a trace; those that are in it, and those nobody can know, are left alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.indices import trace

X = jax.ShapeDtypeStruct((2,), float)
TABLE = np.arange(5.0)

WRONG = {
    "a number": (lambda x: x[5], 5),
    "from the end": (lambda x: x[-5], -5),
    "an array": (lambda x: x[np.array([0, 5])], 5),
    "a JAX array": (lambda x: x[jnp.array([0, -3])], -3),
    "beside a new axis": (lambda x: x[None, 5], 5),
    "a row of a matrix": (lambda x: jnp.outer(x, x)[1, 2], 2),
    "in a derivative": (lambda x: jax.grad(lambda y: y[5] ** 2)(x), 5),
    "of a derivative": (lambda x: ng.gradient(lambda y: y[0] ** 2, x)[2], 2),
    "in a Laplacian": (lambda x: ng.laplacian(lambda y: y[3] ** 2, x), 3),
    "in a compiled function": (lambda x: jax.jit(lambda x, i: x[i])(x, 7), 7),
    "in a branch": (lambda x: jax.lax.cond(x[0] > 0, lambda x: x[3], lambda x: x[0], x), 3),
    "in a loop": (lambda x: jax.lax.scan(lambda c, _: (c + x[4], None), 0.0, x)[0], 4),
    "in a checkpoint": (lambda x: jax.checkpoint(lambda x: x[5])(x), 5),
    "of a table": (lambda x: jnp.asarray(TABLE)[jnp.array(7)] * x[0], 7),
}
RIGHT = {
    "numbers": lambda x: x[1] + x[-1] + x[-2],
    "slices": lambda x: jnp.sum(x[:5]) + jnp.sum(x[::-1][1:]),
    "arrays": lambda x: x[np.array([1, 0])] + x[jnp.arange(2)] + x[np.array([-2, -1])],
    "masks": lambda x: x[np.array([True, False])],
    "none": lambda x: x[np.array([], int)],
    "unpacking": lambda x: sum([*x]),
    "a dynamic index": lambda x: x[jnp.argmax(x)],
    "a loop": lambda x: jax.lax.fori_loop(0, 2, lambda i, c: c + x[i], 0.0),
    "a map": lambda x: jax.vmap(lambda i: x[i])(jnp.arange(2)),
    "what asks to be clipped": lambda x: x.at[5].get(mode="clip") + x.at[5].get(mode="fill"),
    "updates": lambda x: x.at[1].set(0.0).at[5].add(1.0, mode="drop"),
    "tables": lambda x: jnp.interp(x[0], jnp.linspace(0, 1, 5), TABLE),
    "searches": lambda x: jnp.asarray(TABLE)[jnp.searchsorted(jnp.linspace(0, 1, 5), x[0])],
    "matrices": lambda x: jnp.diag(jnp.outer(x, x)) + jnp.outer(x, x)[jnp.triu_indices(2)][:2],
    "second derivatives": lambda x: ng.hessian(lambda y: y[0] ** 2 * y[1], x)[1, 0] + ng.partial(jnp.prod, x, 0, 1),
    "rolls": lambda x: jnp.roll(x, 1)[0] + jnp.take(x, 1) + jnp.cross(jnp.append(x, 0.0), jnp.ones(3))[2],
}


@pytest.mark.parametrize("name", WRONG)
def test_found(name):
    fn, index = WRONG[name]
    assert f"the index {index} is outside an axis of length" in trace(fn, X)[1]


@pytest.mark.parametrize("name", RIGHT)
def test_no_false_alarm(name):
    out, wrong = trace(RIGHT[name], X)
    assert wrong == ""
    np.testing.assert_array_equal(out.shape, jax.eval_shape(RIGHT[name], X).shape)
