"""The domains that every test runs over, and integrals known in closed form."""

import math

import numpy as np

from natgrad.domains import Ball, Box, Interval, Mesh, Polygon

ELL = [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]
# Not convex, clockwise, with a straight angle and a reflex one next to thin corners.
CROWN = [(0, 0), (-0.5, 2.0), (1, 0.7), (1.7, 2.5), (2.2, 0.8), (3.4, 2.1), (3, 0), (1.5, 0)]
# Eight triangles of a square.
GRID = (
    [(x, y) for y in (0, 1, 2.5) for x in (0, 1.5, 2)],
    [t for i in (0, 1, 3, 4) for t in ((i, i + 1, i + 4), (i, i + 3, i + 4))],
)

SPACES = {
    "interval": Interval(-1, 2),
    "segment": Box(0.5, 2),
    "square": Box([0, 0], [1, 1]),
    "brick": Box([-1, 0, 2], [1, 0.5, 5]),
    "box5": Box([0] * 5, [1, 2, 1, 0.5, 1]),
    "ball1": Ball(0.5, 2),
    "disc": Ball([1, -2], 1.5),
    "ball3": Ball([0, 1, 2], 0.7),
    "ball5": Ball([0.5] * 5, 2),
    "triangle": Polygon([(0, 0), (2, 0.5), (0.3, 1.5)]),
    "ell": Polygon(ELL),
    "crown": Polygon(CROWN),
    "gap": Interval(0, 2) - Interval(0.5, 1),
    "plate": Box([0, 0], [2, 1]) - Ball([0.5, 0.5], 0.3) - Ball([1.3, 0.4], 0.2) - Ball([2, 1], 0.4),
    "keyhole": (Ball([0, 0], 1) | Box([-0.3, -2], [0.3, 0])) & Polygon([(-2, -2), (2, -2), (2, 2)]),
    "dice": (Box([0, 0, 0], [1, 1, 1]) & Ball([0.5, 0.5, 0.5], 0.7)) - Ball([1, 0.5, 0.5], 0.3),
    "grid": Mesh(*GRID),
}
SPACETIMES = {f"time-{name}": Interval(0.5, 2) * space for name, space in SPACES.items()}
DOMAINS = SPACES | SPACETIMES

NO_GAUSS = {"ball5", "time-ball5", "dice", "time-dice"}


def box_moment(lower, upper, powers) -> float:
    """∫ ∏ xᵢ^pᵢ over a box."""
    a, b, p = np.array(lower), np.array(upper), np.array(powers) + 1
    return float(np.prod((b**p - a**p) / p))


def sphere_moment(powers) -> float:
    """∫ ∏ xᵢ^pᵢ over the unit sphere: 0 for an odd power, else 2 ∏ Γ((pᵢ + 1)/2) / Γ(Σ (pᵢ + 1)/2)."""
    if any(p % 2 for p in powers):
        return 0.0
    halves = [(p + 1) / 2 for p in powers]
    return 2 * math.prod(map(math.gamma, halves)) / math.gamma(sum(halves))


def ball_moment(powers) -> float:
    """∫ ∏ xᵢ^pᵢ over the unit ball."""
    return sphere_moment(powers) / (sum(powers) + len(powers))


def polygon_moment(vertices, powers) -> float:
    """∫ x^p y^q over a polygon, by Green's theorem with fine Gauss rules along the edges."""
    p, q = powers
    nodes, weights = np.polynomial.legendre.leggauss(20)
    t, w = (nodes + 1) / 2, weights / 2
    total = 0.0
    for (ax, ay), (bx, by) in zip(vertices, [*vertices[1:], vertices[0]], strict=True):
        x, y = ax + t * (bx - ax), ay + t * (by - ay)
        total += np.sum(w * x ** (p + 1) * y**q) / (p + 1) * (by - ay)
    return total


def integral(points, values) -> float:
    """Σ wᵢ vᵢ in numpy, which compiles nothing."""
    return float(np.asarray(points.weights) @ np.asarray(values))
