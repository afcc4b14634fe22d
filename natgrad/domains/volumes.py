"""Measures of combinations that are not in the plane.

Boxes and balls in space: slices z = const are combinations in the plane, of boxes and discs, whose areas and curves are
known exactly (`cells`, `arrangement`). A volume is the integral of these areas over z, the area of a part of a sphere
that of R times the angle of its arcs (Archimedes), the area of a part of an upright face that of its length; what is
seen of a level face is an area itself. Between the heights where slices change their form everything is smooth, but at
the ends, where there are roots; z = middle - half cos(π s) removes them. To a relative accuracy of about 1e-9.

Other primitives and dimensions: shares of Sobol sequences, 2¹⁸ points in all, good to some 1e-4.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np
import scipy

from natgrad.domains import rules
from natgrad.domains.arrangement import visible
from natgrad.domains.ball import Ball, BallPieces
from natgrad.domains.box import Box, BoxPieces
from natgrad.domains.cells import inside
from natgrad.domains.combined import Combined
from natgrad.domains.domain import Domain
from natgrad.domains.pieces import Frozen, Pieces
from natgrad.domains.simplices import Simplices

if TYPE_CHECKING:
    from natgrad.domains.rejection import Inside, Visible

SAMPLES, LEAST = 2**18, 2**10
ACCURACY = 1e-9
MOST = 400  # intervals of z, of 21 slices each


def measures(pieces: Inside | Visible) -> np.ndarray:
    """The measures of pieces that are parts of their images."""
    domain = pieces.domain
    if domain.dim != 3 or not all(isinstance(part, Box | Ball) for part in domain.primitives):
        return _estimated(pieces)
    known = _sliced(domain)
    if not hasattr(pieces, "boundaries"):
        return np.array([known["volume"]])
    keys: list = []
    for owner, boundary in pieces.boundaries:
        assert isinstance(boundary, BoxPieces | BallPieces)
        keys += [(owner, face) for face in (boundary.faces if isinstance(boundary, BoxPieces) else [None])]
    return np.array([known[key] for key in keys])


def _estimated(pieces: Pieces) -> np.ndarray:
    count = max(LEAST, SAMPLES // len(pieces.sizes))
    u = rules.sobol(count, pieces.cube_dim).astype(float)
    shares = [np.mean(pieces.keep(np.full(len(u), i), u)) for i in range(len(pieces.sizes))]  # type: ignore[arg-type]
    return pieces.sizes * np.array(shares)


@functools.lru_cache(maxsize=64)
def _sliced(domain: Combined) -> dict:
    """The volume, and the area of what is seen of each face and sphere, by the number of its primitive."""
    parts = domain.primitives
    heights = _heights(parts)
    upright = [(i, face) for i, part in enumerate(parts) for face in _surfaces(part)]

    def slice_of(s: float) -> np.ndarray:
        i = min(int(s), len(heights) - 2)
        middle, half = (heights[i] + heights[i + 1]) / 2, (heights[i + 1] - heights[i]) / 2
        z = middle - half * np.cos(np.pi * (s - i))
        return half * np.pi * np.sin(np.pi * (s - i)) * _slice(domain, z, upright)

    low, high = 0.0, float(len(heights) - 1)
    scale = ACCURACY * domain.scale() ** 3
    values, _ = scipy.integrate.quad_vec(
        slice_of, low, high, points=np.arange(1.0, high), epsabs=scale, epsrel=ACCURACY, limit=MOST, norm="max"
    )
    known = {"volume": float(values[0])} | dict(zip(upright, values[1:].tolist(), strict=True))
    for i, part in enumerate(parts):
        if isinstance(part, Box):
            known |= {
                (i, (2, side)): _level(domain, i, z) for side, z in (("lower", part.lower[2]), ("upper", part.upper[2]))
            }
    return known


def _surfaces(part: Domain) -> list:
    """The spheres and upright faces of a primitive; in the order of the curves of its slices."""
    return [(axis, side) for axis in (0, 1) for side in ("lower", "upper")] if isinstance(part, Box) else [None]


def _slice(domain: Combined, z: float, upright: list) -> np.ndarray:
    """The area of a slice, and what is seen of the surfaces for each unit of height."""
    flat = _cut(domain, z)
    assert isinstance(flat, Combined)
    boundaries = tuple((i, part.boundary_pieces()) for i, part in enumerate(flat.primitives))
    curves = visible(flat, boundaries)
    rows, lengths = curves.table.values, curves.measures
    seen = np.zeros(len(upright))
    first = {i: upright.index((i, _surfaces(part)[0])) for i, part in enumerate(domain.primitives)}
    begin = np.cumsum([0, *(len(pieces.measures) for _, pieces in boundaries)])
    for row, length in zip(rows, lengths, strict=True):
        owner = int(row[7])
        part = domain.primitives[owner]
        density = part.radius * row[4] if isinstance(part, Ball) else length
        seen[first[owner] + int(row[6]) - begin[owner]] += density
    return np.append(inside(flat, curves).measure, seen)


def _level(domain: Combined, owner: int, z: float) -> float:
    """The area that is seen of a level face: where the domain is on one side of it only, less what others own."""
    whole = lambda box: Box(box.lower[:2], box.upper[:2])
    face: Domain = whole(domain.primitives[owner])
    for earlier in domain.primitives[:owner]:
        if isinstance(earlier, Box) and z in (earlier.lower[2], earlier.upper[2]):
            face = Combined.unchecked("-", face, whole(earlier))
    below, above = (_cut(domain, z, side) for side in (-1, 1))
    either, both = (
        inside(Combined.unchecked("&", Combined.unchecked(operation, below, above), face)).measure for operation in "|&"
    )
    return either - both


def _cut(domain: Domain, z: float, side: int = 0) -> Domain:
    """The slice at a height, or just below (side -1) or above (1) it."""
    if isinstance(domain, Combined):
        return Combined.unchecked(domain.operation, _cut(domain.a, z, side), _cut(domain.b, z, side))
    if isinstance(domain, Box):
        low, high = domain.lower[2], domain.upper[2]
        there = low < z < high or (z == low and side > 0) or (z == high and side < 0)
        return Box(domain.lower[:2], domain.upper[:2]) if there else Nothing()
    assert isinstance(domain, Ball)
    squared = (domain.radius - z + domain.center[2]) * (domain.radius + z - domain.center[2])
    return Ball(domain.center[:2], squared**0.5) if squared > 0 else Nothing()


class Nothing(Domain):
    """The empty slice of a primitive."""

    dim = 2

    def contains(self, x, tol=None):
        return np.zeros(x.shape[:-1], bool)

    on_boundary = contains

    def interior_pieces(self) -> Pieces:
        raise NotImplementedError

    def boundary_pieces(self) -> Pieces:
        return Simplices(Frozen(np.zeros((0, 2, 2))), Frozen(np.zeros((0, 2))))

    def boundary(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None):
        raise NotImplementedError

    def bounds(self):
        return (0.0, 0.0), (0.0, 0.0)


def _heights(parts: tuple[Domain, ...]) -> np.ndarray:
    """Where slices change their form: at faces, poles, and the ends and corners of the curves two surfaces share."""
    boxes, balls = [part for part in parts if isinstance(part, Box)], [part for part in parts if isinstance(part, Ball)]
    found = [z for box in boxes for z in (box.lower[2], box.upper[2])]
    found += [ball.center[2] + sign * ball.radius for ball in balls for sign in (-1, 1)]
    bottom, top = min(found), max(found)

    def around(center: float, squared: float) -> None:
        found.extend(center + sign * squared**0.5 for sign in (-1, 1) if squared > 0)

    for ball, box in itertools.product(balls, boxes):
        x, y = ([(v[axis] - ball.center[axis]) ** 2 for v in (box.lower, box.upper)] for axis in (0, 1))
        for away in (*x, *y, *(a + b for a in x for b in y)):
            around(ball.center[2], ball.radius**2 - away)
    for one, other in itertools.combinations(balls, 2):
        offset = np.subtract(other.center, one.center)
        apart = float(np.linalg.norm(offset))
        if apart > 0:
            along = (apart**2 + one.radius**2 - other.radius**2) / (2 * apart)
            level = 1 - (offset[2] / apart) ** 2
            around(one.center[2] + along * offset[2] / apart, (one.radius**2 - along**2) * level)
    z = np.unique(np.clip(found, bottom, top))
    return z[np.append(True, np.diff(z) > 1e-9 * (top - bottom))]
