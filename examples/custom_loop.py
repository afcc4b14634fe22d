"""The training loop by hand: fresh points every ten steps, which `ng.solve` does not do."""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
SQUARE = ng.Box([0, 0], [1, 1])


def exact(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.exp(x[1])


def poisson(u, x):
    return ng.laplacian(u, x) - ng.laplacian(exact, x)


def boundary(u, x):
    return u(x) - exact(x)


def problem_at(network, key):
    inside, rim = jax.random.split(key)
    return ng.LeastSquares(
        network,
        pde=ng.Residual(poisson, SQUARE.interior(400, key=inside)),
        boundary=ng.Residual(boundary, SQUARE.boundary(120, key=rim)),
        exact=exact,
        evaluation=SQUARE.interior(2_500, rule="gauss"),
    )


def main(steps):
    network = ng.MLP(in_size=2, out_size=1, width=20, depth=2, key=jax.random.key(0))
    problem = problem_at(network, jax.random.key(1))
    solver = ng.NystromNGD(max_rank=150)
    params, state = problem.params, solver.init(problem, problem.params, jax.random.key(2))
    step = jax.jit(solver.step)  # compiled once: the points are arguments, the functions stay the same
    for k in range(steps):
        if k % 10 == 0:
            problem = problem_at(network, jax.random.key(100 + k))
        params, state, info = step(problem, params, state)
        if (k + 1) % 10 == 0:
            error = float(problem.errors(params)["h1"])
            print(f"{k + 1:>4}  loss {info.loss + info.change:.2e}  H¹ {error:.2e}  α {info.step_size:.2g}")
    print(f"relative H¹ error {error:.2e}, compiled {step._cache_size()} time")
    return error


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    assert main(parser.parse_args().steps) < 1e-3
