"""Sets as unions of pieces, each the image of the unit cube under a measure-preserving map.

Every set of this package is such a union. A box is one piece, and its boundary 2d pieces. A polygon is its
triangles, and its boundary the edges. A ball is one piece, and so is a sphere. A space-time cylinder is the product
of an interval with the pieces of the space domain; its bottom and top are the product of one time with these pieces.
A set says how to carry points of the cube over (`place`), and which one-dimensional Gauss rules suit the axes of its
cube (`axis_rules`). `sample` does the rest, for all sets and rules:

- monte-carlo: each point picks its piece with probability proportional to its measure; equal weights.
- sobol: each piece gets points in proportion to its measure, from a scrambled sequence of its own. The weights
  of a piece sum to its measure. Where n is so small that a piece gets no point, all weights are equal
  instead.
- gauss: as sobol, with a product rule on every piece, so that every piece has at least one point.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.moving import ByResidual, Policy, policy
from natgrad.domains.points import Points

AnyArray = Array | np.ndarray
COPIES = 4  # of the points, while they are drawn
# Points and, on boundaries, outward unit normals.
Placed = tuple[Float[AnyArray, "n d"], Float[AnyArray, "n d"] | None]


class Pieces(abc.ABC):
    """A union of p pieces of dimension `dim`, each the image of (0, 1)^cube_dim."""

    dim: int
    cube_dim: int
    measures: np.ndarray  # (p,)

    @abc.abstractmethod
    def place(self, piece: Int[AnyArray, "n"], u: Float[AnyArray, "n k"]) -> Placed:
        """Carry points of the cube over to their pieces, uniform to uniform: NumPy in, NumPy out, and traceable."""

    @abc.abstractmethod
    def axis_counts(self, n: int | tuple[int, ...], piece: int) -> tuple[int, ...]:
        """The numbers of Gauss points along the axes of the piece's cube, given their product or a tuple."""

    def axis_rules(self, counts: tuple[int, ...]) -> list[rules.Rule1D]:
        return [rules.gauss_legendre(m) for m in counts]

    @property
    def measure(self) -> float:
        return float(np.sum(self.measures))


@dataclass(frozen=True)
class Cylinder(Pieces):
    """(start, end) × pieces: a first coordinate t before those of the base; normals have no t component."""

    start: float
    end: float
    base: Pieces

    @property
    def dim(self) -> int:  # type: ignore[override]
        return 1 + self.base.dim

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return 1 + self.base.cube_dim

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return (self.end - self.start) * self.base.measures

    def place(self, piece, u):
        xp = rules.namespace(u)
        x, normals = self.base.place(piece, u[:, 1:])
        t = self.start + u[:, :1] * (self.end - self.start)
        if normals is not None:
            normals = xp.concatenate([xp.zeros_like(t), normals], axis=1)
        return xp.concatenate([t, x], axis=1), normals

    def axis_counts(self, n, piece):
        if isinstance(n, tuple):
            return n[:1] + self.base.axis_counts(n[1:], piece)
        m = rules.per_axis(n, self.dim)
        return (m, *self.base.axis_counts(max(1, round(n / m)), piece))

    def axis_rules(self, counts):
        return [rules.gauss_legendre(counts[0]), *self.base.axis_rules(counts[1:])]


@dataclass(frozen=True)
class Slice(Pieces):
    """{t} × pieces: the base at one value of a first coordinate t."""

    t: float
    base: Pieces

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.base.dim

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return self.base.cube_dim

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return self.base.measures

    def place(self, piece, u):
        x, _ = self.base.place(piece, u)
        xp = rules.namespace(x)
        return xp.concatenate([xp.full((len(x), 1), self.t, x.dtype), x], axis=1), None

    def axis_counts(self, n, piece):
        return self.base.axis_counts(n, piece)

    def axis_rules(self, counts):
        return self.base.axis_rules(counts)


