"""The lid-driven cavity by Galerkin's method for the stream function ψ.

ν Δ²ψ = u·∇Δψ in (0, 1)² with u = (ψ_y, −ψ_x), ν = 1/Re; ψ = ∂ψ/∂n = 0 on the walls, ψ = 0 and ψ_y = lid(x) at y = 1.
The boundary values and the singularities of the corners (`corners.py`) are taken from ψ. What is left is O(r³) at the
corners, and O(r^3.74) where the lid's velocity vanishes there; it is a sum of Shen's (1994) products of Legendre
polynomials with ψ = ∂ψ/∂n = 0. Newton's iteration finds it, through rising Reynolds numbers.
"""

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import legendre

from natgrad.zoo._reference.cache import kept
from natgrad.zoo._reference.corners import LIDS, walls
from natgrad.zoo._reference.expansions import finite

MODES = 48  # in each direction
FIRST = 70.0  # a Reynolds number that Newton's iteration reaches from nothing
FASTEST = 1_500.0  # the largest Reynolds number


@cache
def cavity(reynolds: float, lid: str, modes: int = MODES) -> Callable:
    """The velocity (u, v) at a point (x, y) of the cavity; `lid` is "parabola", 4x(1 − x), or "constant", 1."""
    finite("cavity", reynolds=reynolds)
    if lid not in LIDS:
        raise ValueError(f"lid of cavity must be one of {', '.join(LIDS)}, got {lid!r}")
    if not 0 <= reynolds <= FASTEST:
        raise ValueError(f"the reference solution of cavity needs 0 ≤ reynolds ≤ {FASTEST}, got {reynolds}")
    edge = walls(float(reynolds), lid)
    c = kept(smooth, reynolds=float(reynolds), lid=lid, modes=modes, edge=repr(edge))["psi"]
    u, v = 2 * legendre.legder(c, axis=1), -2 * legendre.legder(c, axis=0)

    def velocity(x):
        slope = jax.grad(edge)(x)
        p, q = polynomials(2 * x[0] - 1, len(c)), polynomials(2 * x[1] - 1, len(c))
        rest = [p[: t.shape[0]] @ jnp.asarray(t, x.dtype) @ q[: t.shape[1]] for t in (u, v)]
        return jnp.stack([rest[0] + slope[1], rest[1] - slope[0]])

    return velocity


def polynomials(s, n: int):
    """P_0(s), …, P_{n−1}(s)."""

    def step(carry, k):
        before, now = carry
        return (now, ((2 * k + 1) * s * now - k * before) / (k + 1)), now

    _, later = jax.lax.scan(step, (jnp.ones_like(s), s), jnp.arange(1, n, dtype=s.dtype))
    return jnp.concatenate([jnp.ones_like(s)[None], later])


def smooth(reynolds: float, lid: str, modes: int, edge: str = "") -> dict[str, np.ndarray]:
    """Legendre coefficients of the smooth part of ψ. `edge` tells the cache the walls, which are in another file."""
    ladder = [reynolds]
    while ladder[0] > FIRST:
        ladder.insert(0, ladder[0] / 2)
    coarse = min(modes, 20 if reynolds <= 200 else 28)
    c, before = np.zeros((coarse, coarse)), None
    for number in ladder:  # the coarse solution leads to the next Reynolds number
        cavity = Equations(number, lid, coarse)
        start = c if before is None else c + cavity.projected(before.known[2] - cavity.known[2])
        c, before = newton(cavity, start, 1e-4), cavity
    c = newton(Equations(reynolds, lid, modes), np.pad(c, (0, modes - coarse)), 1e-10)
    basis = shen(modes)
    return {"psi": basis.T @ c @ basis}


def newton(equations: "Equations", c: np.ndarray, tolerance: float) -> np.ndarray:
    for _ in range(20):
        residual, jacobian = equations.at(c)
        step = np.linalg.solve(jacobian, residual.ravel()).reshape(c.shape)
        c = c - step
        if np.abs(step).max() < tolerance * np.abs(c).max():  # it is squared by the next
            return c
    raise ValueError("Newton's iteration for the flow in the cavity did not converge")


class Equations:
    """ν (Δψ, Δφ) + (Δψ, u·∇φ) = 0 for each φ, on a Gauss grid."""

    def __init__(self, reynolds: float, lid: str, modes: int):
        self.nu, self.inertia = (1 / reynolds, 1.0) if reynolds else (1.0, 0.0)
        nodes, weights = legendre.leggauss(modes + 40)
        self.w = np.outer(weights, weights) / 4
        basis = shen(modes)
        tables = [2**i * legendre.legder(basis, i, axis=1) for i in range(3)]
        self.phi = [legendre.legval(nodes, table.T) for table in tables]  # φ, φ', φ'' (modes, nodes)
        x = (1 + nodes) / 2
        grid = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
        known = lambda m, n: walls(float(reynolds), lid).derivative(grid, m, n).reshape(self.w.shape)
        self.known = known(1, 0), known(0, 1), known(2, 0) + known(0, 2)

    def projected(self, vortex: np.ndarray) -> np.ndarray:
        """The coefficients of ψ with ψ = ∂ψ/∂n = 0 whose Δψ is nearest to `vortex`."""
        f, _, e = self.phi
        moments = e @ (self.w * vortex) @ f.T + f @ (self.w * vortex) @ e.T
        terms = [(e, e, [(self.w, f, f)]), (e, f, [(self.w, f, e)]), (f, e, [(self.w, e, f)]), (f, f, [(self.w, e, e)])]
        return np.linalg.solve(assemble(terms), moments.ravel()).reshape(moments.shape)

    def at(self, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
