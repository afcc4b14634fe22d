"""`natgrad.interop.optax`: updates for `optax.apply_updates`, alone and in chains."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
import natgrad.interop.optax
from natgrad.optim.damping import LossPower, Spectral
from tests.helpers import FAST, poisson, relative

X = jnp.linspace(-1.0, 1.0, 25)


def model(params, x):
    return params["out"] @ jnp.tanh(params["w"] * x + params["b"])


def residual(params, x=X):
    return jax.vmap(partial(model, params))(x) - jnp.sin(3 * x)


def loss(params):
    return 0.5 * jnp.sum(residual(params) ** 2)


def start():
    w, b, out = jax.random.normal(jax.random.key(0), (3, 6))
    return {"w": w, "b": b, "out": out}


def train(optimizer, params, steps, residual=residual, loss=loss):
    """The loop of every Optax program."""
    state = optimizer.init(params)

    @partial(jax.jit, compiler_options=FAST)
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params), state, params, residual=residual)
        return optax.apply_updates(params, updates), state

    for _ in range(steps):
        params, state = step(params, state)
    return params, state


def test_regression():
    params, state = train(natgrad.interop.optax.natural_gradient(), start(), 40)
    adam, _ = train(optax.with_extra_args_support(optax.adam(1e-2)), start(), 400)
    assert loss(params) < 1e-3 * loss(adam)
    assert state.info.accepted
    np.testing.assert_allclose(state.info.loss + state.info.change, loss(params), rtol=1e-8)


def test_minibatches_and_none_for_the_gradient():
    """The residual may be another one at every update."""
    optimizer = natgrad.interop.optax.natural_gradient(ng.NystromNGD(12, damping=Spectral(1e10)))
    params, state = start(), optimizer.init(start())

    @partial(jax.jit, compiler_options=FAST)
    def step(params, state, x):
        updates, state = optimizer.update(None, state, params, residual=lambda params: {"fit": residual(params, x)})
        return optax.apply_updates(params, updates), state

    for seed in range(30):
        params, state = step(params, state, jax.random.choice(jax.random.key(seed), X, (20,), replace=False))
    assert loss(params) < 1e-2 * loss(start())


def test_a_pinn_takes_the_steps_of_the_library():
    """Through optax.apply_updates, from the problem itself or from residuals put together by hand."""
    problem, solver = poisson(), ng.FullNGD(damping=LossPower())  # λ̂₁ would depend on the key

    def stacked(params):
        found = problem.residuals(params)
        return {f.name: jnp.sqrt(f.weights)[:, None] * found[f.name] for f in problem.features}

    expected, state = problem.params, solver.init(problem, problem.params, jax.random.key(0))
    step = jax.jit(solver.step, compiler_options=FAST)
    for _ in range(3):
        expected, state, _ = step(problem, expected, state)
    assert problem.loss(expected) < problem.loss(problem.params)
    for residual in (problem, stacked):
        params, _ = train(natgrad.interop.optax.natural_gradient(solver), problem.params, 3, residual, problem.loss)
        assert relative(ravel_pytree(params)[0], ravel_pytree(expected)[0]) < 1e-6


def test_a_pinn_with_the_default_optimizer():
    problem = poisson()
    params, _ = train(natgrad.interop.optax.natural_gradient(), problem.params, 60, problem, problem.loss)
    assert problem.loss(params) < 1e-2 * problem.loss(problem.params)


def test_scale_by_gramian_in_a_chain():
    """−½ (JᵀJ + μI)⁻¹ (∇L + λθ), against the dense solution."""
    rule, params = LossPower(scale=1e-2), start()
    ours = natgrad.interop.optax.scale_by_gramian(damping=rule)
    chain = optax.chain(optax.add_decayed_weights(0.1), ours, optax.scale(-0.5))
    update = jax.jit(partial(chain.update, residual=residual), compiler_options=FAST)
    updates, state = update(jax.grad(loss)(params), chain.init(params), params)
    theta, unravel = ravel_pytree(params)
    J = jax.jacrev(lambda t: residual(unravel(t)))(theta)
    gradient = J.T @ residual(params) + 0.1 * theta
    expected = -0.5 * jnp.linalg.solve(J.T @ J + 1e-2 * loss(params) ** 2 * jnp.eye(theta.size), gradient)
    assert relative(ravel_pytree(updates)[0], expected) < 1e-9
    assert state[1].iteration == 1


def test_scale_by_gramian_trains_with_momentum_and_a_schedule():
    parts = natgrad.interop.optax.scale_by_gramian(ng.PCG(ng.RowFactor(max_rank=12)), LossPower(scale=1e-2))
    chain = optax.chain(parts, optax.trace(0.3), optax.scale_by_learning_rate(optax.linear_schedule(0.1, 0.5, 20)))
    params, _ = train(chain, start(), 60)
    assert loss(params) < 1e-2 * loss(start())


@pytest.mark.parametrize("make", [natgrad.interop.optax.natural_gradient, natgrad.interop.optax.scale_by_gramian])
def test_what_is_missing_is_told(make):
    optimizer, params = make(), start()
    state = optimizer.init(params)
    with pytest.raises(ValueError, match="need the parameters"):
        optimizer.update(params, state, residual=residual)
    with pytest.raises(ValueError, match="takes residual=…, a function of the parameters or a problem, got nothing"):
        optimizer.update(params, state, params)
