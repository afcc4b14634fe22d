"""The example of the front page, as it stands, with fewer points and steps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng


@pytest.mark.usefixtures("quick_compilation")
def test_the_first_example():
    cube = ng.Box([0, 0, 0], [1, 1, 1])
    exact = lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    problem = ng.LeastSquares(
        ng.MLP(in_size=3, out_size=1, width=8, depth=2, key=jax.random.key(0)),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) + 3 * jnp.pi**2 * exact(x), cube.interior(200, key=jax.random.key(1))
        ),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), cube.boundary(60, key=jax.random.key(2))),
        exact=exact,
    )
    solution = ng.solve(problem, ng.NystromNGD(), steps=12)
    assert solution.u(jnp.array([0.5, 0.5, 0.5])).shape == ()
    assert len(solution.history.loss) == 12
    assert solution.history.loss[-1] < 0.1 * float(problem.loss(problem.params))
    assert solution.errors["h1"] < 0.9
    np.testing.assert_allclose(solution.errors["l2"], problem.errors(solution.params)["l2"], rtol=1e-8)


def test_the_operator_by_itself():
    """`ng.gramian(problem, params, strategy=…)` works on flat vectors in the order of `ravel_pytree`."""
    x = jnp.linspace(0.0, 1.0, 9)[:, None]
    net = ng.MLP(1, 1, 3, 1, key=jax.random.key(0))
    problem = ng.LeastSquares(net, fit=ng.Residual(lambda u, x: u(x) - x[0], x))
    G = ng.gramian(problem, problem.params, strategy="jacobian")
    v = jnp.arange(float(G.size))
    matrix = G.as_matrix()
    np.testing.assert_allclose(G.mv(v), matrix @ v, rtol=1e-12)
    np.testing.assert_allclose(G.mm(v[:, None])[:, 0], matrix @ v, rtol=1e-12)
    np.testing.assert_allclose(G.diagonal(), jnp.diagonal(matrix), rtol=1e-12)
    np.testing.assert_allclose(G.columns(jnp.array([2, 0])), matrix[:, jnp.array([2, 0])], rtol=1e-12)
