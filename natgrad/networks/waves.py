"""Sums of plane waves whose frequencies are trained.

    u(x) = Σ_j a_j sin k_j·x + b_j cos k_j·x,      |k_ji| ≤ K_i at the start

A hidden layer of sines is the same functions. Two things differ. The phase is a ratio of amplitudes, so all that is not
linear is k. And the frequencies of the start cover the box of the K_i evenly (half of it: −k is k), without the gaps
and the thin rim of random ones. A wave of the solution draws the nearest k to it if that is nearer than about π over
half the length of the domain, where the lobe of a cut-off wave ends; where none is near, the loss has a minimum that is
no solution.
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.networks.base import point
from natgrad.options import Count, Positive, checked

COPIES = 4  # of the frequencies, while they are drawn


class Waves(eqx.Module):
    """A sum of `width` plane waves in `in_size` coordinates; frequencies k (width, d) and amplitudes are trained.

    It returns a scalar when `out_size` is 1. It starts at u = 0: the first step of a linear equation is then a linear
    least-squares problem for the amplitudes.

    Arguments:
        width: the number of waves. One for each cell of side 3 in the box of frequencies is enough for coordinates of
            [−1, 1], 2 (K/3)² of them in the plane.
        up_to: K, the greatest angular frequency of the start in each coordinate, or one for each; a tenth more than
            that of the data.

    >>> from natgrad.networks import num_parameters
    >>> u = Waves(in_size=2, out_size=1, width=144, up_to=28.0, key=jax.random.key(0))
    >>> u(jnp.ones(2)), num_parameters(u)
    (Array(0., dtype=float32), 576)
    """

    frequencies: Float[Array, "width d"]
    sines: Float[Array, "out width"]
    cosines: Float[Array, "out width"]
    in_size: int = eqx.field(static=True)
    out_size: int = eqx.field(static=True)

    @checked
    def __init__(
        self,
        in_size: Count,
        out_size: Count,
        width: Count,
        *,
        up_to: Positive | Sequence[Positive],
        key: PRNGKeyArray,
        dtype=None,
    ):
        dtype = jnp.result_type(float) if dtype is None else dtype
        host.afford(COPIES * width * (in_size + 2 * out_size), f"{width} waves in {in_size} coordinates")
        greatest = np.broadcast_to(np.asarray(up_to, float), np.shape(up_to) or (in_size,))
        if greatest.shape != (in_size,):
            raise ValueError(f"up_to must be a number, or one for each of {in_size} coordinates, got {up_to}")
        shift = np.asarray(host.uniform(host.as_key(key), (in_size,), np.dtype(dtype)), float)
        lower = np.where(np.arange(in_size) == 0, 0.0, -greatest)
        self.frequencies = host.array(lower + (greatest - lower) * evenly(width, shift), dtype)
        self.sines = self.cosines = host.zeros((out_size, width), dtype)
        self.in_size, self.out_size = in_size, out_size

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        phase = self.frequencies @ point(x, self.in_size)
        y = self.sines @ jnp.sin(phase) + self.cosines @ jnp.cos(phase)
        return y[0] if self.out_size == 1 else y


def evenly(n: int, shift: Float[np.ndarray, " d"]) -> Float[np.ndarray, "n d"]:
    """n points of the unit cube: shift + j (g⁻¹, …, g⁻ᵈ) modulo 1, with gᵈ⁺¹ = g + 1, the golden ratio of d dimensions
    (Roberts, 2018)."""
    golden = 2.0
    for _ in range(64):
        golden = (1 + golden) ** (1 / (len(shift) + 1))
    steps = golden ** -np.arange(1.0, len(shift) + 1)
    return (shift + np.outer(np.arange(n), steps)) % 1
