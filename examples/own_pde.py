"""A nonlinear, time-dependent equation of your own: Burgers' u_t + u u_x = ν u_xx, a travelling wave."""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
NU = 0.1


def exact(z):  # z = (t, x)
    return 1 - jnp.tanh((z[1] - z[0]) / (2 * NU))


def burgers(u, z):
    u_t, u_x = ng.gradient(u, z)
    return u_t + u(z) * u_x - NU * ng.partial(u, z, 1, 1)


def fixed(u, z):
    return u(z) - exact(z)


def main(steps):
    key = jax.random.split(jax.random.key(0), 4)
    domain = ng.Interval(0, 1) * ng.Box([-1], [2])  # time first
    problem = ng.LeastSquares(
        ng.MLP(in_size=2, out_size=1, width=20, depth=2, key=key[0]),
        pde=ng.Residual(burgers, domain.interior(800, key=key[1])),
        boundary=ng.Residual(fixed, domain.boundary(100, key=key[2]), weight=10),
        initial=ng.Residual(fixed, domain.initial(100, key=key[3]), weight=10),
        exact=exact,
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=150), steps=steps)
    print(f"relative H¹ error {solution.errors['h1']:.2e}")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    assert main(parser.parse_args().steps) < 1e-4
