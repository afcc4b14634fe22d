"""The stream function of a lid-driven cavity near the corners under its lid, where its derivatives have no limit.

With X, Y the distances from a wall and from the lid, ψ = Σ rᵏ F_k(θ) (Moffatt, 1964; Botella and Peyret, 1998). What
multiplies r and r² follows from the corner alone, by an ordinary equation for each power:

    F'''' + (k² + (k−2)²) F'' + k² (k−2)² F = Re Σ_{i+j=k} (j−2) F_i' W_j − i F_i W_j',   W_j = F_j'' + j² F_j.

`Walls` is these terms times g(X) g(Y), g = 1 + O(s⁶) with a double zero at the other wall, and a polynomial that has
what is left of the lid's velocity: a function with ψ = ∂ψ/∂n = 0 on the walls and ψ = 0, ψ_y = lid(x) on the lid.
"""

import math
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

    def derivative(self, z: np.ndarray, m: int, n: int) -> np.ndarray:
        """∂ᵐ⁺ⁿψ / ∂xᵐ∂yⁿ at many points (n, 2), for m + n ≤ 4."""
        x, y = np.asarray(z, float).T
        left = product(self.corners[0], (x, 1, 1 - y, -1), (m, n))
        right = product(self.corners[1], (1 - x, -1, 1 - y, -1), (m, n))
        return right - left + derived(Polynomial(self.rest), m)(x) * derived(RISE, n)(y)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """∇ψ, ∇Δψ and Δ²ψ at many points: (n, 5)."""
        d = lambda m, n: self.derivative(z, m, n)
        third = d(3, 0) + d(1, 2), d(2, 1) + d(0, 3)
        return np.stack([d(1, 0), d(0, 1), *third, d(4, 0) + 2 * d(2, 2) + d(0, 4)], axis=1)


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


def derived(p: Polynomial, n: int) -> Polynomial:
    return p.deriv(n) if n else p


def product(f, at: tuple, orders: tuple[int, int]) -> np.ndarray:
    """A derivative of S(X, Y) g(X) g(Y) by Leibniz' rule, at (X, its sign in x, Y, its sign in y)."""
    x, sign_x, y, sign_y = at
    m, n = orders
    total = np.zeros_like(x)
    for i in range(m + 1):
        for j in range(n + 1):
            cuts = derived(CUT, m - i)(x) * derived(CUT, n - j)(y)
            total += math.comb(m, i) * math.comb(n, j) * singular(f, x, y, i, j) * cuts
    return sign_x**m * sign_y**n * total


def singular(f, x: np.ndarray, y: np.ndarray, m: int, n: int) -> np.ndarray:
    """∂ᵐ⁺ⁿ/∂Xᵐ∂Yⁿ of Σ rᵏ F_k(θ), by ∂_X rᵏF = rᵏ⁻¹ (k cos θ F − sin θ F'), ∂_Y rᵏF = rᵏ⁻¹ (k sin θ F + cos θ F')."""
    r, s = np.hypot(x, y), 4 / np.pi * np.arctan2(y, x) - 1
    nodes = chebyshev.chebpts1(ANGLES + 8)
    theta = np.pi / 4 * (nodes + 1)
    total = np.zeros_like(r)
    for k, c in zip(POWERS, f, strict=True):
        power, g = k, chebyshev.poly2cheb(c)
        for axis in [0] * m + [1] * n:
            value, slope = chebyshev.chebval(nodes, g), 4 / np.pi * chebyshev.chebval(nodes, chebyshev.chebder(g))
            cos, sin = np.cos(theta), np.sin(theta)
            new = (power * cos * value - sin * slope, power * sin * value + cos * slope)[axis]
            power, g = power - 1, chebyshev.chebfit(nodes, new, len(nodes) - 1)
        total += r ** float(power) * chebyshev.chebval(s, g)
    return total
