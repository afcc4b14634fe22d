"""Units: a steel rod that is heated by a current, in metres, seconds, kelvins and watts.

ρc u_t = k u_xx + q for the temperature u above that of the room, which the ends of the rod keep. `ng.Normalized` has
the lengths, the times and the size of u; every residual is in kelvins, and its weight makes its square a mean.
"""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
CONDUCTIVITY, DENSITY, CAPACITY = 50.0, 7850.0, 490.0  # W/(m K), kg/m³, J/(kg K)
DIFFUSIVITY = CONDUCTIVITY / (DENSITY * CAPACITY)  # m²/s
LENGTH, DURATION = 0.5, 1800.0  # m, s
START, HEATING = 80.0, 4e5  # K, W/m³
ROD = ng.Interval(0, DURATION) * ng.Box([0], [LENGTH])


def wave(k, x):
    return jnp.sin(k * jnp.pi * x / LENGTH)


def exact(z):  # z = (t, x)
    rate = lambda k: DIFFUSIVITY * (k * jnp.pi / LENGTH) ** 2  # 1/s
    final = HEATING / (DENSITY * CAPACITY * rate(2))  # K
    warming = final * (1 - jnp.exp(-rate(2) * z[0])) * wave(2, z[1])
    return START * jnp.exp(-rate(1) * z[0]) * wave(1, z[1]) + warming


def heat(u, z):
    _, (u_t, _), u_xx = ng.value_gradient_laplacian(u, z, dims=1)
    power = DENSITY * CAPACITY * u_t - CONDUCTIVITY * u_xx - HEATING * wave(2, z[1])  # W/m³
    return power * DURATION / (DENSITY * CAPACITY)  # K


def mean(residual, points, weight=1.0):
    return ng.Residual(residual, points, weight=weight / float(points.measure))


def main(steps):
    key = jax.random.split(jax.random.key(0), 4)
    network = ng.MLP(in_size=2, out_size=1, width=20, depth=2, key=key[0])
    problem = ng.LeastSquares(
        ng.Normalized(network, ROD, scale=100.0),  # kelvins
        pde=mean(heat, ROD.interior(800, key=key[1])),
        ends=mean(lambda u, z: u(z), ROD.boundary(100, key=key[2]), weight=10),
        initial=mean(lambda u, z: u(z) - START * wave(1, z[1]), ROD.initial(100, key=key[3]), weight=10),
        exact=exact,
    )
    solution = ng.solve(problem, ng.NystromNGD(max_rank=150), steps=steps)
    middle = solution.u(jnp.array([DURATION, LENGTH / 4]))
    print(f"{middle:.2f} K above the room after half an hour, a quarter down the rod")
    print(f"relative H¹ error {solution.errors['h1']:.2e}")
    return solution.errors["h1"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60)
    assert main(parser.parse_args().steps) < 1e-4
