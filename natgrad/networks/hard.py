"""Networks that have given values where a distance vanishes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from natgrad.networks.base import Function
from natgrad.options import check

MEETING = 64  # points where initial and boundary values are compared


class HardBoundary(eqx.Module):
    """u(x) = lift(x) + distance(x) N(x): equal to `lift` (default: 0) where `distance` vanishes, whatever θ.

    `distance` and `lift` are fixed functions without parameters.

    >>> from natgrad.networks import MLP
    >>> N = MLP(2, 1, 16, 2, key=jax.random.key(0))
    >>> u = HardBoundary(N, distance=lambda x: jnp.prod(x * (1 - x)))
    >>> u(jnp.array([0.0, 0.3]))
    Array(0., dtype=float32)
    """

    network: Function
    distance: Function = eqx.field(static=True)
    lift: Function | None = eqx.field(static=True)

    def __init__(self, network: Function, distance: Function, lift: Function | None = None):
        for name, function in (("distance", distance), ("lift", lift)):
            if not (callable(function) or (name == "lift" and function is None)):
                raise ValueError(f"{name} must be a function of one point, got {type(function).__name__}")
            if jax.tree.leaves(eqx.filter(function, eqx.is_array)):
                raise ValueError(f"{name} must be a function without parameters, such as lambda x: f(x)")
        self.network = network
        self.distance = distance
        self.lift = lift

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        y = jnp.asarray(self.network(x))
        u = _like("distance", self.distance(x), y) * y
        return u if self.lift is None else _like("lift", self.lift(x), y) + u


def hard_start(
    network: Function,
    domain: Any,
    initial: Function | float,
    *,
    velocity: Function | float | None = None,
    boundary: Function | float | None = None,
    faces: Sequence[tuple[int, str]] | None = None,
) -> HardBoundary:
    """u with u = `initial`, and u_t = `velocity` if given, at the first time of a domain; u = `boundary` on its sides.

    Arguments:
        network: N of a point z = (t, x). u = g(x) + τ N with τ from 0 to 1 over the time of the domain; with a
            velocity u = g(x) + (t − a) h(x) + τ² N. Each side multiplies N by another distance between 0 and 1.
        domain: an `ng.SpaceTime`, or an `ng.Interval` for an equation in t alone.
        initial, velocity: g and h, functions of the point x (d,) of space, or numbers.
        boundary: a function of z = (t, x), smooth in the whole domain, or a number. Then space must be a box, and
            `initial` and `velocity` must agree with it where they meet. None leaves the sides alone.
        faces: the sides of the box that have these values, as pairs (axis of space, "lower" or "upper"); default: all.

    >>> from natgrad import Box, Interval
    >>> from natgrad.networks import MLP
    >>> N = MLP(2, 1, 16, 2, key=jax.random.key(0))
    >>> u = hard_start(N, Interval(0, 2) * Box([-1], [1]), initial=lambda x: 1 - x[0] ** 2, boundary=0)
    >>> u(jnp.array([0.0, 0.5])), u(jnp.array([0.7, 1.0]))
    (Array(0.75, dtype=float32), Array(0., dtype=float32))
    """
    time, space = getattr(domain, "time", domain), getattr(domain, "space", None)
    if not (hasattr(time, "a") and hasattr(time, "b")):
        raise ValueError(f"hard_start takes a domain with time, such as ng.Interval(0, 1) * box, got {domain}")
    sides = _sides(space, faces) if boundary is not None else ()
    if boundary is None and faces is not None:
        raise ValueError("faces are the sides where u = boundary: give boundary, too")
    if initial is None:
        raise ValueError("initial must be a function of the point of space, or a number, got None")
    lift = StartLift(time.a, _fixed("initial", initial), _fixed("velocity", velocity), _fixed("boundary", boundary))
    if sides and space is not None:
        _check_meeting(lift, space.boundary(MEETING, rule="sobol", faces=faces).x)
    return HardBoundary(network, StartDistance(time.a, time.b, 1 if velocity is None else 2, sides), lift)


@dataclass(frozen=True)
class StartDistance:
    """τᵏ times, for each side of the box, the distance from it over the width; four times as much of opposite sides."""

    start: float
    end: float
    order: int
    sides: tuple[tuple[int, float, float], ...]  # coordinate of z, where the side is, where the one opposite is

    def __call__(self, z: Array) -> Array:
        value = ((z[0] - self.start) / (self.end - self.start)) ** self.order
        for i, here, opposite in self.sides:
            value = value * ((z[i] - here) * ((2 if (i, opposite, here) in self.sides else 1) / (opposite - here)))
        return value


@dataclass(frozen=True)
class StartLift:
    """g(x) + (t − a) (h(x) − β_t(a, x)) + β(t, x) − β(a, x), without the terms that are not given."""

    start: float
    initial: Function
    velocity: Function | None
    boundary: Function | None

    def __call__(self, z: Array) -> Array:
        x, first = z[1:], jnp.concatenate([jnp.full(1, self.start, z.dtype), z[1:]])
        value = jnp.asarray(self.initial(x))
        if self.boundary is not None:
            value = value + (self.boundary(z) - self.boundary(first))
        if self.velocity is None:
            return value
        moving = 0.0 if self.boundary is None else in_time(self.boundary, first)
        return value + (z[0] - self.start) * (self.velocity(x) - moving)


def in_time(f: Function, z: Array) -> Array:
    """∂f/∂t at a point (t, x)."""
    return jax.jvp(f, (z,), (jnp.eye(z.size, dtype=z.dtype)[0],))[1]


def _fixed(name: str, value: Any) -> Any:
    """A function of one point, of a number too; None as it is."""
    if callable(value):
        if jax.tree.leaves(eqx.filter(value, eqx.is_array)):
            raise ValueError(f"{name} must be a function without parameters, such as lambda x: f(x)")
        return value
    if value is not None:
        check(name, value, float)
    return None if value is None else Constant(float(value))


@dataclass(frozen=True)
class Constant:
    """A number as a function of one point."""

    number: float

    def __call__(self, x: Array) -> Array:
        return jnp.asarray(self.number, x.dtype)


def _sides(space: Any, faces: Sequence[tuple[int, str]] | None) -> tuple[tuple[int, float, float], ...]:
    lower, upper = space.bounds() if space is not None else ((), ())
    if space is None or not np.isclose(space.measure, np.prod(np.subtract(upper, lower))):
        raise ValueError(f"hard_start has boundary values on the sides of a box or an interval, not of {space}")
    pieces = space.boundary_pieces(faces).faces
    return tuple((i + 1, *((lower[i], upper[i]) if side == "lower" else (upper[i], lower[i]))) for i, side in pieces)


def _check_meeting(lift: StartLift, x: Array) -> None:
    """Refuses an initial value, or velocity, other than that of the boundary where they meet."""
    z = jnp.insert(x, 0, lift.start, axis=1)
    side: Any = lift.boundary
    meetings: list[tuple[str, Any, Any]] = [("initial", lift.initial, side)]
    meetings += [("velocity", lift.velocity, lambda z: in_time(side, z))] if lift.velocity else []
    for name, ours, theirs in meetings:
        there = jnp.broadcast_arrays(jax.vmap(ours)(x), jax.vmap(theirs)(z))
        gap = jnp.abs(there[0] - there[1]).reshape(len(x), -1).max(axis=1)
        i = int(jnp.argmax(gap))
        if not gap[i] <= jnp.sqrt(jnp.finfo(z.dtype).eps) * (1 + jnp.abs(there[0]).max()):
            raise ValueError(
                f"{name} and boundary must agree where they meet, but differ by {gap[i]:.3g} at x = {x[i].tolist()}: "
                "leave boundary out, and make it a residual"
            )


def _like(name: str, value: Any, y: Array) -> Array:
    """The value of a fixed function at one point: a number, or as many as the network gives there."""
    value = jnp.asarray(value)
    if value.shape not in ((), y.shape):
        right = "a number" if y.ndim == 0 else f"a number, or an array of the network's shape {y.shape},"
        raise ValueError(f"{name} must give {right} at one point, got shape {value.shape}")
    return value
