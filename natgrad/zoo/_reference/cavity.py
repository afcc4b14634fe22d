"""The lid-driven cavity by Galerkin's method for the stream function ψ, the singularities of its corners subtracted.

ν Δ²ψ = u·∇Δψ in (0, 1)² with u = (ψ_y, −ψ_x), ν = 1/Re; ψ = ∂ψ/∂n = 0 on the walls, ψ = 0 and ψ_y = lid(x) at y = 1.

In a corner under the lid, with X, Y the distances from the wall and the lid, ψ = Σ rᵏ F_k(θ) (Moffatt, 1964; Botella and
Peyret, 1998). What multiplies r, r² and r³ follows from the corner alone, by an ordinary equation for each power:

    F'''' + (k² + (k−2)²) F'' + k² (k−2)² F = Re Σ_{i+j=k} (j−2) F_i' W_j − i F_i W_j',   W_j = F_j'' + j² F_j.

These terms times g(X) g(Y), g = 1 + O(s⁶) near the corner with a double zero at the other wall, and a polynomial that
has the rest of the lid's velocity, are taken from ψ. The rest, O(r^3.74) at these corners, is a sum of Shen's (1994)
products of Legendre polynomials with ψ = ∂ψ/∂n = 0; Newton's iteration finds it, through rising Reynolds numbers.
"""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Polynomial, chebyshev, legendre

from natgrad.zoo._reference.cache import kept
from natgrad.zoo._reference.expansions import clenshaw, finite

LIDS = {"parabola": Polynomial([0, 4, -4]), "constant": Polynomial([1])}
MODES = 56  # in each direction
ANGLES = 24  # Chebyshev coefficients of F_k on (0, π/2)
POWERS = (1, 2)
FLAT = 6
FASTEST = 1_500  # the largest Reynolds number that `MODES` resolve


def cutoff() -> Polynomial:
    """g(s) = 1 − (m+1) sᵐ + m sᵐ⁺¹, which has a double zero at 1."""
    return Polynomial([1, *[0] * (FLAT - 1), -(FLAT + 1), FLAT])


@cache
def cavity(reynolds: float, lid: str, modes: int = MODES) -> Callable:
    """The velocity (u, v) at a point (x, y) of the cavity.

    Where the lid is a parabola, 4x(1 − x), it is accurate to about ten digits; where it is constant, to about seven at
    Re = 100 and five at Re = 1000 (`tests/zoo/test_cavity.py` refines both).
    """
    finite("cavity", reynolds=reynolds)
    if lid not in LIDS:
        raise ValueError(f"lid of cavity must be one of {', '.join(LIDS)}, got {lid!r}")
    if not 0 <= reynolds <= FASTEST:
        raise ValueError(f"the reference solution of cavity needs 0 ≤ reynolds ≤ {FASTEST}, got {reynolds}")
    tables = kept(tabulate, reynolds=float(reynolds), lid=lid, modes=modes)
    c, corners, rest = tables["psi"], tables["corners"], tables["rest"]
    u, v = 2 * legendre.legder(c, axis=1), -2 * legendre.legder(c, axis=0)
    g, width = cutoff().coef, len(c)

    def near(x, y):
        """The part of ψ that has the singularities and the lid's velocity."""
        left = singular(corners[0], x, 1 - y) * horner(g, x)
        right = singular(corners[1], 1 - x, 1 - y) * horner(g, 1 - x)
        return (right - left) * horner(g, 1 - y) + horner(rest, x) * (y - 1) * y**2

    def solution(x):
        slopes = jax.grad(lambda z: near(z[0], z[1]))(x)
        p, q = polynomials(2 * x[0] - 1, width), polynomials(2 * x[1] - 1, width)
        smooth = [p[: t.shape[0]] @ jnp.asarray(t, x.dtype) @ q[: t.shape[1]] for t in (u, v)]
        return jnp.stack([smooth[0] + slopes[1], smooth[1] - slopes[0]])

    return solution


def singular(f: np.ndarray, x, y):
    """Σ rᵏ F_k(θ) at a point (X, Y), and 0 in the corner."""
    inside = x**2 + y**2 > 0
    x = jnp.where(inside, x, 1.0)
    angle = jnp.arctan2(y, x)
    r = jnp.where(inside, jnp.hypot(x, y), 0.0)
    return sum(r**k * clenshaw(jnp.asarray(c, r.dtype), 4 * angle / jnp.pi - 1) for k, c in zip(POWERS, f, strict=True))


