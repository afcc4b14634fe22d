"""What the optimizers reach on 3D Poisson, tanh 3×32, 2000 + 400 points: minutes long, `make test-slow`."""

import jax
import jax.numpy as jnp
import pytest

import natgrad as ng

SOLVERS = {
    "nystrom-gaussian": ng.NystromNGD,
    "nystrom-sampling": lambda: ng.NystromNGD(test="sampling"),
    "nystrom-uniform": lambda: ng.NystromNGD(test="uniform"),
    "rpcholesky": ng.RPCholNGD,
    "full": ng.FullNGD,
}


@pytest.fixture(scope="module")
def problem():
    cube = ng.Box([0, 0, 0], [1, 1, 1])
    exact = lambda x: jnp.prod(jnp.sin(jnp.pi * x))
    keys = jax.random.split(jax.random.key(0), 3)
    return ng.LeastSquares(
        ng.MLP(3, 1, 32, 3, key=keys[0]),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + 3 * jnp.pi**2 * exact(x), cube.interior(2000, key=keys[1])),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), cube.boundary(400, key=keys[2])),
        exact=exact,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_three_digits_below_first_order_training(problem, name):
    solution = ng.solve(problem, SOLVERS[name](), steps=80, target_error=3e-5, evaluate_every=5, progress=False)
    print(f"{name}: {solution.errors}, {solution.steps} steps in {solution.time:.0f} s")
    assert solution.errors["h1"] <= 3e-5
