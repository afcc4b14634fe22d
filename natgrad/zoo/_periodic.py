"""Solutions that are periodic in space: by the network, or round a circle by a block of residuals."""

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from natgrad.domains import Box, Interval
from natgrad.networks import MLP, FourierSeries, Normalized, Periodic

LINE, SQUARE, CIRCLE = Box([-1], [1]), Box([-1, -1], [1, 1]), Interval(0, 2 * math.pi)


def sines(key, space: Box, out_size: int, width: int, depth: int, harmonics: int, frequency: float) -> Periodic:
    """A network of sines of (t, x…) that has the period of the box in each coordinate of space."""
    in_size = 1 + 2 * harmonics * space.dim
    net = MLP(in_size, out_size, width, depth, activation=jnp.sin, frequency=frequency, key=key)
    sides = [b - a for a, b in zip(space.lower, space.upper, strict=True)]
    return Periodic(net, periods=(None, *sides), harmonics=harmonics)


def series(key, space: Box, out_size: int, width: int, depth: int, harmonics: int, frequency: float) -> Normalized:
    """A Fourier series with `harmonics` waves in each coordinate of the box; its coefficients are a network of t."""
    net = FourierSeries(
        (None, *[2.0] * space.dim), harmonics, width, depth, out_size=out_size, frequency=frequency,
        knee=harmonics / 8, key=key,
    )  # fmt: skip
    return Normalized(net, Interval(0, 1) * space)


NETWORKS: dict[str, Callable[..., Any]] = {"sines": sines, "series": series}


def sobol(inside, interior: int, start, initial: int) -> dict[str, Callable]:
    """The points of an `Evolution`, from two keys."""
    return {
        "pde": lambda cylinder: cylinder.interior(interior, key=inside, rule="sobol"),
        "initial": lambda cylinder: cylinder.initial(initial, key=start, rule="sobol"),
    }


def tenth(z: Array) -> Array:
    """What a network counts for beside the values at the start, where these are a part of u."""
    return jnp.asarray(0.1, z.dtype)


def gap(u: Callable, z: Any) -> Any:
    """The residual of u(t, 0) = u(t, 2π), at a point with x = 0."""
    return u(z) - u(z.at[1].set(CIRCLE.b))


def left(key, boundary: int) -> Callable:
    """The points of `gap`."""
    return lambda cylinder: cylinder.boundary(boundary, key=key, rule="sobol", faces=[(0, "lower")])