def horner(c: np.ndarray, s):
    value = jnp.zeros_like(s)
    for a in c[::-1]:
        value = value * s + float(a)
    return value


def polynomials(s, n: int):
    """P_0(s), …, P_{n−1}(s)."""

    def step(carry, k):
        before, now = carry
        return (now, ((2 * k + 1) * s * now - k * before) / (k + 1)), now

    _, later = jax.lax.scan(step, (jnp.ones_like(s), s), jnp.arange(1, n, dtype=s.dtype))
    return jnp.concatenate([jnp.ones_like(s)[None], later])


def tabulate(reynolds: float, lid: str, modes: int) -> dict[str, np.ndarray]:
    """Legendre coefficients of the smooth part, Chebyshev coefficients of F_k in both corners, the rest of the lid."""
    ladder = [reynolds]
    while ladder[0] > 30:
        ladder.insert(0, ladder[0] / 3)
    coarse = min(modes, 28)
    c, before = np.zeros((coarse, coarse)), None
    for number in ladder:  # the coarse solution leads to the next Reynolds number
        cavity = Cavity(number, lid, coarse)
        c = newton(cavity, c if before is None else c + cavity.projected(before.known[2] - cavity.known[2]))
        before = cavity
    cavity = Cavity(reynolds, lid, modes)
    c = newton(cavity, np.pad(c, (0, modes - coarse)))
    basis = shen(modes)
    return {"psi": basis.T @ c @ basis, "corners": cavity.corners, "rest": cavity.rest.coef}


def newton(cavity: "Cavity", c: np.ndarray) -> np.ndarray:
    for _ in range(20):
        residual, jacobian = cavity.equations(c)
        step = np.linalg.solve(jacobian, residual.ravel()).reshape(c.shape)
        c = c - step
        if np.abs(step).max() < 1e-13 * max(1.0, float(np.abs(c).max())):
            return c
    if not np.abs(step).max() < 1e-9:
        raise ValueError("Newton's iteration for the flow in the cavity did not converge")
    return c


