"""Every strategy against the dense Gramian, on scalar and vector residuals and on energy metrics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.backend.chunks import by_columns
from natgrad.gramian.choose import choose
from tests.helpers import check_products, dense_gramian, energy, flow, poisson, relative

PROBLEMS = {
    "scalar": poisson,
    "vector": flow,
    "energy": energy,
    "gross-pitaevskii": lambda: energy(ng.metrics.GrossPitaevskii(lambda x: jnp.sum(x**2), 100.0)),
}
METRICS = {
    "H1": ng.metrics.H1,
    "L2": ng.metrics.L2,
    "reaction": lambda: ng.metrics.EnergyNorm(lambda x: 1 + x[0], 2.0),
    "newton": ng.metrics.NewtonCubic,
}
STRATEGIES = [
    ("assembled", None),
    ("assembled", 7),
    ("jacobian", None),
    ("batched", 1),
    ("batched", 10),  # divides no block
    ("batched", 1000),  # larger than any
    ("linearized", None),
    ("auto", None),
]


@pytest.fixture(scope="module", params=PROBLEMS)
def case(request):
    problem = PROBLEMS[request.param]()
    return problem, dense_gramian(problem, problem.params)


@pytest.mark.parametrize(("strategy", "batch"), STRATEGIES)
def test_products_agree_with_the_dense_gramian(case, strategy, batch):
    check_products(*case, strategy, batch, tol=1e-12)


@pytest.mark.parametrize("columns", [1, 5, 16, 17, 33])
def test_columns_go_in_rounds_of_one_size(columns):
    """So that a sum over devices is in one place of the program: in a loop, or in none."""
    X, M = np.random.default_rng(0).normal(size=(7, columns)), np.arange(21.0).reshape(3, 7)
    apply = lambda X: by_columns(lambda x: M @ x, X, 16)
    np.testing.assert_allclose(apply(jnp.asarray(X)), M @ X, rtol=1e-13, atol=1e-13)
    assert str(jax.make_jaxpr(apply)(X)).count("dot_general[") == 1  # nothing is done apart


@pytest.mark.parametrize("metric", METRICS)
def test_built_in_metrics(metric):
    problem = energy(METRICS[metric]())
    G = jax.jit(lambda problem: ng.gramian(problem, strategy="jacobian").as_matrix())(problem)
    assert relative(G, dense_gramian(problem, problem.params)) < 1e-12


@pytest.mark.slow
def test_works_outside_jit():
    problem = poisson()
    v = jnp.ones(problem.num_parameters)
    expected = dense_gramian(problem, problem.params) @ v
    for strategy in ("assembled", "jacobian", "batched", "linearized"):
        assert relative(ng.gramian(problem, strategy=strategy).mv(v), expected) < 1e-12


def test_stop_gradient_matters():
    """Differentiating the operator's coefficients too gives another matrix; one written by hand agrees with ours."""
    beta, V = 100.0, lambda x: jnp.sum(x**2)
    problem = energy(ng.metrics.GrossPitaevskii(V, beta))
    theta, unravel = ravel_pytree(problem.params)
    interior, boundary = problem.features
    u = lambda t, x: problem.network(unravel(t))(x)

    # ∂ᵢu and ∇∂ᵢu at every point, then ∫ ∇∂ᵢu·∇∂ⱼu + (V + βu²) ∂ᵢu ∂ⱼu + 100 ∫ ∂ᵢu ∂ⱼu on the boundary, by hand.
    x, w = interior.inputs[0], interior.weights
    du = jax.vmap(lambda x: jax.grad(u)(theta, x))(x)
    ddu = jax.vmap(lambda x: jax.jacfwd(jax.grad(u), argnums=1)(theta, x))(x)
    c = jax.vmap(lambda x: V(x) + beta * u(theta, x) ** 2)(x)
    hand = jnp.einsum("n,npd,nqd->pq", w, ddu, ddu) + jnp.einsum("n,np,nq->pq", w * c, du, du)
    db = jax.vmap(lambda x: jax.grad(u)(theta, x))(boundary.inputs[0])
    hand += 100 * jnp.einsum("n,np,nq->pq", boundary.weights, db, db)
    ours = ng.gramian(problem, problem.params, "jacobian").as_matrix()
    assert relative(ours, hand) < 1e-12

    def naive(t):
        net = problem.network(unravel(t))
        return jnp.concatenate([(b.weights[:, None] ** 0.5 * b.at(net, net, b.inputs)).ravel() for b in [interior]])

    J = jax.jacrev(naive)(theta)
    interior_only = hand - 100 * jnp.einsum("n,np,nq->pq", boundary.weights, db, db)
    assert relative(J.T @ J, interior_only) > 1e-2


def test_works_under_jit_and_inside_loops():
    problem = poisson()
    v = jnp.ones(problem.num_parameters)
    for strategy in ("assembled", "jacobian", "batched", "linearized"):

        @jax.jit
        def three(problem, params, v, strategy=strategy):
            G = ng.gramian(problem, params, strategy, batch=10)
            return jax.lax.fori_loop(0, 3, lambda _, v: G.mv(v), v)

        G = np.linalg.matrix_power(dense_gramian(problem, problem.params), 3)
        assert relative(three(problem, problem.params, v), G @ v) < 1e-11


def test_auto_follows_sizes_and_memory_and_says_why():
    problem = poisson(points=500, boundary=100, width=20, depth=2)
    p, rows = problem.num_parameters, problem.num_rows
    assert choose(problem, "auto", None, memory=100 * rows * p * 8)[0] == "jacobian"
    strategy, batch, reason = choose(problem, "auto", None, memory=rows * p * 8)
    assert strategy == "batched"
    assert batch * p * 8 < rows * p * 8
    assert f"{rows}×{p}" in reason
    assert choose(poisson(points=500, width=5), "auto", None)[0] == "assembled"
    assert ng.gramian(poisson(), strategy="auto").strategy in ("assembled", "jacobian")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "jacobain"}, "did you mean jacobian"),
        ({"strategy": "batched", "batch": 0}, "at least 1"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        ng.gramian(poisson(), **arguments)
