"""A Bose–Einstein condensate in a trap by Galerkin's method."""

from collections.abc import Callable
from functools import cache

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import legendre

from natgrad.zoo._reference.expansions import RESOLVED, finite


@cache
def condensate(beta: float, chemical: float, half: float, modes: int = 24) -> Callable:
    """u(x, y) > 0 of −Δu + |x|² u + β u³ = λ u in (−L, L)², u = 0 on the boundary.

    Galerkin's method in the products of cos((i + ½) πx/L), by Newton's iteration from the Thomas–Fermi density.
    """
    finite("gross_pitaevskii", beta=beta, chemical=chemical)
    if not (beta > 0 and chemical > 0):
        raise ValueError(
            f"the reference solution of gross_pitaevskii needs positive beta and chemical, got {beta} and {chemical}"
        )
    nodes, weights = legendre.leggauss(3 * modes)
    x, w = half * nodes, half * weights
    rates = (np.arange(modes) + 0.5) * np.pi / half
    phi = np.cos(np.outer(x, rates)) / np.sqrt(half)  # orthonormal
    basis = np.einsum("xi,yj->xyij", phi, phi).reshape(-1, modes**2)
    stiffness = (rates[:, None] ** 2 + rates**2).ravel()
    potential = (x[:, None] ** 2 + x**2).ravel()
    weighted = basis * np.outer(w, w).ravel()[:, None]
    c = weighted.T @ np.sqrt(np.maximum(chemical - potential, 0) / beta)
    for _ in range(50):
        u = basis @ c
        residual = stiffness * c + weighted.T @ ((potential - chemical + beta * u**2) * u)
        jacobian = np.diag(stiffness) + weighted.T @ ((potential - chemical + 3 * beta * u**2)[:, None] * basis)
        step = np.linalg.solve(jacobian, residual)
        c -= step
        if np.abs(step).max() < 1e-13:
            break
    largest, last = np.abs(c).max(), np.abs(c.reshape(modes, modes)[-1]).max()
    if not (np.abs(step).max() < 1e-9 * largest and last <= RESOLVED * largest):
        raise ValueError(f"there is no condensate with beta {beta} and chemical {chemical} to be found in this box")
    table = c.reshape(modes, modes) / half

    def solution(z):
        wave = jnp.cos(z[:, None] * jnp.asarray(rates, z.dtype))
        return wave[0] @ jnp.asarray(table, z.dtype) @ wave[1]

    return solution
