"""The Allen–Cahn equation by Fourier collocation."""

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import chebyshev

from natgrad.zoo._reference.expansions import RESOLVED, clenshaw, finite

STIFFEST = 2e4  # rates of an explicit method on (0, 1): some seconds


@cache
def allen_cahn(diffusion: float, reaction: float, modes: int = 256, times: int = 64) -> Callable:
    """u(t, x) of u_t = D u_xx + R (u − u³) on (0, 1) × (−1, 1), periodic, u(0, x) = −cos πx (an even function of x).

    Fourier collocation in space, an explicit Runge–Kutta method of order 8 in time; between the Chebyshev points of
    time, interpolation.
    """
    from scipy.integrate import solve_ivp

    finite("allen_cahn", diffusion=diffusion, reaction=reaction)
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
        return clenshaw(waves, 2 * z[0] - 1)

    return solution
