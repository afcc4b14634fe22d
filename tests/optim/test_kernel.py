"""The kernel form against the dense system it stands for, and training with it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.gramian import second_directional
from natgrad.gramian.base import weighted_features
from natgrad.optim.direction import System
from natgrad.optim.kernel import Kernel, suits
from tests.helpers import FAST, energy, flow, poisson, relative

PROBLEMS = {"scalar": lambda: poisson(points=17, boundary=9), "vector": flow}
MU = 1e-3


def jacobian(problem):
    theta, unravel = ravel_pytree(problem.params)
    return np.asarray(jax.jacobian(lambda t: weighted_features(problem, unravel(t), problem.params))(theta))


def prepared(problem, direction, strategy="jacobian", mu=MU, iteration=0) -> tuple[ng.Gramian, System]:
    key, direction = jax.random.key(1), direction.resolve(problem)
    G = ng.gramian(problem, problem.params, strategy, batch=7 if strategy == "batched" else None)
    state = direction.init(direction.unknowns(problem), problem.dtype, key)
    return G, direction.prepare(G, lambda largest: jnp.asarray(mu), state, key, iteration)[0]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("strategy", ["jacobian", "batched", "linearized"])
def test_push_and_kernel_are_the_dense_ones(name, strategy):
    problem = PROBLEMS[name]()
    A = jacobian(problem)
    v, squares = np.random.default_rng(0).normal(size=(2, A.shape[1]))

    def products(params, v, squares):
        G = ng.gramian(problem, params, strategy, batch=7 if strategy == "batched" else None)
        return G.push(v), G.kernel(), G.kernel(squares)

    pushed, K, scaled = jax.jit(products, compiler_options=FAST)(problem.params, v, squares**2)
    assert relative(pushed, A @ v) < 1e-13
    assert relative(K, A @ A.T) < 1e-13
    assert relative(scaled, (A * squares**2) @ A.T) < 1e-13


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(("scaling", "momentum"), [(None, 0.0), (1e-3, 0.9)])
def test_the_direction_is_the_dense_one(name, scaling, momentum):
    """Natural gradient, momentum and the correction of geodesic acceleration, with and without Marquardt's D."""
    problem = PROBLEMS[name]()
    A, c = jacobian(problem), np.asarray(problem.covector(problem.params))
    last = momentum * np.random.default_rng(1).normal(size=A.shape[1])
    unravel = ravel_pytree(problem.params)[1]

    def run(last):
        G, system = prepared(problem, Kernel(scaling=scaling), iteration=100)
        v = system.solve(G.loss_gradient(), rows=problem.covector(problem.params), shift=last if momentum else None).x
        bend = G.weigh(second_directional(problem, problem.params, unravel(v)))
        return v, system.solve(G.pull(bend), rows=bend).x, bend

    v, a, bend = jax.jit(run, compiler_options=FAST)(last)
    diagonal = np.sum(A**2, axis=0) / np.max(np.sum(A**2, axis=0))
    D = np.diag(np.ones(len(last)) if scaling is None else np.maximum(diagonal, scaling))
    system = A.T @ A + MU * D
    assert relative(v, np.linalg.solve(system, A.T @ c + MU * D @ last)) < 1e-10
    assert relative(a, np.linalg.solve(system, A.T @ np.asarray(bend))) < 1e-10


def test_a_gradient_without_a_covector_is_solved_for_too():
    """An energy's gradient does not lie in the range of Aᵀ."""
    problem = energy()
    A = jacobian(problem)
    G, system = prepared(problem, Kernel())
    g = G.loss_gradient()
    assert problem.covector(problem.params) is None
    dense = np.linalg.solve(A.T @ A + MU * np.eye(A.shape[1]), np.asarray(g))
    assert relative(system.solve(g).x, dense) < 1e-8  # λ₁/μ times round-off is lost


@pytest.mark.slow
def test_conjugate_gradients_on_the_kernel():
    problem = poisson(points=17, boundary=9)
    pcg = ng.PCG(ng.RowFactor(max_rank=10, levels=1), maxiter=100, tol=1e-13, min_decrease=0.0)
    for solver in (pcg, ng.PCG(ng.PivotedRowFactor(max_rank=10, block=5), maxiter=100, tol=1e-13, min_decrease=0.0)):
        G, system = prepared(problem, Kernel(solver))
        _, direct = prepared(problem, Kernel())
        c = problem.covector(problem.params)
        found = system.solve(G.loss_gradient(), rows=c)
        assert relative(found.x, direct.solve(G.loss_gradient(), rows=c).x) < 1e-9
        assert 0 < int(found.iterations) < 100


def test_a_failed_factorization_is_damped_more():
    """Every point twice: K is singular, and μ below its round-off cannot be factored."""
    problem = poisson(points=8, boundary=4)
    twice = jax.tree.map(lambda a: jnp.concatenate([a, a]), problem.features)
    problem = eqx.tree_at(lambda problem: problem.features, problem, twice)
    G, system = prepared(problem, Kernel(), mu=1e-40)
    c = problem.covector(problem.params)
    found = system.solve(G.loss_gradient(), rows=c)
    assert float(system.mu) > 1e-40
    assert np.all(np.isfinite(found.x))
    assert float(found.x @ G.loss_gradient()) > 0
    A = jacobian(problem)
    dense = A.T @ np.linalg.lstsq(A @ A.T + float(system.mu) * np.eye(len(A)), np.asarray(c))[0]
    assert relative(A @ found.x, A @ dense) < 1e-6


def test_the_kernel_suits_where_points_are_fewer_and_the_gradient_is_a_pullback():
    few, many = poisson(points=17, boundary=9), poisson(points=80, boundary=9)
    assert suits(few)
    assert not suits(many)
    assert not suits(energy(points=5))  # no covector


def test_wrong_options_are_refused():
    with pytest.raises(ValueError, match="scaling must be a number in"):
        Kernel(scaling=2.0)
    with pytest.raises(ValueError, match="option of Kernel"):
        Kernel(ng.Direct(scaling=0.5))


@pytest.mark.slow
def test_it_trains_as_far_as_conjugate_gradients():
    """In exact arithmetic both are one method, where μ follows from the loss alone: they start and end alike."""
    problem = poisson(points=30, boundary=12, width=8)
    assert problem.num_rows < problem.num_parameters
    rule = ng.damping.LossPower()
    exact = ng.PCG(ng.RowFactor(max_rank=42, levels=1), maxiter=200, tol=1e-12, min_decrease=0.0)
    kernel, pcg = (
        ng.solve(problem, ng.NaturalGradient(direction, rule, acceleration=0.0), steps=40, progress=False).history.loss
        for direction in (Kernel(), exact)
    )
    np.testing.assert_allclose(kernel[:5], pcg[:5], rtol=1e-6)
    assert kernel[-1] < 1e-3 * kernel[0]
    assert 0.1 < kernel[-1] / pcg[-1] < 10
