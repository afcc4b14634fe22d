"""Sets as unions of pieces, each the image of the unit cube under a measure-preserving map.

Every set of this package is such a union. A box is one piece, and its boundary 2d pieces. A polygon is its
triangles, and its boundary the edges. A ball is one piece, and so is a sphere. A space-time cylinder is the product
of an interval with the pieces of the space domain; its bottom and top are the product of one time with these pieces.
A set says how to carry points of the cube over (`place`), and which one-dimensional Gauss rules suit the axes of its
cube (`axis_rules`). `sample` does the rest, for all sets and rules:

- monte-carlo: each point picks its piece with probability proportional to its measure; equal weights.
- sobol: each piece gets points in proportion to its measure, from a scrambled sequence of its own. The weights
  of a piece sum to its measure. Where n is so small that a piece gets no point, one sequence serves all pieces: its
  first coordinate picks the piece, and all weights are equal.
- gauss: as sobol, with a product rule on every piece, so that every piece has at least one point.

A piece may be a part of its image (`keep`): the points that fall beside it are rejected. Monte Carlo then draws a fixed
number of candidates, so many that they are too few once in 10¹² times; points are repeated where they are.
"""

from __future__ import annotations

import abc
import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.moving import ByResidual, Policy, policy
from natgrad.domains.points import Points

AnyArray = Array | np.ndarray
COPIES = 4  # of the points, while they are drawn
# Points and, on boundaries, outward unit normals.
Placed = tuple[Float[AnyArray, "n d"], Float[AnyArray, "n d"] | None]


@dataclass(frozen=True, eq=False)
class Frozen:
    """An array that is compared and hashed by its values, and does not change."""

    values: np.ndarray = field(repr=False)
    digest: bytes = field(init=False, repr=False)

    def __post_init__(self):
        values = np.array(self.values)
        values.setflags(write=False)
        object.__setattr__(self, "values", values)
        head = f"{values.dtype}{values.shape}".encode()
        object.__setattr__(self, "digest", hashlib.sha256(head + values.tobytes()).digest())

    def __eq__(self, other) -> bool:
        return isinstance(other, Frozen) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class Pieces(abc.ABC):
    """A union of p pieces of dimension `dim`, each the image of (0, 1)^cube_dim, or a part of it."""

    dim: int
    cube_dim: int
    measures: np.ndarray  # (p,)

    @abc.abstractmethod
    def place(self, piece: Int[AnyArray, "n"], u: Float[AnyArray, "n k"]) -> Placed:
        """Carry points of the cube over to their pieces, uniform to uniform: NumPy in, NumPy out, and traceable."""

    @abc.abstractmethod
    def axis_counts(self, n: int | tuple[int, ...], piece: int) -> tuple[int, ...]:
        """The numbers of Gauss points along the axes of the piece's cube, given their product or a tuple."""

    def axis_rules(self, counts: tuple[int, ...], piece: int) -> list[rules.Rule1D]:
        return [rules.gauss_legendre(m) for m in counts]

    def keep(self, piece: Int[AnyArray, "n"], u: Float[AnyArray, "n k"]) -> Bool[AnyArray, "n"] | None:
        """Which of these points belong to the set; None where all do."""
        return None

    @property
    def sizes(self) -> Float[np.ndarray, "p"]:
        """The measures of the images, of which `measures` are the parts that belong to the set."""
        return self.measures

    @property
    def whole(self) -> bool:
        """Whether the pieces are all of their images, and `keep` keeps all points."""
        return bool(np.array_equal(self.sizes, self.measures))

    @property
    def measure(self) -> float:
        return float(np.sum(self.measures))


@dataclass(frozen=True)
class Wrapped(Pieces):
    """The pieces of a base with coordinates before or behind: `split` gives the part of the cube that is the base's."""

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

    @property
    def sizes(self) -> np.ndarray:
        return self.base.sizes

    def keep(self, piece, u):
        return self.base.keep(piece, u)

    def axis_counts(self, n, piece):
        return self.base.axis_counts(n, piece)

    def axis_rules(self, counts, piece):
        return self.base.axis_rules(counts, piece)


@dataclass(frozen=True)
class Slice(Wrapped):
    """{t} × pieces: the base at one value of a first coordinate t."""

    t: float

    def place(self, piece, u):
        x, _ = self.base.place(piece, u)
        xp = rules.namespace(x)
        return xp.concatenate([xp.full((len(x), 1), self.t, x.dtype), x], axis=1), None