@dataclass(frozen=True)
class Drawn:
    """How points were drawn: how many, on which pieces, by which rule; and how they move."""

    pieces: Pieces
    rule: str
    count: int
    policy: Policy = None

    def again(self, n: int, key: PRNGKeyArray) -> Points:
        """n other points. A Gauss rule has no other points of its kind; a Sobol sequence takes its place."""
        return sample(self.pieces, n, key, "sobol" if self.rule == "gauss" else self.rule)

    def anew(self, n: int, key: PRNGKeyArray) -> Points:
        """n other points for a step, under jit too: one Sobol sequence shifted modulo 1, or independent ones."""
        if self.rule == "sobol" and self.policy is True:
            piece, u, weights = _sobol(self.pieces, n, None)
            return _placed(self.pieces, piece, rules.shifted(u, key), weights)
        return _placed(self.pieces, *_monte_carlo(self.pieces, n, key))


def sample(
    pieces: Pieces,
    n: int | Sequence[int],
    key: PRNGKeyArray | None,
    rule: str,
    fresh: bool = False,
    adaptive: ByResidual | None = None,
) -> Points:
    """n points on a set by one of the rules, with weights that sum to its measure (see the module's head).

    Sets of dimension 0, the ends of an interval, are finite: every rule gives each of their points once.
    """
    rules.check_rule(rule)
    moves = policy(fresh, adaptive, rule, pieces.dim)
    count = rules.check_count(n, rule)
    total = math.prod(count) if isinstance(count, tuple) else count
    host.afford(COPIES * total * max(1, pieces.dim), f"{total} points in {pieces.dim} dimensions")
    if pieces.dim == 0:
        p = len(pieces.measures)
        piece, u, weights = np.arange(p), np.zeros((p, pieces.cube_dim)), pieces.measures
    elif rule == "gauss":
        piece, u, weights = _gauss(pieces, count)
    else:
        assert isinstance(count, int)
        key = rules.as_key(key, rule)
        piece, u, weights = (_monte_carlo if rule == "monte-carlo" else _sobol)(pieces, count, key)
    return replace(_placed(pieces, piece, u, weights), origin=(Drawn(pieces, rule, len(weights), moves),))


def _placed(pieces: Pieces, piece, u, weights) -> Points:
    """Points of the cube, on their pieces."""
    x, normals = pieces.place(piece, u)
    dtype = jnp.result_type(float)
    outward = None if normals is None else host.array(normals, dtype)
    return Points(host.array(x, dtype), host.array(weights, dtype), outward)


def _monte_carlo(pieces: Pieces, n: int, key):
    p = len(pieces.measures)
    u = rules.monte_carlo(n, pieces.cube_dim + (p > 1), key)
    if p == 1:
        return np.zeros(n, int), u, np.full(n, pieces.measure / n)
    shares = np.cumsum(pieces.measures)[:-1] / pieces.measure
    piece = rules.namespace(u).searchsorted(shares.astype(u.dtype), u[:, 0])
    return piece, u[:, 1:], np.full(n, pieces.measure / n)


def _sobol(pieces: Pieces, n: int, key):
    counts = rules.apportion(n, pieces.measures)
    u = [rules.sobol(m, pieces.cube_dim, rules.seed_of(key, i)) for i, m in enumerate(counts) if m]
    each = pieces.measures / counts if all(counts) else np.full(len(counts), pieces.measure / n)
    return np.repeat(np.arange(len(counts)), counts), np.concatenate(u), np.repeat(each, counts)


def _gauss(pieces: Pieces, n: int | tuple[int, ...]):
    if isinstance(n, tuple) and len(n) != (k := pieces.cube_dim):
        raise ValueError(f"n={n} must hold {k} numbers of points, one for each axis, or be a single number")
    p = len(pieces.measures)
    totals: list = [n] * p if isinstance(n, tuple) else rules.apportion(n, pieces.measures)
    counts = [pieces.axis_counts(total or 1, i) for i, total in enumerate(totals)]
    blocks = [rules.tensor(pieces.axis_rules(m)) for m in counts]
    piece = np.repeat(np.arange(p), [len(u) for u, _ in blocks])
    weights = np.concatenate([w * m for (_, w), m in zip(blocks, pieces.measures, strict=True)])
    return piece, np.concatenate([u for u, _ in blocks]), weights
