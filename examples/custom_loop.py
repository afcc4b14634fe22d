"""The training loop by hand, with other points at every step."""

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


def main(steps):
    network, inside, rim, start = jax.random.split(jax.random.key(0), 4)
    problem = ng.LeastSquares(
        ng.MLP(in_size=2, out_size=1, width=20, depth=2, key=network),
        pde=ng.Residual(poisson, SQUARE.interior(400, key=inside, fresh=True)),
        boundary=ng.Residual(boundary, SQUARE.boundary(120, key=rim, fresh=True)),
        exact=exact,
        evaluation=SQUARE.interior(2_500, rule="gauss"),
    )
    solver = ng.Resampled(ng.NystromNGD(max_rank=150))  # where points move; ng.solve wraps a solver by itself
    params, state = problem.params, solver.init(problem, problem.params, start)
    step = jax.jit(solver.step)  # compiled once: the points are in the state
    for k in range(steps):
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
