"""The pictures of a flow: two velocities, and the pressure less its mean, since it is known up to a constant."""

from collections.abc import Callable
from typing import Any

import jax

from natgrad.domains import Box


def centred(p: Callable, box: Box) -> Callable:
    """p less its mean over a box, by a Gauss rule of 20 points an axis."""
    points = box.interior(20**box.dim, rule="gauss")
    mean = points.integrate(jax.vmap(p)(points.x)) / box.measure
    return lambda x: p(x) - mean


def flow_fields(velocity: Callable, pressure: Callable, box: Box) -> dict[str, tuple[Callable[[Any], Callable], Any]]:
    """The `fields` of a picture of a network with the fields u (two components) and p."""
    return {
        "u₁": (lambda flow: lambda x: flow.u(x)[0], lambda x: velocity(x)[0]),
        "u₂": (lambda flow: lambda x: flow.u(x)[1], lambda x: velocity(x)[1]),
        "p": (lambda flow: centred(flow.p, box), centred(pressure, box)),
    }
