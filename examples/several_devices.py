"""One problem on several devices: its points are spread over them, and the training is that of one device.

A processor is divided into as many devices as are asked for; on a machine with accelerators, these are used.
"""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng
from natgrad.backend.parallel import devices, shard

SQUARE = ng.Box([0, 0], [1, 1])


def exact(x):
    return jnp.sin(jnp.pi * x[0]) * jnp.exp(x[1])


def main(steps, count):
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_num_cpu_devices", count)  # before JAX looks for devices
    problem = ng.LeastSquares(
        ng.MLP(in_size=2, out_size=1, width=16, depth=2, key=jax.random.key(0)),
        pde=ng.Residual(
            lambda u, x: ng.laplacian(u, x) - ng.laplacian(exact, x), SQUARE.interior(400, key=jax.random.key(1))
        ),
        boundary=ng.Residual(lambda u, x: u(x) - exact(x), SQUARE.boundary(121, key=jax.random.key(2))),
        exact=exact,
        evaluation=SQUARE.interior(2_500, rule="gauss"),
    )
    solution = ng.solve(shard(problem, devices(count)), ng.NystromNGD(max_rank=150), steps)
    print(f"relative H¹ error {solution.errors['h1']:.2e} on {count} devices")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--devices", type=int, default=4)
    options = parser.parse_args()
    assert main(options.steps, options.devices) < 1e-3