class Cavity:
    """Galerkin's equations on a Gauss grid."""

    def __init__(self, reynolds: float, lid: str, modes: int):
        profile = LIDS[lid]
        self.nu = 1 / reynolds if reynolds else 1.0
        self.inertia = float(reynolds > 0)
        leftward = [profile.coef, -profile(Polynomial([1, -1])).coef]  # of X, as each corner sees the lid
        self.corners = np.stack([angular(reynolds, wall) for wall in leftward])
        left, right = (Polynomial(wall[: len(POWERS)]) * cutoff() for wall in leftward)
        self.rest = profile - left + right(Polynomial([1, -1]))
        nodes, weights = legendre.leggauss(modes + 40)
        self.x, self.w = (1 + nodes) / 2, np.outer(weights, weights) / 4
        powers = [shen(modes)]
        for _ in range(2):
            powers.append(2 * legendre.legder(powers[-1], axis=1))
        self.phi = [legendre.legval(nodes, p.T) for p in powers]  # φ, φ', φ'' (modes, nodes)
        self.known = self.given()

    def given(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ψ_x, ψ_y and Δψ of what has the singularities and the lid's velocity."""
        x, y = np.meshgrid(self.x, self.x, indexing="ij")
        left, right = polar(self.corners[0], x, 1 - y), polar(self.corners[1], 1 - x, 1 - y)
        a, b, h = slopes(cutoff(), x, 1), slopes(cutoff(), 1 - x, -1), slopes(cutoff(), 1 - y, -1)
        p, q = slopes(self.rest, x, 1), slopes(Polynomial([0, 0, -1, 1]), y, 1)
        walls = p[1] * q[0], p[0] * q[1], p[2] * q[0] + p[0] * q[2]
        corners = zip(product(right, (-1, -1), b, h), product(left, (1, -1), a, h), walls, strict=True)
        return tuple(one - other + wall for one, other, wall in corners)

    def projected(self, vortex: np.ndarray) -> np.ndarray:
        """The coefficients of ψ with ψ = ∂ψ/∂n = 0 whose Δψ is nearest to `vortex`."""
        f, _, e = self.phi
        moments = e @ (self.w * vortex) @ f.T + f @ (self.w * vortex) @ e.T
        terms = [(e, e, [(self.w, f, f)]), (e, f, [(self.w, f, e)]), (f, e, [(self.w, e, f)]), (f, f, [(self.w, e, e)])]
        return np.linalg.solve(assemble(terms), moments.ravel()).reshape(moments.shape)

    def equations(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ν (Δψ, Δφ) + (Δψ, u·∇φ) for each φ, and its derivative."""
        f, d, e = self.phi
        psi_x, psi_y = self.known[0] + d.T @ c @ f, self.known[1] + f.T @ c @ d
        w = self.known[2] + e.T @ c @ f + f.T @ c @ e
        one = self.nu * self.w
        u, v, vortex = (self.inertia * self.w * field for field in (psi_y, -psi_x, w))
        residual = e @ (one * w) @ f.T + f @ (one * w) @ e.T + d @ (w * u) @ f.T + f @ (w * v) @ d.T
        terms = [  # derivatives of φ and of the unknown in x; a factor and their derivatives in y
            (e, e, [(one, f, f)]),
            (e, f, [(one, f, e)]),
            (f, e, [(one, e, f), (v, d, f)]),
            (f, f, [(one, e, e), (v, d, e)]),
            (d, e, [(u, f, f)]),
            (d, f, [(u, f, e), (vortex, f, d)]),
            (f, d, [(-vortex, d, f)]),
        ]
        return residual, assemble(terms)


def assemble(terms: list[tuple[np.ndarray, np.ndarray, list]]) -> np.ndarray:
    """Σ over the grid of a(x, y) φ_i(x) φ_k(x) φ_j(y) φ_l(y), as a matrix of pairs (i, j) and (k, l)."""
    n, m = terms[0][0].shape
    total = np.zeros((n * n, n * n))
    for row, column, parts in terms:
        inner = sum((a[:, None, :] * p) @ q.T for a, p, q in parts).reshape(m, n * n)
        total += (row[:, None, :] * column[None, :, :]).reshape(n * n, m) @ inner
    return total.reshape(n, n, n, n).transpose(0, 2, 1, 3).reshape(n * n, n * n)


def shen(n: int) -> np.ndarray:
    """Legendre coefficients (n, n + 4) of polynomials that vanish at ±1 with their derivatives."""
    k = np.arange(n)
    basis = np.zeros((n, n + 4))
    basis[k, k], basis[k, k + 2], basis[k, k + 4] = 1, -2 * (2 * k + 5) / (2 * k + 7), (2 * k + 3) / (2 * k + 7)
    return basis / np.sqrt(2 * (2 * k[:, None] + 3) ** 2 * (2 * k[:, None] + 5))


def angular(reynolds: float, lid: np.ndarray) -> np.ndarray:
    """Chebyshev coefficients of F_1, F_2, F_3 by collocation; F = F' = 0 at π/2, F = 0 and F' = lid's part at 0."""
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
    return np.stack([found[k] for k in POWERS])


def polar(f: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    """S = Σ rᵏ F_k(θ), S_X, S_Y and ΔS."""
    r, s = np.hypot(x, y), 4 * np.arctan2(y, x) / np.pi - 1
    value, radial, turning, bend = (np.zeros_like(r) for _ in range(4))
    for k, c in zip(POWERS, f, strict=True):
        g = [chebyshev.chebval(s, (4 / np.pi) ** i * chebyshev.chebder(c, i)) for i in range(3)]
        value += r**k * g[0]
        radial += k * r ** (k - 1) * g[0]
        turning += r ** (k - 1) * g[1]
        bend += r ** (k - 2.0) * (g[2] + k**2 * g[0])
    return value, (x * radial - y * turning) / r, (y * radial + x * turning) / r, bend


def slopes(p: Polynomial, s: np.ndarray, sign: int) -> tuple[np.ndarray, ...]:
    """p(s) and its two derivatives in the coordinate that s is ±1 times, up to a constant."""
    return p(s), sign * p.deriv()(s), p.deriv(2)(s)


def product(corner: tuple, signs: tuple[int, int], a: tuple, b: tuple) -> tuple[np.ndarray, ...]:
    """∂_x, ∂_y and Δ of S(X, Y) a(x) b(y), where X and Y are ± x and ± y up to constants."""
    s, s_x, s_y, bend = corner[0], signs[0] * corner[1], signs[1] * corner[2], corner[3]
    dx, dy = (s_x * a[0] + s * a[1]) * b[0], (s_y * b[0] + s * b[1]) * a[0]
    curved = bend * a[0] * b[0] + 2 * (s_x * a[1] * b[0] + s_y * a[0] * b[1]) + s * (a[2] * b[0] + a[0] * b[2])
    return dx, dy, curved

