"""Reference solutions where there is no closed form: computed once, accurate to about ten digits, differentiable.

For coefficients with which one would take long, or would not be accurate, it is refused in one line.
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev, hermite, legendre

STIFFEST = 2e4  # rates of an explicit method on (0, 1): some seconds
RESOLVED = 1e-6  # the last coefficients of an expansion that has converged


@cache
def burgers(nu: float, nodes: int = 100) -> Callable:
    """u(t, x) of u_t + u u_x = ν u_xx, u(0, x) = −sin πx, by Cole and Hopf's transform and Gauss–Hermite quadrature.

    With y = x − 2√(νt) s and F(y) = exp(−cos(πy) / (2πν)), u = −∫ sin(πy) F(y) e^{−s²} ds / ∫ F(y) e^{−s²} ds.
    """
    _finite("burgers", nu=nu)
    if not nu > 0:
        raise ValueError(f"the reference solution of burgers needs a positive nu, got {nu}")
    s, weights = hermite.hermgauss(nodes)
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    s, log_weights = s[log_weights > -300], log_weights[log_weights > -300]

    def u(z):
        y = z[1] - 2 * jnp.sqrt(nu * jnp.maximum(z[0], 1e-10)) * jnp.asarray(s, z.dtype)
        share = jax.nn.softmax(jnp.asarray(log_weights, z.dtype) - jnp.cos(jnp.pi * y) / (2 * jnp.pi * nu))
        return -share @ jnp.sin(jnp.pi * y)

    return u


@cache
def allen_cahn(diffusion: float, reaction: float, modes: int = 256, times: int = 64) -> Callable:
    """u(t, x) of u_t = D u_xx + R (u − u³) on (0, 1) × (−1, 1), periodic, u(0, x) = −cos πx (an even function of x).

    Fourier collocation in space, an explicit Runge–Kutta method of order 8 in time; between the Chebyshev points of
    time, interpolation.
    """
    from scipy.integrate import solve_ivp

    _finite("allen_cahn", diffusion=diffusion, reaction=reaction)
    x = np.arange(2 * modes) / modes - 1
    k2 = (np.pi * np.arange(modes + 1)) ** 2
    rates = diffusion * k2[-1] + 2 * abs(reaction)
    if diffusion < 0 or rates > STIFFEST:
        raise ValueError(
            f"the reference solution of allen_cahn needs diffusion ≥ 0 and {k2[-1]:.2g} diffusion + 2 |reaction| ≤ "
            f"{STIFFEST:g}, got diffusion {diffusion} and reaction {reaction}"
        )

    def rate(t, u):
        return np.fft.irfft(-diffusion * k2 * np.fft.rfft(u), 2 * modes) + reaction * (u - u**3)

    nodes = np.sort((1 + chebyshev.chebpts1(times)) / 2)
    u, values = -np.cos(np.pi * x), []
    for start, end in pairwise([0.0, *nodes]):  # to each node by whole steps: dense output would cost digits
        u = solve_ivp(rate, (start, end), u, method="DOP853", rtol=3e-14, atol=1e-15).y[:, -1]
        values.append(u)
    cosines = np.fft.rfft(values).real / modes * (-1.0) ** np.arange(modes + 1)  # (times, modes + 1); x starts at −1
    cosines[:, [0, -1]] /= 2
    c = chebyshev.chebfit(2 * nodes - 1, cosines, times - 1)  # (times, modes + 1)
    if not max(np.abs(c[:, -8:]).max(), np.abs(c[-4:]).max()) <= RESOLVED:
        raise ValueError(
            f"the solution of allen_cahn with diffusion {diffusion} and reaction {reaction} has layers too thin for "
            "its reference: choose more diffusion or less reaction"
        )
    c = c[:, : 1 + np.flatnonzero(np.abs(c).max(axis=0) > 1e-15)[-1]]

    def solution(z):
        waves = jnp.asarray(c, z.dtype) @ jnp.cos(jnp.pi * jnp.arange(c.shape[1]) * z[1])
        return _clenshaw(waves, 2 * z[0] - 1)

    return solution


def _clenshaw(c, s):
    """Σ c_k T_k(s)."""

    def step(carry, coefficient):
        a, b = carry
        return (coefficient + 2 * s * a - b, a), None

    zero = jnp.zeros((), c.dtype)
    (a, b), _ = jax.lax.scan(step, (zero, zero), c[:0:-1])
    return c[0] + s * a - b


@cache
def condensate(beta: float, chemical: float, half: float, modes: int = 24) -> Callable:
    """u(x, y) > 0 of −Δu + |x|² u + β u³ = λ u in (−L, L)², u = 0 on the boundary.

    Galerkin's method in the products of cos((i + ½) πx/L), by Newton's iteration from the Thomas–Fermi density.
    """
    _finite("gross_pitaevskii", beta=beta, chemical=chemical)
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


def _finite(problem: str, **coefficients: float) -> None:
    for name, value in coefficients.items():
        if not np.isfinite(value):
            raise ValueError(f"{name} of {problem} must be a finite number, got {value}")
