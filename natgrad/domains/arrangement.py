"""The boundary of a combination in the plane, exactly: segments and arcs, cut where they meet, and those that remain.

Every boundary in the plane is made of segments and circles. Each is cut at its common points with those of the other
primitives. Between two cuts a curve bounds the combination all along or nowhere; one of its points says which
(`combined.across`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from natgrad.domains import rules
from natgrad.domains.ball import BallPieces
from natgrad.domains.box import BoxPieces
from natgrad.domains.combined import across
from natgrad.domains.pieces import Frozen, Pieces
from natgrad.domains.simplices import Simplices

if TYPE_CHECKING:
    from natgrad.domains.combined import Combined

ROUND_OFF = 1e-11  # of positions, relative to the size of the domain
TANGENT = 1e-6  # cuts as close as this, relative to the size, come of boundaries that touch
SOMEWHERE = 0.4142  # on a curve, and not in the middle, where things that are symmetric may touch


@dataclass(frozen=True)
class Curves(Pieces):
    """Segments a → b and arcs around c, angles from `start` over `sweep`; a row of the table is one of

        0, a₁, a₂, b₁, b₂, sign, curve, owner        r, c₁, c₂, start, sweep, sign, curve, owner

    The outward normal is `sign` times that to the right of a segment, away from the centre of an arc. `curve` numbers
    what was cut, and `owner` the primitive it belongs to.
    """

    table: Frozen

    dim = 1
    cube_dim = 1

    @property
    def arcs(self) -> np.ndarray:
        return self.table.values[:, 0] > 0

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        r, a, b = np.split(self.table.values[:, :5], [1, 3], axis=1)
        return np.where(self.arcs, r[:, 0] * b[:, 1], np.linalg.norm(b - a, axis=1))

    def place(self, piece, u):
        xp = rules.namespace(u)
        rows = xp.asarray(self.table.values.astype(u.dtype))[piece]
        r, a, b, sign = rows[:, :1], rows[:, 1:3], rows[:, 3:5], rows[:, 5:6]
        angle = rows[:, 3:4] + u * rows[:, 4:5]
        radial = xp.concatenate([xp.cos(angle), xp.sin(angle)], axis=1)
        along = xp.where(r > 0, 1, b - a)
        right = xp.stack([along[:, 1], -along[:, 0]], axis=1) / xp.linalg.norm(along, axis=1, keepdims=True)
        return xp.where(r > 0, a + r * radial, (1 - u) * a + u * b), sign * xp.where(r > 0, radial, right)

    def axis_counts(self, n, piece):
        return n if isinstance(n, tuple) else (n,)

    def axis_rules(self, counts, piece):
        r, *_, sweep = self.table.values[piece, :5]
        whole = r > 0 and sweep == 2 * np.pi
        return [rules.equispaced(counts[0]) if whole else rules.gauss_legendre(counts[0])]

    def points(self, t: float) -> np.ndarray:
        """(m, 2): on each curve, where its parameter in [0, 1] is t."""
        return self.place(np.arange(len(self.table.values)), np.full((len(self.table.values), 1), t))[0]

    def extent(self):
        """The corners of the box around the curves."""
        rows = self.table.values
        x = [self.points(0.0), self.points(1.0)]
        for quarter in range(4):  # where an arc is farthest to the right, up, left and down
            turn = (quarter * np.pi / 2 - rows[:, 3]) % (2 * np.pi)
            top = rows[:, 1:3] + rows[:, :1] * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])[quarter]
            x.append(top[self.arcs & (turn <= rows[:, 4])])
        points = np.concatenate(x)
        return tuple(points.min(axis=0).tolist()), tuple(points.max(axis=0).tolist())


def visible(domain: Combined, boundaries: tuple[tuple[int, Pieces], ...]) -> Curves:
    """The parts of these boundaries, with the numbers of their primitives, that bound the domain."""
    whole = [_curves(part.boundary_pieces(), i) for i, part in enumerate(domain.primitives)]
    size, found, first = domain.scale(), [], 0
    for owner, pieces in boundaries:
        curves = _curves(pieces, owner)
        others = np.concatenate([curves[:0], *whole[:owner], *whole[owner + 1 :]])
        for number, row in enumerate(curves):
            cuts = (_cuts_of_arc if row[0] > 0 else _cuts_of_segment)(row, others, ROUND_OFF * size)
            row[6] = first + number
            found += _parts(row, cuts, size)
        first += len(curves)
    pieces = Curves(Frozen(np.array(found).reshape(-1, 8)))
    rows = pieces.table.values.copy()
    where, sign = pieces.place(np.arange(len(rows)), np.full((len(rows), 1), SOMEWHERE))
    rows[:, 5] *= across(domain, rows[:, 7], where, sign)
    return Curves(Frozen(rows[rows[:, 5] != 0]))


def _curves(pieces: Pieces, owner: int) -> np.ndarray:
    """A boundary as rows of a table."""
    if isinstance(pieces, BallPieces):
        return np.array([[pieces.radius, *pieces.center, 0, 2 * np.pi, 1, 0, owner]])
    count = len(pieces.measures)
    a, b = (pieces.place(np.arange(count), np.full((count, pieces.cube_dim), float(end)))[0] for end in (0, 1))
    assert isinstance(pieces, BoxPieces | Simplices)
    _, normals = pieces.place(np.arange(count), np.full((count, pieces.cube_dim), 0.5))
    sign = np.sign(normals[:, 0] * (b - a)[:, 1] - normals[:, 1] * (b - a)[:, 0])
    zero = np.zeros(count)
    return np.column_stack([zero, a, b, sign, zero, np.full(count, owner)])


def _parts(row: np.ndarray, cuts: np.ndarray, size: float) -> list[np.ndarray]:
    """The curve between its cuts, which are parameters in [0, 1]."""
    arc = row[0] > 0
    length = row[0] * row[4] if arc else np.hypot(*(row[3:5] - row[1:3]))
    merge = TANGENT * size / length
    if arc and row[4] == 2 * np.pi:  # a circle begins at its first cut
        cuts = _merged(cuts % 1, merge, period=1.0)
        if not len(cuts):
            return [row]
        ends = np.append(cuts, cuts[0] + 1)
    else:
        cuts = _merged(cuts[(cuts > 0) & (cuts < 1)], merge)
        ends = np.concatenate([[0.0], cuts[(cuts > merge) & (cuts < 1 - merge)], [1.0]])
    parts = np.repeat(row[None], len(ends) - 1, axis=0)
    if arc:
        parts[:, 3], parts[:, 4] = row[3] + row[4] * ends[:-1], row[4] * np.diff(ends)
    else:
        points = (1 - ends[:, None]) * row[1:3] + ends[:, None] * row[3:5]
        parts[:, 1:3], parts[:, 3:5] = points[:-1], points[1:]
    return list(parts)


def _merged(cuts: np.ndarray, close: float, period: float | None = None) -> np.ndarray:
    """Sorted cuts, of which those that are close are one: their mean."""
    cuts = np.sort(cuts)
    if not len(cuts):
        return cuts
    groups = np.split(cuts, np.flatnonzero(np.diff(cuts) > close) + 1)
    if period is not None and len(groups) > 1 and groups[0][0] + period - groups[-1][-1] <= close:
        groups[0] = np.concatenate([groups.pop() - period, groups[0]])
    return np.array([group.mean() for group in groups])


def _cuts_of_segment(row: np.ndarray, others: np.ndarray, tol: float) -> np.ndarray:
    """The parameters of the common points of a segment and other curves."""
    a, d = row[1:3], row[3:5] - row[1:3]
    squared, arcs = d @ d, others[:, 0] > 0
    segments, circles = others[~arcs], others[arcs]
    ends = np.concatenate([segments[:, 1:3], segments[:, 3:5]])  # those that lie on it
    cuts = [((ends - a) @ d / squared)[np.abs(_cross(d, ends - a)) <= tol * np.sqrt(squared)]]
    e = segments[:, 3:5] - segments[:, 1:3]
    across, offset = _cross(d, e), segments[:, 1:3] - a
    slanted = np.abs(across) > 1e-12 * np.sqrt(squared * np.sum(e**2, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        t, s = _cross(offset, e) / across, _cross(offset, d) / across
    cuts.append(t[slanted & (s >= 0) & (s <= 1)])
    foot = (circles[:, 1:3] - a) @ d / squared
    height = np.linalg.norm(a + foot[:, None] * d - circles[:, 1:3], axis=1)
    meet = height <= circles[:, 0] + tol
    half = np.sqrt(np.maximum(circles[:, 0] ** 2 - height**2, 0) / squared)[meet]
    return np.concatenate([*cuts, foot[meet] - half, foot[meet] + half])


def _cuts_of_arc(row: np.ndarray, others: np.ndarray, tol: float) -> np.ndarray:
    """The cuts of a circle, as parts of its circumference."""
    r, center, arcs = row[0], row[1:3], others[:, 0] > 0
    segments, circles = others[~arcs], others[arcs]
    a, d = segments[:, 1:3] - center, segments[:, 3:5] - segments[:, 1:3]
    length = np.linalg.norm(d, axis=1)
    foot = -np.sum(a * d, axis=1) / length**2
    height = np.linalg.norm(a + foot[:, None] * d, axis=1)
    half = np.sqrt(np.maximum(r**2 - height**2, 0)) / length
    points = []
    for t in (foot - half, foot + half):
        on = (height <= r + tol) & (t * length >= -tol) & ((t - 1) * length <= tol)
        points.append((a + t[:, None] * d)[on])
    angles = [np.arctan2(*np.concatenate(points).T[::-1])]
    offset = circles[:, 1:3] - center
    apart = np.linalg.norm(offset, axis=1)
    meet = (apart <= r + circles[:, 0] + tol) & (apart >= np.abs(r - circles[:, 0]) - tol) & (apart > tol)
    offset, apart, radius = offset[meet], apart[meet], circles[meet, 0]
    half = np.arccos(np.clip((apart**2 + r**2 - radius**2) / (2 * apart * r), -1, 1))
    middle = np.arctan2(offset[:, 1], offset[:, 0])
    return np.concatenate([*angles, middle - half, middle + half]) / (2 * np.pi)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
