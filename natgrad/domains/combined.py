"""Constructive solid geometry: differences, unions and intersections of domains.

A combination is the closure of its inside, so that parts without area vanish: the common edge of two boxes that are
united, the rim of a hole that is filled again. Away from the boundaries of its primitives a point is inside or outside
by the operations alone. On one of them its neighbours decide: those across the boundary, where the normal is known, and
those all around it elsewhere.

In the plane everything is exact (`arrangement`, `cells`): the boundary is cut into segments and arcs, the inside into
cells between them. Elsewhere points are drawn by rejection, and measures are known to the accuracy that `volumes` says.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.domain import Domain
from natgrad.domains.pieces import Frozen, Pieces, sample
from natgrad.domains.points import Points
from natgrad.domains.simplices import Simplices

WORDS = {"-": "difference", "|": "union", "&": "intersection"}
AROUND = 16  # neighbours that are asked, a dimension


class Combined(Domain):
    """What `a - b`, `a | b` and `a & b` give: the difference, the union and the intersection of two domains.

        square, hole = Box([0, 0], [1, 1]), Ball([0.5, 0.5], 0.2)
        plate = square - hole
        plate.measure                                      # 1 - 0.04 π
        plate.boundary(100, part=hole, rule="gauss")       # normals point into the hole
        plate.boundary(50, part=square, faces=[(0, "lower")], rule="gauss")

    A part of the boundary is named by the domain that it belongs to, or by a list of them; further arguments choose a
    part of this domain's. Where boundaries coincide, they belong to the first domain. Gauss rules cover the plane; as a
    tuple, n is (m₁, m₂) for each cell and (m,) for each curve.
    """

    operation: str = eqx.field(static=True)
    a: Domain
    b: Domain

    def __init__(self, operation: str, a: Domain, b: Domain):
        self.operation, self.a, self.b = operation, a, b
        if a.dim != b.dim:
            raise ValueError(
                f"a {WORDS[operation]} needs domains of one dimension, got {a} in {a.dim}D and {b} in {b.dim}D"
            )
        if empty(self):
            why = {"-": "the second covers the first", "&": "they do not overlap"}.get(operation, "")
            raise ValueError(f"the {WORDS[operation]} of {a} and {b} is empty: {why}")

    @classmethod
    def unchecked(cls, operation: str, a: Domain, b: Domain) -> Combined:
        """A combination that may be empty."""
        new = object.__new__(cls)
        for name, value in (("operation", operation), ("a", a), ("b", b)):
            object.__setattr__(new, name, value)
        return new

    def __repr__(self) -> str:
        return f"({self.a} {self.operation} {self.b})"

    @property
    def dim(self) -> int:
        return self.a.dim

    @property
    def primitives(self) -> tuple[Domain, ...]:
        """The domains that it is made of, from left to right."""
        return sum((part.primitives if isinstance(part, Combined) else (part,) for part in (self.a, self.b)), ())

    def contains(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        side, inside, _ = self._around(x, tol)
        return host.array((side > 0) | (side == 0) & inside)

    def on_boundary(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        side, inside, outside = self._around(x, tol)
        return host.array((side == 0) & inside & outside)

    def _around(self, x, tol):
        """The side of points; and whether some neighbour is inside, some outside, where a boundary is near."""
        side = sides(self, x, tol)
        step = max(8 * tol, 512 * float(jnp.finfo(x.dtype).eps) * self.scale())
        near = np.flatnonzero(side.reshape(-1) == 0) if rules.namespace(x) is np else np.arange(x[..., 0].size)
        neighbours = x.reshape(-1, 1, self.dim)[near] + step * _directions(self.dim).astype(x.dtype)
        found = sides(self, neighbours)
        both = []
        for some in ((found > 0).any(axis=1), (found < 0).any(axis=1)):
            if rules.namespace(x) is np:
                whole = np.zeros(x[..., 0].size, bool)
                whole[near] = some
                some = whole
            both.append(some.reshape(x.shape[:-1]))
        return side, *both

    def boundary(
        self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, part: Any = None, **of_part
    ) -> Points:
        """n points on the boundary, or on the part of it that belongs to a primitive, or to several in a list."""
        return sample(self.boundary_pieces(part, **of_part), n, key, rule, fresh, adaptive)

    def interior_pieces(self) -> Pieces:
        return interior(self)

    def boundary_pieces(self, part: Any = None, **of_part) -> Pieces:
        if isinstance(part, str):  # a name in a mesh
            chosen = tuple(i for i, known in enumerate(self.primitives) if part in dict(getattr(known, "parts", ())))
            of_part = {**of_part, "part": part}
            if not chosen:
                raise ValueError(f"no primitive of {self} has a boundary {part!r}")
        else:
            chosen = self._owners(part, of_part)
        pieces = around(self, chosen, tuple(sorted((k, _hashable(v)) for k, v in of_part.items())))
        if not pieces.measure > 0:
            raise ValueError(f"no boundary of {self} belongs to {part}")
        return pieces

    def _owners(self, part: Any, of_part: dict) -> tuple[int, ...]:
        """The numbers of the primitives that a part names."""
        known = self.primitives
        if part is None:
            if of_part:
                raise ValueError(f"{next(iter(of_part))}= goes with part=, the domain whose boundary it chooses from")
            return tuple(range(len(known)))
        chosen = []
        for one in part if isinstance(part, list | tuple) else [part]:
            wanted = one.primitives if isinstance(one, Combined) else (one,)
            if unknown := [w for w in wanted if not any(w == k for k in known)]:
                names = ", ".join(map(str, known))
                raise ValueError(f"{unknown[0]!r} is no part of the boundary, the parts are {names}")
            chosen += [i for i, k in enumerate(known) if any(k == w for w in wanted)]
        return tuple(sorted(set(chosen)))

    def scale(self):
        return max(part.scale() for part in (self.a, self.b))

    def bounds(self):
        if self.dim == 2:
            return self.boundary_pieces().extent()  # type: ignore[attr-defined]
        lower, upper = _box(self)
        return tuple(lower.tolist()), tuple(upper.tolist())


def combine(operation: str, a: Any, b: Any) -> Domain:
    """The combination; of two cylinders of one time, or of one family of parameters, the cylinder over it."""
    if a.cylinder is None and b.cylinder is None:
        return Combined(operation, a, b)
    if type(a) is type(b) and a.cylinder == b.cylinder:
        return a.on_base(combine(operation, a.base, b.base))
    raise ValueError(f"{operation} takes cylinders over the same interval or parameters: combine their bases first")


def sides(domain: Domain, x, tol: float | None = None):
    """1 inside, -1 outside; with a tolerance also 0 near the boundary of a primitive, unless the operations decide."""
    xp = rules.namespace(x)
    if isinstance(domain, Combined):
        a, b = sides(domain.a, x, tol), sides(domain.b, x, tol)
        return xp.maximum(a, b) if domain.operation == "|" else xp.minimum(a, -b if domain.operation == "-" else b)
    side = xp.where(_asked(domain.contains, x, 0.0), 1, -1)
    return side if tol is None else xp.where(_asked(domain.on_boundary, x, tol), 0, side)


def _asked(question, x, tol: float | None = None):
    """The answer in NumPy where the points are, whatever else is being traced."""
    if rules.namespace(x) is not np:
        return question(x, tol)
    with jax.ensure_compile_time_eval():
        return np.asarray(question(x, tol))


def across(domain: Combined, owner: int | np.ndarray, x, normals):
    """How points on the boundaries of the primitives `owner` bound the domain: 1 with this normal, -1 with the opposite
    one, 0 where they do not, or where an earlier primitive has the same boundary."""
    xp = rules.namespace(x)
    step = float(jnp.finfo(x.dtype).eps) ** 0.6 * domain.scale() * normals
    inner, outer = sides(domain, x - step) > 0, sides(domain, x + step) > 0
    sign = xp.where(inner & ~outer, 1, xp.where(outer & ~inner, -1, 0))
    for i, earlier in enumerate(domain.primitives):
        later = np.flatnonzero(np.broadcast_to(owner > i, len(x)))
        if xp is np:
            sign[later[_asked(earlier.on_boundary, x[later])]] = 0
        elif len(later):
            sign = xp.where(earlier.on_boundary(x), 0, sign)
    return sign


def empty(domain: Combined) -> bool:
    """Whether nothing is inside; in space, or so little that none of some thousand points finds it."""
    lower, upper = _box(domain)
    if not (lower < upper).all():
        return True
    x = lower + rules.sobol(2**8 if domain.dim < 3 else 2**14, domain.dim).astype(float) * (upper - lower)
    if (sides(domain, x) > 0).any():
        return False
    return domain.dim > 2 or not interior(domain).measure > 0


def _box(domain: Domain) -> np.ndarray:
    """The corners (2, d) of a box around a domain, of the boxes around its primitives."""
    if not isinstance(domain, Combined):
        return np.array(domain.bounds())
    (a, c), (b, d) = _box(domain.a), _box(domain.b)
    union, both = (np.minimum(a, b), np.maximum(c, d)), (np.maximum(a, b), np.minimum(c, d))
    return np.array({"|": union, "&": both, "-": (a, c)}[domain.operation])


@functools.lru_cache(maxsize=256)
def interior(domain: Combined) -> Pieces:
    """The pieces of the inside."""
    if domain.dim == 1:
        ends = np.unique([end for part in domain.primitives for end in part.bounds()])
        inside = sides(domain, (ends[:-1, None] + ends[1:, None]) / 2) > 0
        return Simplices(Frozen(np.stack([ends[:-1], ends[1:]], axis=1)[inside, :, None]))
    if domain.dim == 2:
        from natgrad.domains.cells import inside

        return inside(domain)
    from natgrad.domains.rejection import Inside

    return Inside(domain)


@functools.lru_cache(maxsize=256)
def around(domain: Combined, owners: tuple[int, ...], of_part: tuple[tuple[str, Any], ...]) -> Pieces:
    """The pieces of the boundary, or of the part of it that these primitives own."""
    boundaries = tuple((i, domain.primitives[i].boundary_pieces(**dict(of_part))) for i in owners)
    if domain.dim == 1:
        found = []
        for owner, pieces in boundaries:
            x, normals = pieces.place(np.arange(len(pieces.measures)), np.full((len(pieces.measures), 1), 0.5))
            found.append(np.concatenate([x, normals * across(domain, owner, x, normals)[:, None]], axis=1))
        x, normals = np.concatenate(found).T
        return Simplices(Frozen(x[normals != 0, None, None]), Frozen(normals[normals != 0, None]))
    if domain.dim == 2:
        from natgrad.domains.arrangement import visible

        return visible(domain, boundaries)
    from natgrad.domains.rejection import Visible

    return Visible(domain, boundaries)


@functools.cache
def _directions(d: int) -> np.ndarray:
    """Unit vectors (m, d) that look everywhere, and along no axis."""
    if d == 1:
        return np.array([[-1.0], [1.0]])
    u = scipy.stats.qmc.Sobol(d, seed=0).random_base2((AROUND * d - 1).bit_length())
    v = scipy.special.ndtri(np.clip(u, 1e-6, 1 - 1e-6))
    if d == 2:
        angle = 2 * np.pi * (np.arange(len(u)) + 0.3) / len(u)
        v = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, Iterable) and not isinstance(value, str) else value
