"""An inverse problem: the conductivity κ in u_t = κ u_xx from 50 noise-free measurements of u.

Any floating-point array of an Equinox module is a parameter, so the unknown coefficient is a field beside the network.
"""

import argparse

import equinox as eqx
import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
KAPPA = 0.3


class Unknown(eqx.Module):
    network: ng.MLP
    log_kappa: jax.Array  # the logarithm, so that κ stays positive

    def __call__(self, z):
        return self.network(z)


def exact(z):  # z = (t, x)
    return jnp.exp(-KAPPA * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def heat(u, z):
    return ng.partial(u, z, 0) - jnp.exp(u.log_kappa) * ng.partial(u, z, 1, 1)


def main(steps):
    key = jax.random.split(jax.random.key(0), 4)
    domain = ng.Interval(0, 1) * ng.Box([0], [1])
    sensors = domain.interior(50, key=key[1])
    measured = jax.vmap(exact)(sensors.x)
    network = Unknown(ng.MLP(in_size=2, out_size=1, width=16, depth=2, key=key[0]), jnp.asarray(0.0))  # κ = 1
    problem = ng.LeastSquares(
        network,
        pde=ng.Residual(heat, domain.interior(500, key=key[2])),
        boundary=ng.Residual(lambda u, z: u(z), domain.boundary(100, key=key[3])),
        data=ng.Residual(lambda u, z, value: u(z) - value, sensors, data=measured),
        exact=exact,
    )
    solution = ng.solve(problem, ng.FullNGD(), steps=steps)
    kappa = float(jnp.exp(solution.u.log_kappa))
    print(f"κ = {kappa:.8f} (exact: {KAPPA}), relative H¹ error {solution.errors['h1']:.2e}")
    return abs(kappa - KAPPA) / KAPPA


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    assert main(parser.parse_args().steps) < 1e-4
