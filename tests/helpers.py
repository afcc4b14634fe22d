"""Small problems every room is tested on, and the dense truth about their Gramians."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.linalg import sparse_signs, whiten


def _fast() -> dict:
    """Compiler options that make compiling, most of a test's time, several times cheaper; {} where they are unknown."""
    options = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(1.0)
    except Exception:
        return {}
    return options


FAST = _fast()


def poisson(points: int = 37, boundary: int = 12, width: int = 6, depth: int = 2, seed: int = 0, dim: int = 2):
    """−Δu = f on the unit cube, scalar residuals."""
    key = jax.random.key(seed)
    cube = ng.Box([0.0] * dim, [1.0] * dim)
    exact = lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    return ng.LeastSquares(
        ng.MLP(dim, 1, width, depth, key=key),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + dim * jnp.pi**2 * exact(x),
            cube.interior(points, key=jax.random.fold_in(key, 1)),
        ),
        boundary=ng.Residual(
            lambda u, x: u(x) - exact(x), cube.boundary(boundary, key=jax.random.fold_in(key, 2)), weight=3.0
        ),
        exact=exact,
    )


def flow(points: int = 23):
    """A vector residual of two networks: three numbers a point, nonlinear; and a data block of two."""
    key = jax.random.key(7)
    square = ng.Box([0.0, 0.0], [1.0, 2.0])
    net = ng.Fields(u=ng.MLP(2, 2, 5, 2, key=key), p=ng.MLP(2, 1, 4, 1, key=jax.random.fold_in(key, 1)))

    def momentum(w, x):
        u, grad = w.u(x), ng.gradient(w.u, x)
        force = -0.1 * ng.laplacian(w.u, x) + grad @ u + ng.gradient(w.p, x)
        return jnp.append(force, ng.divergence(w.u, x))

    data = jax.random.normal(jax.random.fold_in(key, 5), (9, 2))
    return ng.LeastSquares(
        net,
        momentum=ng.Residual(momentum, square.interior(points, key=jax.random.fold_in(key, 2))),
        data=ng.Residual(
            lambda w, x, y: w.u(x) - y, square.interior(9, key=jax.random.fold_in(key, 3)), data=data, weight=0.5
        ),
    )


def energy(metric=None, points: int = 30):
    """The Dirichlet energy with a soft boundary; the metric of the interior is the one asked for."""
    key = jax.random.key(3)
    square = ng.Box([0.0, 0.0], [1.0, 1.0])
    f = lambda x: 2 * jnp.pi**2 * jnp.prod(jnp.sin(jnp.pi * x))
    return ng.EnergyMinimization(
        ng.MLP(2, 1, 6, 2, key=key),
        interior=ng.Energy(
            lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - f(x) * u(x),
            square.interior(points, key=jax.random.fold_in(key, 1)),
            metric=metric or ng.metrics.EnergyNorm(),
        ),
        boundary=ng.Energy(
            lambda u, x: 50 * u(x) ** 2,
            square.boundary(11, key=jax.random.fold_in(key, 2)),
            metric=ng.Metric(lambda u, v, x: v(x), density=lambda u, x: 100.0),
        ),
    )


def dense_gramian(problem, params):
    """Jᵀ W J from `jax.jacrev` of the features at every point, summed one by one."""
    theta, unravel = ravel_pytree(params)
    G = np.zeros((theta.size, theta.size))
    frozen = problem.network(params)
    for block in problem.features:
        one = lambda t, *row, b=block: b.evaluate(problem.network(unravel(t)), frozen, *row)
        J = np.asarray(jax.vmap(jax.jacrev(one), (None, *[0] * len(block.inputs)))(theta, *block.inputs))
        w = np.asarray(block.weights)
        if block.density is not None:
            w = w * np.asarray(jax.vmap(lambda *row, b=block: b.density(frozen, *row))(*block.inputs))
        G += np.einsum("n,nki,nkj->ij", w, J, J)
    return G


def check_products(problem, dense, strategy: str, batch: int | None, tol: float) -> None:
    """The products of a strategy against the dense Gramian, its factor against the formula of Nyström's approximation,
    and its gradient against reverse mode."""
    p = problem.num_parameters
    V = jax.random.normal(jax.random.key(0), (p, 5))
    indices = jnp.asarray([0, 3, 3, p - 1])
    omega = sparse_signs(jax.random.key(1), p, min(6, p))

    @partial(jax.jit, compiler_options=FAST)
    def everything(problem, V):
        G = ng.gramian(problem, problem.params, strategy, batch=batch)
        gradient = ravel_pytree(jax.grad(problem.loss)(problem.params))[0]
        products = (G.mv(V[:, 0]), G.mm(V), G.diagonal(), G.columns(indices), G.as_matrix())
        return products, G.factor(omega), (G.loss_gradient(), gradient)

    products, F, (ours, gradient) = everything(problem, V)
    truth = (dense @ V[:, 0], dense @ V, np.diag(dense), dense[:, np.asarray(indices)], dense)
    for product, expected in zip(products, truth, strict=True):
        assert relative(product, expected) < tol
    assert relative(ours, gradient) < tol
    sketch = dense @ np.asarray(omega.matrix())
    assert relative(F.T @ F, sketch @ np.linalg.solve(omega.matrix().T @ sketch, sketch.T)) < 1e4 * tol


def relative(a, b) -> float:
    """‖a − b‖ / ‖b‖."""
    return float(np.linalg.norm(np.asarray(a) - np.asarray(b)) / np.linalg.norm(np.asarray(b)))


class Dense(eqx.Module):
    """A matrix behind the products of a Gramian."""

    matrix: jax.Array

    @property
    def size(self):
        return self.matrix.shape[0]

    @property
    def dtype(self):
        return self.matrix.dtype

    def mv(self, v):
        return self.matrix @ v

    mm = mv

    def factor(self, omega):
        values, U = jnp.linalg.eigh(self.matrix)
        A = jnp.sqrt(jnp.maximum(values, 0.0))[:, None] * U.T
        C = omega.times(A)
        return whiten(C.T @ C)[1] @ C.T @ A

    def diagonal(self):
        return jnp.diagonal(self.matrix)

    def columns(self, indices):
        return self.matrix[:, indices]

    def as_matrix(self):
        return self.matrix
