"""Fourier series in the coordinates that have a period, whose coefficients are a network of the others.

    u(s, x) = Σ_k c_k(s) φ_k(x),      c = A h(s) + b

h are the features of a network of s, of time say, and all modes share them. u is linear in A and b, which hold most of
the parameters. A solution needs as many modes as its steepest front has waves, and in a short window of time few
features.
"""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.networks.base import Function, each_period, point
from natgrad.networks.mlp import MLP
from natgrad.options import Count, Positive, checked


class FourierSeries(eqx.Module):
    """A series of `modes` waves in every coordinate with a period, and of all their products where there are several.

    It returns a scalar when `out_size` is 1, and starts at u = 0. The coefficients are an `MLP` of the coordinates
    without a period, with `depth` hidden layers of `width`; see there for `activation` and `frequency`. Its inputs
    should be of order one: put `Normalized` around it, and the periods are those in [−1, 1].

    With a `knee` K, wave k is 1/(1 + (k/K)⁴) high, so that a derivative of high order does not leave all but the
    shortest waves to the damping.

    >>> from natgrad.networks import num_parameters
    >>> u = FourierSeries((None, 2.0), modes=40, width=10, key=jax.random.key(0))  # (t, x), periodic in x
    >>> u(jnp.ones(2)), num_parameters(u)  # 2·10 of the hidden layer, 81·11 of the coefficients
    (Array(0., dtype=float32), 911)
    """

    network: MLP
    periods: tuple[float | None, ...] = eqx.field(static=True)
    modes: tuple[int | None, ...] = eqx.field(static=True)
    out_size: int = eqx.field(static=True)
    knee: float | None = eqx.field(static=True)

    @checked
    def __init__(
        self,
        periods: Sequence[Positive | None],
        modes: Count | Sequence[Count | None],
        width: Count,
        depth: Count = 1,
        *,
        out_size: Count = 1,
        activation: Function = jnp.sin,
        frequency: Positive | None = None,
        knee: Positive | None = None,
        key: PRNGKeyArray,
        dtype=None,
    ):
        self.periods = tuple(None if period is None else float(period) for period in periods)
        self.modes = each_period(periods, modes, "modes")
        self.out_size, self.knee = int(out_size), knee
        others = self.periods.count(None)
        if others in (0, len(self.periods)):
            raise ValueError(
                f"periods must have None for the coordinates that the coefficients depend on, time say, and a period "
                f"for one of the others at least, got {periods}"
            )
        terms = math.prod(2 * k + 1 for k in self.modes if k is not None)
        network = MLP(
            others,
            self.out_size * terms,
            width,
            depth,
            activation=activation,
            frequency=frequency,
            key=key,
            dtype=dtype,
        )
        last = network.layers[-1]
        zeros = [host.zeros(leaf.shape, leaf.dtype) for leaf in (last.weight, last.bias)]
        self.network = eqx.tree_at(lambda net: [net.layers[-1].weight, net.layers[-1].bias], network, zeros)

    @property
    def in_size(self) -> int:
        return len(self.periods)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = point(x, self.in_size)
        others = np.array([i for i, period in enumerate(self.periods) if period is None])
        y = self.network(x[others]).reshape(self.out_size, -1) @ self.basis(x)
        return y[0] if self.out_size == 1 else y

    def basis(self, x: Float[Array, " d"]) -> Float[Array, " n"]:
        """φ: 1, the cosines and the sines of each coordinate, and all products of those of several."""
        made = jnp.ones(1, x.dtype)
        for i, (period, modes) in enumerate(zip(self.periods, self.modes, strict=True)):
            if period is not None and modes is not None:
                k = np.arange(1, modes + 1)
                high = np.ones(modes) if self.knee is None else 1 / (1 + (k / self.knee) ** 4)
                phase, high = x[i] * (2 * np.pi / period * k).astype(x.dtype), high.astype(x.dtype)
                waves = jnp.concatenate([jnp.ones(1, x.dtype), high * jnp.cos(phase), high * jnp.sin(phase)])
                made = (made[:, None] * waves).reshape(-1)
        return made
