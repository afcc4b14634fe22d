"""Triangles of a simple polygon, by ear clipping; set-up work in numpy."""

from __future__ import annotations

import numpy as np

_ROUND_OFF = 1e-12  # relative to the size of the polygon


def signed_area(corners: np.ndarray) -> float:
    """The area inside a ring of corners (n, 2), negative where it runs clockwise."""
    local = corners - corners[0]
    return 0.5 * float(np.sum(_cross(local, np.roll(local, -1, axis=0))))


def check_simple(corners: np.ndarray) -> None:
    """Refuse rings without area, with repeated corners, or with edges that meet away from shared corners."""
    n, size = len(corners), float(np.ptp(corners, axis=0).max())
    tol = _ROUND_OFF * size
    ends = np.roll(corners, -1, axis=0)
    along = ends - corners
    for k in np.flatnonzero(np.linalg.norm(along, axis=1) <= tol):
        raise ValueError(f"vertices {k} and {(k + 1) % n} of the polygon coincide; give every corner once")
    if np.linalg.matrix_rank(corners - corners[0], tol=tol) < 2:
        raise ValueError("the polygon has zero area: its vertices lie on one line")
    for i in range(n):
        j = (i + 1) % n
        longer = max(np.linalg.norm(along[i]), np.linalg.norm(along[j]))
        if np.dot(along[i], along[j]) < 0 and abs(_cross(along[i], along[j])) <= tol * longer:
            raise ValueError(f"the polygon is self-intersecting: edge {j} runs back along edge {i}")
        others = np.array([k for k in range(i + 2, n) if (k + 1) % n != i], int)
        for k in others[_meet(corners[i], ends[i], corners[others], ends[others], tol)]:
            raise ValueError(
                f"the polygon is self-intersecting: edges {i} and {k} meet; list the corners in their order"
            )
    if abs(signed_area(corners)) <= tol * size:
        raise ValueError("the polygon has zero area")


def triangulate(corners: np.ndarray) -> tuple[tuple[int, int, int], ...]:
    """Counter-clockwise triangles, as indices of corners, that fill a simple polygon of either orientation.

    An ear is a convex corner whose triangle holds no other corner; a simple polygon always has one. The ear with
    the roundest triangle is cut off first. Straight corners are removed without a triangle.
    """
    ring = list(range(len(corners)))
    if signed_area(corners) < 0:
        ring.reverse()
    flat = _ROUND_OFF * float(np.ptp(corners, axis=0).max()) ** 2
    triangles = []
    while len(ring) > 2:
        before, after = np.roll(ring, 1), np.roll(ring, -1)
        a, b, c = corners[before], corners[ring], corners[after]
        turn = _cross(b - a, c - b)
        straight = np.flatnonzero(np.abs(turn) <= flat)
        if straight.size:
            del ring[straight[0]]
            continue
        sides = np.sum((b - a) ** 2 + (c - b) ** 2 + (a - c) ** 2, axis=1)
        for i in np.argsort(-turn / sides, kind="stable"):
            others = [k for k in ring if k not in (before[i], ring[i], after[i])]
            if turn[i] > 0 and not _in_triangle(corners[others], a[i], b[i], c[i]).any():
                break
        else:
            raise ValueError("the polygon could not be triangulated: some corners are too close")
        triangles.append((int(before[i]), int(ring[i]), int(after[i])))
        del ring[i]
    return tuple(triangles)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def _in_triangle(x: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Whether points lie in a closed counter-clockwise triangle."""
    return (_cross(b - a, x - a) >= 0) & (_cross(c - b, x - b) >= 0) & (_cross(a - c, x - c) >= 0)


def _meet(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray, tol: float) -> np.ndarray:
    """Whether the segment pq crosses or touches the segments ab, (m, 2) each."""
    apart = _cross(q - p, a - p) * _cross(q - p, b - p) < 0
    cross = apart & (_cross(b - a, p - a) * _cross(b - a, q - a) < 0)
    touch = np.minimum(_distance(p, a, b), _distance(q, a, b)) <= tol
    return cross | touch | (np.minimum(_distance(a, p, q), _distance(b, p, q)) <= tol)


def _distance(x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """From points to segments, broadcasting."""
    along, offset = b - a, x - a
    t = np.clip(np.sum(offset * along, axis=-1) / np.sum(along**2, axis=-1), 0, 1)
    return np.linalg.norm(offset - t[..., None] * along, axis=-1)
