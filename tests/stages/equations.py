"""Evolution equations that train for moments."""

import jax
import jax.numpy as jnp

import natgrad as ng

NU = 0.1
POINTS = {"pde": 60, "initial": 20, "ends": 10}


def decay(z):
    return jnp.exp(-NU * jnp.pi**2 * z[0]) * jnp.sin(jnp.pi * z[1])


def heat(exact=decay, width=6, points=POINTS, interval=(0, 2), **options):
    """u_t = ν u_xx on (0, 1), u = 0 at the ends."""
    return ng.Evolution(
        ng.MLP(2, 1, width, 1, key=jax.random.key(0)),
        ng.Interval(0, 1),
        pde=lambda u, z: ng.partial(u, z, 0) - NU * ng.partial(u, z, 1, 1),
        initial=lambda x: jnp.sin(jnp.pi * x[0]),
        ends=lambda u, z: u(z),
        exact=exact,
        points=points,
        interval=interval,
        key=jax.random.key(1),
        **options,
    )


def standing(z):
    return jnp.cos(2 * jnp.pi * z[0]) * jnp.sin(jnp.pi * z[1])


def wave(width=10):
    """u_tt = 4 u_xx, of second order in time."""
    return ng.Evolution(
        ng.MLP(2, 1, width, 2, key=jax.random.key(0)),
        ng.Interval(0, 1),
        pde=lambda u, z: (ng.partial(u, z, 0, 0) - 4 * ng.partial(u, z, 1, 1)) / 40,
        initial=(lambda x: jnp.sin(jnp.pi * x[0]), lambda x: 0.0 * x[0]),
        ends=lambda u, z: u(z),
        exact=standing,
        points={"pde": 300, "initial": 40, "ends": 40},
        weights={"ends": 10.0},
        interval=(0, 0.5),
        key=jax.random.key(1),
    )


def march(problem=None, times=4, steps=6, **options):
    return ng.march(problem or heat(), ng.FullNGD(), times, steps, progress=False, **options)
