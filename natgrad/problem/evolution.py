"""An evolution equation on windows of time: the problem of each window, with its start from the window before.

All windows have the same points, in the time s ∈ [0, 1] of the window, and the same functions; t₀, t₁ and the values at
the start are arrays. So windows share compiled programs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.calculus import partial
from natgrad.domains import Interval, Points, SpaceTime
from natgrad.domains.domain import Domain
from natgrad.problem.base import Network
from natgrad.problem.evaluation import FACTOR
from natgrad.problem.least_squares import LeastSquares, Residual
from natgrad.problem.window import Window

POINTS = {"pde": 1_000, "initial": 200}  # and of each block on the boundary
BOUNDARY = 200
WEIGHTS = {"initial": 100.0}  # what a window misses at its start, all later ones miss too
Draw = Callable[[SpaceTime], Any]
Values = Callable[[Float[Array, " d"]], Any]


@dataclass(frozen=True)
class Tabulated:
    """An exact solution by its values (n, m) at many points (n, d) together, where one at a time would take long: its
    errors are those of values alone."""

    values: Callable[[np.ndarray], np.ndarray]


class Evolution:
    """u_t = … on windows of time: a function `(t0, t1, start) -> LeastSquares`, as `ng.march` takes it.

        heat = ng.Evolution(
            ng.MLP(2, 1, 20, 2, key=jax.random.key(0)), ng.Interval(0, 1),
            pde=lambda u, z: ng.partial(u, z, 0) - ng.partial(u, z, 1, 1),
            initial=lambda x: jnp.sin(jnp.pi * x[0]), ends=lambda u, z: u(z),
            interval=(0, 1), key=jax.random.key(1),
        )
        solution = ng.march(heat, ng.NystromNGD(), times=4, steps=50)

    Equations are in the problem's own time: z is the point (t, x…) and u the solution there.

    Arguments:
        network: a function of (s, x…), where s goes from 0 at the start of a window to 1 at its end; its parameters are
            where the first window begins.
        space: the domain of x.
        pde: the residual `fn(u, z)` inside.
        initial: x ↦ the values at the first time; a pair (u, u_t) for an equation of second order in time.
        carry: `fn(u, z)`, what `initial` has the values of, and what one window hands to the next: u(z) by default, or
            u and u_t; `lambda w, z: w.velocity(z)` where a pressure has no initial value, say.
        interval: the first and the last time.
        points: by block, how many points, or a function of the space-time domain [0, 1] × space that gives them. By
            default 1000 inside and 200 in each of the others, Sobol points.
        weights: by block, as those of `ng.Residual`; by default 100 for `initial`, 1 for the others.
        exact: the exact solution of (t, x…), as in `ng.LeastSquares`, or `Tabulated`; `evaluation` are the points of
            its errors, drawn as in `points`.
        key: the points are drawn from it.
        boundary: further residuals by name, on the boundary of the space unless `points` says otherwise.
    """

    def __init__(
        self,
        network: Network,
        space: Domain,
        *,
        pde: Callable,
        initial: Values | tuple[Values, Values],
        carry: Callable | None = None,
        interval: tuple[float, float] = (0.0, 1.0),
        points: Mapping[str, int | Draw] | None = None,
        weights: Mapping[str, Any] | None = None,
        exact: Callable | Mapping[str, Callable] | Tabulated | None = None,
        evaluation: Draw | None = None,
        key: PRNGKeyArray | int = 0,
        **boundary: Callable,
    ):
        self.network, self.exact, self.interval = network, exact, check_interval(interval)
        pair = initial if isinstance(initial, tuple | list) else (initial,)
        if not 1 <= len(pair) <= 2 or not all(map(callable, pair)):
            raise ValueError("initial must be a function of x, or a pair of them: u and u_t at the first time")
        self.initial, self.carry = tuple(pair), carry or (_value if len(pair) == 1 else _value_and_rate)
        self.blocks = {"pde": pde, "initial": None, **boundary}
        self.weights = {**dict.fromkeys(self.blocks, 1.0), **WEIGHTS, **_known(weights, self.blocks, "weights")}
        cylinder = Interval(0, 1) * space
        counts = {**dict.fromkeys(boundary, BOUNDARY), **POINTS, **_known(points, self.blocks, "points")}
        keys = host.split(host.as_key(key), len(self.blocks))
        drawn = {name: _draw(cylinder, name, counts[name], key) for name, key in zip(self.blocks, keys, strict=True)}
        if getattr(drawn["initial"], "moving", False):
            raise ValueError(
                "the points of 'initial' must stay where they are, since the window before is evaluated there once: "
                "leave fresh and adaptive out"
            )
        self.points: dict[str, Any] = drawn
        self.evaluation: Points | None = None
        if evaluation is not None:
            self.evaluation = evaluation(cylinder)
        elif exact is not None:
            count = drawn["pde"]
            count = FACTOR * (len(count) if isinstance(count, Points) else POINTS["pde"])
            self.evaluation = cylinder.interior(count, key=host.key(host.EVALUATION))

    def __call__(self, t0: float, t1: float, start: Callable | None = None) -> LeastSquares:
        """The problem on (t0, t1) × space; without a `start`, a function of (t, x…), from the initial values."""
        t0, t1 = check_interval((t0, t1))
        window = Window(self.network, t0, t1)
        table = _Table(self.carry, start, t0) if start is not None else _Table(None, self.initial, t0)
        blocks: dict[str, Any] = {
            name: Residual(_Inside(fn), self.points[name], weight=self.weights[name])
            if fn is not None
            else Residual(_Start(self.carry), self.points[name], data=table, weight=self.weights[name])
            for name, fn in self.blocks.items()
        }
        there: Any = {}
        if self.exact is not None and self.evaluation is not None:
            z = np.array(self.evaluation.x)
            z[:, 0] = t0 + (t1 - t0) * z[:, 0]
            weights = (t1 - t0) * np.asarray(self.evaluation.weights)
            exact = self.exact.values(z) if isinstance(self.exact, Tabulated) else self.exact
            there = {"exact": exact, "evaluation": Points(host.array(z), host.array(weights))}
        return LeastSquares(window, **there, **blocks)

    def whole(self) -> LeastSquares:
        """The problem by one network for all times."""
        return self(*self.interval)


@dataclass(frozen=True)
class _Inside:
    """A residual of the problem's own time, at a point in that of the window."""

    fn: Callable

    def __call__(self, u: Any, z: Array, *data: Array) -> Any:
        return self.fn(u, u.place(z), *data)


