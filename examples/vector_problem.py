"""Several fields: the Navier–Stokes equations with Kovasznay's solution, a network for u and one for p."""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
NU = 1 / 40
LAMBDA = 1 / (2 * NU) - jnp.sqrt(1 / (4 * NU**2) + 4 * jnp.pi**2)


def velocity(x):
    wave, angle = jnp.exp(LAMBDA * x[0]), 2 * jnp.pi * x[1]
    return jnp.array([1 - wave * jnp.cos(angle), LAMBDA / (2 * jnp.pi) * wave * jnp.sin(angle)])


def pressure(x):
    return (1 - jnp.exp(2 * LAMBDA * x[0])) / 2


def navier_stokes(flow, x):
    momentum = ng.gradient(flow.u, x) @ flow.u(x) - NU * ng.laplacian(flow.u, x) + ng.gradient(flow.p, x)
    return jnp.append(momentum, ng.divergence(flow.u, x))


def main(steps):
    key = jax.random.split(jax.random.key(0), 4)
    flow = ng.Fields(
        u=ng.MLP(in_size=2, out_size=2, width=16, depth=2, key=key[0]),
        p=ng.MLP(in_size=2, out_size=1, width=12, depth=2, key=key[1]),
    )
    box = ng.Box([-0.5, -0.5], [1, 1.5])
    problem = ng.LeastSquares(
        flow,
        pde=ng.Residual(navier_stokes, box.interior(500, key=key[2])),
        boundary=ng.Residual(lambda flow, x: flow.u(x) - velocity(x), box.boundary(200, key=key[3])),
        # The pressure is known up to a constant: fix it at a corner.
        gauge=ng.Residual(lambda flow, x: flow.p(x) - pressure(x), jnp.array([[-0.5, -0.5]])),
        exact={"u": velocity, "p": pressure},
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=200), steps=steps)
    print(f"relative H¹ error of (u, p) {solution.errors['h1']:.2e}")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    assert main(parser.parse_args().steps) < 1e-3
