"""The stream function of a lid-driven cavity near the corners under its lid, where its derivatives have no limit.

With X, Y the distances from a wall and from the lid, ψ = Σ rᵏ F_k(θ) (Moffatt, 1964; Botella and Peyret, 1998). What
multiplies r and r² follows from the corner alone, by an ordinary equation for each power:

    F'''' + (k² + (k−2)²) F'' + k² (k−2)² F = Re Σ_{i+j=k} (j−2) F_i' W_j − i F_i W_j',   W_j = F_j'' + j² F_j.

`Walls` is these terms times g(X) g(Y), g = 1 + O(s⁶) with a double zero at the other wall, and a polynomial that has
what is left of the lid's velocity: a function with ψ = ∂ψ/∂n = 0 on the walls and ψ = 0, ψ_y = lid(x) on the lid.
"""

from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Polynomial, chebyshev

LIDS = {"parabola": Polynomial([0, 4, -4]), "constant": Polynomial([1])}
ANGLES = 24  # Chebyshev coefficients of F_k on (0, π/2)
POWERS = (1, 2)
FLAT = 6
CUT = Polynomial([1, *[0] * (FLAT - 1), -(FLAT + 1), FLAT])  # g
RISE = Polynomial([0, 0, -1, 1])  # of the polynomial, in y
Slopes = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Walls:
    """ψ with these values on the walls, at a point (x, y): an infinitely smooth function but in two corners."""

    corners: tuple[tuple[tuple[float, ...], ...], ...]  # of the left and the right one: F_k as powers of 4θ/π − 1
    rest: tuple[float, ...]

    def __call__(self, z):
        x, y = z
        left = near(self.corners[0], x, 1 - y) * horner(CUT.coef, x)
        right = near(self.corners[1], 1 - x, 1 - y) * horner(CUT.coef, 1 - x)
        return (right - left) * horner(CUT.coef, 1 - y) + horner(self.rest, x) * (y - 1) * y**2

    def tables(self, x: np.ndarray, y: np.ndarray) -> Slopes:
        """ψ_x, ψ_y and Δψ at many points."""
        left, right = polar(self.corners[0], x, 1 - y), polar(self.corners[1], 1 - x, 1 - y)
        a, b, h = slopes(CUT, x, 1), slopes(CUT, 1 - x, -1), slopes(CUT, 1 - y, -1)
        p, q = slopes(Polynomial(self.rest), x, 1), slopes(RISE, y, 1)
        smooth = p[1] * q[0], p[0] * q[1], p[2] * q[0] + p[0] * q[2]
        parts = zip(product(right, (-1, -1), b, h), product(left, (1, -1), a, h), smooth, strict=True)
        along, across, bend = (one - other + third for one, other, third in parts)
        return along, across, bend


@cache
def walls(reynolds: float, lid: str) -> Walls:
    """ψ on the walls, and near the corners as the flow at that Reynolds number has it."""
    profile, mirror = LIDS[lid], Polynomial([1, -1])
    seen = [profile.coef, -profile(mirror).coef]  # the lid's velocity as powers of X; in the left corner ψ is −Σ rᵏ F_k
    left, right = (Polynomial(coefficients[: len(POWERS)]) * CUT for coefficients in seen)
    rest = profile - left + right(mirror)
    corners = tuple(tuple(tuple(f.tolist()) for f in angular(reynolds, coefficients)) for coefficients in seen)
    return Walls(corners, tuple(rest.coef.tolist()))


def angular(reynolds: float, lid: np.ndarray) -> list[np.ndarray]:
    """F_1 and F_2 as powers of 4θ/π − 1, by collocation; F = F' = 0 at π/2, F = 0 and F' = lid's part at 0."""
    s, scale = chebyshev.chebpts2(ANGLES), 4 / np.pi
    eye = np.eye(ANGLES)
    d = [chebyshev.chebval(s, scale**i * chebyshev.chebder(eye, i, axis=0)).T for i in range(5)]
    found: dict[int, np.ndarray] = {}
    for k in POWERS:
        a, b = k**2, (k - 2) ** 2
        matrix, force = d[4] + (a + b) * d[2] + a * b * d[0], np.zeros(ANGLES)
        for i in range(1, k):
            j = k - i
            vortex = [d[n + 2] @ found[j] + j**2 * d[n] @ found[j] for n in (0, 1)]
            force += reynolds * ((j - 2) * (d[1] @ found[i]) * vortex[0] - i * (d[0] @ found[i]) * vortex[1])
        rows = [0, 1, -2, -1]
        matrix[rows] = d[0][0], d[1][0], d[1][-1], d[0][-1]
        force[rows] = 0, lid[k - 1] if k <= len(lid) else 0, 0, 0
        found[k] = np.linalg.solve(matrix, force)
    return [chebyshev.cheb2poly(found[k]) for k in POWERS]


def near(f, x, y):
    """Σ rᵏ F_k(θ) at a point (X, Y), and 0 in the corner."""
    inside = x**2 + y**2 > 0
    x = jnp.where(inside, x, 1.0)
    r, s = jnp.sqrt(x**2 + y**2), 4 / np.pi * jnp.arctan2(y, x) - 1
    value = sum(r**k * horner(c, s) for k, c in zip(POWERS, f, strict=True) if np.any(c))
    return jnp.where(inside, value, 0.0)


def horner(c, s):
    value = float(c[-1]) + jnp.zeros_like(s)
    for a in c[-2::-1]:
        value = value * s + float(a)
    return value


def polar(f, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """S = Σ rᵏ F_k(θ), S_X, S_Y and ΔS."""
    r, s = np.hypot(x, y), 4 * np.arctan2(y, x) / np.pi - 1
    value, radial, turning, bend = (np.zeros_like(r) for _ in range(4))
    for k, c in zip(POWERS, f, strict=True):
        p = Polynomial(c)
        g = [p(s), 4 / np.pi * p.deriv()(s), (4 / np.pi) ** 2 * p.deriv(2)(s)]
        value += r**k * g[0]
        radial += k * r ** (k - 1) * g[0]
        turning += r ** (k - 1) * g[1]
        bend += r ** (k - 2.0) * (g[2] + k**2 * g[0])
    return value, (x * radial - y * turning) / r, (y * radial + x * turning) / r, bend


def slopes(p: Polynomial, s: np.ndarray, sign: int) -> Slopes:
    """p(s) and its two derivatives in the coordinate that s is ±1 times, up to a constant."""
    return p(s), sign * p.deriv()(s), p.deriv(2)(s)


def product(corner: tuple[np.ndarray, ...], signs: tuple[int, int], a: Slopes, b: Slopes) -> Slopes:
    """∂_x, ∂_y and Δ of S(X, Y) a(x) b(y), where X and Y are ± x and ± y up to constants."""
    s, s_x, s_y, bend = corner[0], signs[0] * corner[1], signs[1] * corner[2], corner[3]
    dx, dy = (s_x * a[0] + s * a[1]) * b[0], (s_y * b[0] + s * b[1]) * a[0]
    curved = bend * a[0] * b[0] + 2 * (s_x * a[1] * b[0] + s_y * a[0] * b[1]) + s * (a[2] * b[0] + a[0] * b[2])
    return dx, dy, curved