@dataclass(frozen=True)
class _Start:
    """What is carried over, less the values it should have."""

    carry: Callable

    def __call__(self, u: Any, z: Array, values: Array) -> Array:
        return jnp.atleast_1d(self.carry(u, u.place(z))) - values


@dataclass(frozen=True)
class _Table:
    """points ↦ the values at the start: of what is carried over, or of the functions of x that are given."""

    carry: Callable | None
    start: Any
    t0: float

    def __call__(self, points: Points) -> Array:
        z = np.array(points.x)
        z[:, 0] = self.t0
        return host.array(np.asarray(_tabulate(self.carry, self.start, host.array(z))))


@eqx.filter_jit
def _tabulate(carry: Callable | None, start: Any, z: Float[Array, "n d"]) -> Float[Array, "n m"]:
    def at(point: Array) -> Array:
        if carry is not None:
            return jnp.atleast_1d(carry(start, point))
        return jnp.concatenate([jnp.atleast_1d(fn(point[1:])) for fn in start]).astype(point.dtype)

    return jax.vmap(at)(z)


def _value(u: Network, z: Array) -> Array:
    return u(z)


def _value_and_rate(u: Network, z: Array) -> Array:
    return jnp.concatenate([jnp.atleast_1d(u(z)), jnp.atleast_1d(partial(u, z, 0))])


def _draw(cylinder: SpaceTime, name: str, count: Any, key: PRNGKeyArray) -> Any:
    """The points of a block."""
    if callable(count):
        return count(cylinder)
    sample = {"pde": cylinder.interior, "initial": cylinder.initial}.get(name, cylinder.boundary)
    return sample(count, key=key, rule="sobol")


def _known(given: Mapping[str, Any] | None, blocks: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The mapping itself, if all its names are blocks."""
    if unknown := set(given or {}) - set(blocks):
        raise ValueError(f"there is no block {min(unknown)!r} to give {what}: there are {', '.join(blocks)}")
    return dict(given or {})


def check_interval(interval: Any) -> tuple[float, float]:
    """Two finite times, the first one first."""
    try:
        start, end = map(float, interval)
    except (TypeError, ValueError):
        raise ValueError(f"interval must be two times such as (0, 1), got {interval!r}") from None
    if not (np.isfinite(start) and np.isfinite(end) and start < end):
        raise ValueError(f"interval must be two finite times, the earlier one first, got ({start:g}, {end:g})")
    return start, end
