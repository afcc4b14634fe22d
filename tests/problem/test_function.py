"""`ng.ResidualFunction`: any function of any pytree, its Gramian by every strategy and either mode."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.gramian import second_directional
from natgrad.problem import ResidualFunction
from tests.helpers import FAST, check_products, relative

T = jnp.linspace(0.0, 2.0, 12)
START = {"a": jnp.array([1.0, 0.3]), "b": (jnp.array(0.5), jnp.array([[2.0]]))}


def fn(theta, t, y):
    decay = theta["a"][0] * jnp.exp(-theta["b"][0] * t) + theta["a"][1] * jnp.sin(theta["b"][1][0, 0] * t)
    return {"fit": decay - y["values"], "prior": 0.1 * theta["a"]}


DATA = {"values": 2 * jnp.exp(-0.7 * T) + 0.5 * jnp.sin(1.5 * T)}


@pytest.fixture(params=[False, True], ids=["reverse", "forward"])
def problem(request):
    return ResidualFunction(fn, START, T, DATA, forward=request.param)


def flat(problem):
    theta, unravel = ravel_pytree(START)
    return theta, lambda theta: ravel_pytree(fn(unravel(theta), T, DATA))[0]


@pytest.mark.parametrize("strategy", ["assembled", "jacobian", "batched", "linearized"])
def test_the_gramian_is_that_of_the_jacobian(problem, strategy):
    theta, r = flat(problem)
    J = np.asarray(jax.jacrev(r)(theta))
    check_products(problem, J.T @ J, strategy, 5, tol=1e-12)


def test_values_and_curvature_are_the_functions_own(problem):
    theta, r = flat(problem)
    v = jnp.arange(1.0, 5.0)
    bend = jnp.einsum("rij,i,j->r", jax.hessian(r)(theta), v, v)
    assert relative(second_directional(problem, START, ravel_pytree(START)[1](v)), bend) < 1e-12
    np.testing.assert_allclose(problem.loss(START), 0.5 * jnp.sum(r(theta) ** 2), rtol=1e-14)
    new = jax.tree.map(lambda leaf: 1.1 * leaf, START)
    np.testing.assert_allclose(problem.difference(START, new), problem.loss(new) - problem.loss(START), rtol=1e-10)


def test_it_is_solved_like_any_problem():
    """By the library's own steps: the data are arguments of the compiled one."""
    problem = ResidualFunction(lambda theta, t, y: fn(theta, t, y)["fit"], START, T, DATA)
    solver = ng.FullNGD(damping=ng.damping.LevenbergMarquardt())
    params, state = problem.params, solver.init(problem, problem.params, jax.random.key(0))
    step = jax.jit(solver.step, compiler_options=FAST)
    for _ in range(15):
        params, state, _ = step(problem, params, state)
    np.testing.assert_allclose(params["a"], [2.0, 0.5], rtol=1e-7)
    np.testing.assert_allclose(params["b"][1], [[1.5]], rtol=1e-7)
    assert not jax.make_jaxpr(solver.step)(problem, params, state).consts  # nothing is baked in


def test_wrong_input():
    with pytest.raises(ValueError, match="takes a function of the parameters first, got dict"):
        ResidualFunction(START, fn)
    with pytest.raises(ValueError, match="must be real floating-point arrays, got int"):
        ResidualFunction(lambda n: 1.0 * n, jnp.arange(3))
    with pytest.raises(ValueError, match="must be real floating-point arrays, got none"):
        ResidualFunction(lambda n: jnp.ones(3), {})
    with pytest.raises(ValueError, match="must give real floating-point arrays, got complex128"):
        ResidualFunction(lambda x: 1j * x, jnp.ones(3))
