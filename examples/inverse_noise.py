"""The viscosity ν in u_t = ν u_xx with its standard deviation, from 60 measurements with 2 % and with 10 % noise.

The noise level gives the measurements their weight, and the equation is believed to 10⁻³ (weight 10⁶): u may not bend
to the noise. How far the data are from u then says whether it did: χ²/n is about 1, and far below where a network
overfits. With the weight 1 it would.
"""

import argparse

import jax
import jax.numpy as jnp

import natgrad as ng

jax.config.update("jax_enable_x64", True)
NU, SENSORS = 0.1, 60


def exact(z):  # z = (t, x)
    return jnp.exp(-NU * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def heat(net, z):
    return ng.partial(net.u, z, 0) - net.nu.value * ng.partial(net.u, z, 1, 1)


def build(noise, weight, key):
    """The problem with data of this noise level, the start and the boundary values built into the network."""
    network, spots, errors = jax.random.split(key, 3)
    domain = ng.Interval(0, 1) * ng.Box([0], [1])
    sensors = domain.interior(SENSORS, key=spots)
    measured = jax.vmap(exact)(sensors.x) + noise * jax.random.normal(errors, (SENSORS,))
    u = ng.HardBoundary(
        ng.MLP(in_size=2, out_size=1, width=10, depth=2, key=network),
        distance=lambda z: z[0] * z[1] * (1 - z[1]),
        lift=lambda z: jnp.sin(jnp.pi * z[1]),
    )
    return ng.LeastSquares(
        ng.Fields(u=u, nu=ng.Unknown(0.3, positive=True)),
        pde=ng.Residual(heat, domain.interior(900, rule="gauss"), weight=weight),
        data=ng.Residual(lambda net, z, value: net.u(z) - value, sensors, data=measured, noise=noise),
        exact={"u": exact},
    )


def find(noise, steps=150, weight=1e6):
    """What is found: ν, its standard deviation, χ²/n and the relative H¹ error."""
    problem = build(noise, weight, jax.random.key(0))
    solution = ng.solve(problem, ng.FullNGD(), steps=steps, progress=False)
    return {
        "nu": float(solution.u.nu.value),
        "std": float(ng.uncertainty(problem, solution).std("nu")),
        "chi2": 2 * float(problem.losses(solution.params)["data"]) / SENSORS,
        "h1": float(solution.errors["h1"]),
    }


def main(steps):
    for noise in (0.02, 0.1):
        nu, std, chi2, h1 = find(noise, steps).values()
        print(f"noise {noise:.0%}: ν = {nu:.4f} ± {std:.4f} (exact: {NU}), χ²/n {chi2:.2f}, relative H¹ error {h1:.1e}")
        assert abs(nu - NU) < 3 * std < 0.05, "ν is not where its standard deviation says"
        assert 0.5 < chi2 < 1.5, "u has followed the noise, or missed the data"
        assert h1 < noise / 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=150)
    main(parser.parse_args().steps)
