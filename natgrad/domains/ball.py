"""Balls in any dimension, and the spheres that bound them.

The cube maps onto the ball by u ↦ center + radius u₀^(1/d) e(u₁, …), with e uniform on the unit sphere: an
angle for d = 2, a height and an angle for d = 3 (Archimedes), a normalized Gaussian vector beyond.

The Gauss rule is a product in polar coordinates: equispaced angles, Gauss-Legendre in the height, and in s =
r² the Gauss rule for the weight s^(d/2-1). The average of a smooth function over the sphere is smooth in r², not
only in r. So m radial points are exact for polynomials of degree 4m - 2, and the numbers of angles are chosen to
match.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import equinox as eqx
import numpy as np
import scipy
from jax.scipy.special import ndtri

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.box import Box
from natgrad.domains.domain import Domain, as_vector
from natgrad.domains.pieces import Pieces, sample
from natgrad.domains.points import Points
from natgrad.options import Positive, checked


class Ball(Domain):
    """The ball of a centre and a radius, a disc for d = 2.

        disc = Ball([0, 0], 1)
        disc.interior(1000, rule="sobol").measure  # π
        disc.boundary(64, rule="gauss").normals    # the points themselves

    Gauss rules cover d = 1, 2, 3. As a tuple, n is (radii, angles) or (radii, heights, angles); on the sphere the
    tuple has no radii. The boundary of a ball with d = 1 is its two ends, for every n and rule.
    """

    center: tuple[float, ...] = eqx.field(static=True)
    radius: float = eqx.field(static=True)

    @checked
    def __init__(self, center, radius: Positive):
        self.center, self.radius = as_vector(center, "center"), float(radius)

    def __repr__(self) -> str:
        return f"Ball({list(self.center)}, {self.radius})"

    @property
    def dim(self) -> int:
        return len(self.center)

    def contains(self, x, tol=None):
        distance, tol = self._distance(x, tol)
        return host.array(distance <= self.radius + tol)

    def on_boundary(self, x, tol=None):
        distance, tol = self._distance(x, tol)
        return host.array(abs(distance - self.radius) <= tol)

    def _distance(self, x, tol):
        x, tol = self.as_coordinates(x, tol)
        return rules.namespace(x).linalg.norm(x - np.array(self.center, x.dtype), axis=-1), tol

    def boundary(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None) -> Points:
        """n points on the sphere, with outward unit normals."""
        return sample(self.boundary_pieces(), n, key, rule, fresh, adaptive)

    def interior_pieces(self) -> Pieces:
        if self.dim == 1:
            return self._segment().interior_pieces()
        return BallPieces(self.center, self.radius, solid=True)

    def boundary_pieces(self) -> Pieces:
        if self.dim == 1:
            return self._segment().boundary_pieces()
        return BallPieces(self.center, self.radius, solid=False)

    def _segment(self) -> Box:
        return Box(self.center[0] - self.radius, self.center[0] + self.radius)

    def bounds(self):
        return tuple(c - self.radius for c in self.center), tuple(c + self.radius for c in self.center)


@dataclass(frozen=True)
class BallPieces(Pieces):
    """A ball (solid) or a sphere in d ≥ 2 dimensions, as a single piece."""

    center: tuple[float, ...]
    radius: float
    solid: bool

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.center) - (not self.solid)

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return self.dim if len(self.center) <= 3 else len(self.center) + self.solid

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        d, r = len(self.center), self.radius
        volume = math.exp(d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1)) * r**d
        return np.array([volume if self.solid else d / r * volume])

    def place(self, piece, u):
        d, center = len(self.center), np.array(self.center, u.dtype)
        if self.solid:
            return center + self.radius * u[:, :1] ** (1 / d) * _direction(u[:, 1:], d), None
        normals = _direction(u, d)
        return center + self.radius * normals, normals

    def axis_counts(self, n, piece):
        d = len(self.center)
        if d > 3:
            raise ValueError(f"rule 'gauss' covers balls of dimension 1 to 3, not {d}; take rule='sobol'")
        if isinstance(n, tuple):
            return n
        if not self.solid:
            m = rules.per_axis(n / 2, 2)
            return (n,) if d == 2 else (m, max(1, round(n / m)))
        if d == 2:
            m = rules.per_axis(n / 4, 2)
            return m, max(1, round(n / m))
        m = rules.per_axis(n / 8, 3)
        return m, 2 * m, max(1, round(n / (2 * m * m)))

    def axis_rules(self, counts, piece):
        d, radial = len(self.center), []
        if self.solid:
            squares, weights = rules.gauss_power(counts[0], d / 2 - 1)
            radial, counts = [(squares ** (d / 2), weights)], counts[1:]
        heights = [rules.gauss_legendre(counts[0])] if d == 3 else []
        return [*radial, *heights, rules.equispaced(counts[-1])]


def _direction(u, d: int):
    """Unit vectors (n, d), uniform on the sphere where u is uniform on the cube."""
    xp = rules.namespace(u)
    if d > 3:
        z = (scipy.special.ndtri if xp is np else ndtri)(u)
        return z / xp.linalg.norm(z, axis=1, keepdims=True)
    angle = 2 * np.pi * u[:, -1]
    circle = xp.stack([xp.cos(angle), xp.sin(angle)], axis=1)
    if d == 2:
        return circle
    height = u[:, :1]
    return xp.concatenate([2 * xp.sqrt(height * (1 - height)) * circle, 2 * height - 1], axis=1)