@dataclass(frozen=True)
class Product(Wrapped):
    """pieces × ∏ (lowerᵢ, upperᵢ): further coordinates behind those of the base, or before them (`first`), where time
    stands. Normals are 0 in them."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    first: bool = False

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.lower) + self.base.dim

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return len(self.lower) + self.base.cube_dim

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return self._size * self.base.measures

    @property
    def sizes(self) -> np.ndarray:
        return self._size * self.base.sizes

    @property
    def _size(self) -> float:
        return float(np.prod(np.subtract(self.upper, self.lower)))

    def _split(self, u):
        """Those of the base, and the others."""
        k = len(self.lower)
        return (u[..., k:], u[..., :k]) if self.first else (u[..., :-k], u[..., -k:])

    def _join(self, base, others):
        return [others, base] if self.first else [base, others]

    def keep(self, piece, u):
        return self.base.keep(piece, self._split(u)[0])

    def place(self, piece, u):
        xp = rules.namespace(u)
        base, others = self._split(u)
        x, normals = self.base.place(piece, base)
        lower, upper = np.array(self.lower, u.dtype), np.array(self.upper, u.dtype)
        if normals is not None:
            normals = xp.concatenate(self._join(normals, xp.zeros_like(others)), axis=1)
        return xp.concatenate(self._join(x, lower + others * (upper - lower)), axis=1), normals

    def axis_counts(self, n, piece):
        k = len(self.lower)
        if isinstance(n, tuple):
            base, others = self._split(np.array(n))
            return tuple(map(int, np.concatenate(self._join(self.base.axis_counts(tuple(base), piece), others))))
        m = rules.per_axis(n, self.dim)
        base = self.base.axis_counts(max(1, round(n / m**k)), piece)
        return tuple(map(int, np.concatenate(self._join(base, (m,) * k))))

    def axis_rules(self, counts, piece):
        base, others = self._split(np.array(counts))
        inner = self.base.axis_rules(tuple(map(int, base)), piece)
        outer = [rules.gauss_legendre(int(m)) for m in others]
        return outer + inner if self.first else inner + outer


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
        """n other points for a step, under jit too: one Sobol sequence shifted modulo 1, or independent ones, these
        also on pieces that are parts of their images, beside which a shifted point may fall."""
        if self.rule == "sobol" and self.policy is True and self.pieces.whole:
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
    share = min(1.0, pieces.measure / float(np.sum(pieces.sizes)))
    candidates = n if share == 1 else math.ceil((n + 7.5 * math.sqrt(n * (1 - share)) + 60) / share)
    piece, u = _picked(pieces, rules.monte_carlo(candidates, pieces.cube_dim + (len(pieces.sizes) > 1), key))
    if (keep := pieces.keep(piece, u)) is not None:
        xp = rules.namespace(u)
        found = xp.argsort(~keep, stable=True)[np.arange(n) % xp.maximum(keep.sum(), 1)]
        piece, u = xp.asarray(piece)[found], u[found]
    return piece, u, np.full(n, pieces.measure / n)


def _picked(pieces: Pieces, u):
    """Pieces in proportion to their sizes by the first coordinate, where there are several; the other coordinates."""
    if len(pieces.sizes) == 1:
        return np.zeros(len(u), int), u
    shares = np.cumsum(pieces.sizes)[:-1] / np.sum(pieces.sizes)
    return rules.namespace(u).searchsorted(shares.astype(u.dtype), u[:, 0]), u[:, 1:]


def _sobol(pieces: Pieces, n: int, key):
    """The first points of each piece's sequence that are kept."""
    counts = np.array(rules.apportion(n, pieces.measures))
    present = np.flatnonzero(pieces.measures)
    if not counts[present].all():
        draw = lambda m: _picked(pieces, rules.sobol(m, pieces.cube_dim + 1, rules.seed_of(key)))
        return *_first(pieces, n, pieces.measure / float(np.sum(pieces.sizes)), draw), np.full(n, pieces.measure / n)
    blocks = []
    for i in present:
        share, own = pieces.measures[i] / pieces.sizes[i], partial(_sequence, pieces, key, int(i))
        blocks.append(_first(pieces, int(counts[i]), share, own))
    piece, u = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return piece, u, (pieces.measures[present] / counts[present]).repeat(counts[present])


def _sequence(pieces: Pieces, key, i: int, m: int):
    """m points of the sequence of a piece."""
    return np.full(m, i), rules.sobol(m, pieces.cube_dim, rules.seed_of(key, i))


def _first(pieces: Pieces, n: int, share: float, draw):
    """The first n points of a sequence that are kept, given the share that is."""
    m = n if share == 1 else math.ceil(1.1 * n / share) + 8
    while True:
        piece, u = draw(m)
        keep = pieces.keep(piece, u)
        found = np.arange(len(u)) if keep is None else np.flatnonzero(keep)
        if len(found) >= n:
            return piece[found[:n]], u[found[:n]]
        m *= 2
        host.afford(COPIES * m * pieces.cube_dim, f"the candidates for {n} points")


def _gauss(pieces: Pieces, n: int | tuple[int, ...]):
    if isinstance(n, tuple) and len(n) != (k := pieces.cube_dim):
        raise ValueError(f"n={n} must hold {k} numbers of points, one for each axis, or be a single number")
    p = len(pieces.measures)
    totals: list = [n] * p if isinstance(n, tuple) else rules.apportion(n, pieces.measures)
    counts = [pieces.axis_counts(total or 1, i) for i, total in enumerate(totals)]
    blocks = [rules.tensor(pieces.axis_rules(m, i)) for i, m in enumerate(counts)]
    piece = np.repeat(np.arange(p), [len(u) for u, _ in blocks])
    weights = np.concatenate([w * m for (_, w), m in zip(blocks, pieces.measures, strict=True)])
    return piece, np.concatenate([u for u, _ in blocks]), weights
