"""Boundary values built into the network: −Δu = f in the unit disk, u = 0 on the circle.

The network is multiplied by a function that vanishes on the boundary, so that the loss has the equation alone.
"""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)


def exact(x):
    return (jnp.exp(x[0]) - jnp.cos(3 * x[1])) * (1 - x @ x)


def source(x):
    return -ng.laplacian(exact, x)


def main(steps):
    weights, points = jax.random.split(jax.random.key(0))
    network = ng.HardBoundary(
        ng.MLP(in_size=2, out_size=1, width=20, depth=2, key=weights), distance=lambda x: 1 - x @ x
    )
    disk = ng.Ball([0, 0], 1)
    problem = ng.LeastSquares(
        network,
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + source(x), disk.interior(600, key=points)),
        exact=exact,
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=150), steps=steps)
    rim = jnp.array([0.6, 0.8])
    print(f"relative H¹ error {solution.errors['h1']:.2e}, u on the boundary {solution.u(rim):.1e}")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    assert main(parser.parse_args().steps) < 1e-4
