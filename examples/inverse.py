"""An inverse problem: the conductivity κ in u_t = κ u_xx from 50 noise-free measurements of u.

The unknown number stands beside the network of u, as a field of its own.
"""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
KAPPA = 0.3


def exact(z):  # z = (t, x)
    return jnp.exp(-KAPPA * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def heat(net, z):
    return ng.partial(net.u, z, 0) - net.kappa.value * ng.partial(net.u, z, 1, 1)


def main(steps):
    key = jax.random.split(jax.random.key(0), 4)
    domain = ng.Interval(0, 1) * ng.Box([0], [1])
    sensors = domain.interior(50, key=key[1])
    measured = jax.vmap(exact)(sensors.x)
    network = ng.Fields(
        u=ng.MLP(in_size=2, out_size=1, width=16, depth=2, key=key[0]), kappa=ng.Unknown(1.0, positive=True)
    )
    problem = ng.LeastSquares(
        network,
        pde=ng.Residual(heat, domain.interior(500, key=key[2])),
        boundary=ng.Residual(lambda net, z: net.u(z), domain.boundary(100, key=key[3])),
        data=ng.Residual(lambda net, z, value: net.u(z) - value, sensors, data=measured),
        exact={"u": exact},
    )
    solution = ng.solve(problem, ng.FullNGD(), steps=steps)
    kappa = float(solution.u.kappa.value)
    print(f"κ = {kappa:.8f} (exact: {KAPPA}), relative H¹ error {solution.errors['h1']:.2e}")
    return abs(kappa - KAPPA) / KAPPA


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    assert main(parser.parse_args().steps) < 1e-4
