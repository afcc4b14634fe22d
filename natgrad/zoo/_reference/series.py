"""A table of Fourier and Chebyshev coefficients as a function of (t, x…)."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import chebyshev

from natgrad.zoo._reference.expansions import clenshaw


@dataclass(frozen=True, eq=False)
class Series:
    """u(t, x…) of a table (panels of time, nodes, f, …) by `etdrk4.tables`: a scalar where there is one field.

    It is a function of one point, in JAX, and can be differentiated as often as wanted. `values` has many points at
    once.

    Attributes:
        table: Chebyshev coefficients in time of Fourier coefficients in space.
        edges: where the panels of time begin and end.
        rates, lower: 2π over the period, and where it begins, for each coordinate.
        accuracy: about how far the values are off, at most.
    """

    table: np.ndarray
    edges: tuple[float, ...]
    rates: tuple[float, ...]
    lower: tuple[float, ...]
    accuracy: float

    @property
    def waves(self) -> np.ndarray:
        """The coefficients for sums of Re(c e^{iφ}) without conjugates: (levels, f, …), all panels in a row."""
        c = 2 * self.table.reshape(-1, *self.table.shape[2:])
        c[..., 0] /= 2  # as their own conjugates they stand there once
        return c

    def __call__(self, z: Float[Array, " d"]) -> Float[Array, "*f"]:
        edges = jnp.asarray(self.edges, z.dtype)
        i = jnp.clip(jnp.searchsorted(edges, z[0], side="right") - 1, 0, len(self.edges) - 2)
        levels = (self._line if len(self.rates) == 1 else self._plane)(z)  # (panels · nodes, f)
        c = levels.reshape(*self.table.shape[:2], -1)[i]
        s = 2 * (z[0] - edges[i]) / (edges[i + 1] - edges[i]) - 1
        u = jnp.stack([clenshaw(c[:, field], s) for field in range(c.shape[1])])
        return u[0] if len(u) == 1 else u

    def _line(self, z: Array) -> Array:
        c = self.waves
        phase = self.rates[0] * (z[1] - self.lower[0]) * jnp.arange(c.shape[-1])
        return _cast(c.real, z) @ jnp.cos(phase) - _cast(c.imag, z) @ jnp.sin(phase)

    def _plane(self, z: Array) -> Array:
        c = self.waves
        k = c.shape[-1] - 1
        p = self.rates[0] * (z[1] - self.lower[0]) * jnp.arange(-k, k + 1)
        q = self.rates[1] * (z[2] - self.lower[1]) * jnp.arange(k + 1)
        cosine, sine = jnp.cos(p), jnp.sin(p)

        def level(part: tuple[Array, Array]) -> Array:  # one after the other: all at once would need much memory
            a, b = part
            return (cosine @ a - sine @ b) @ jnp.cos(q) - (sine @ a + cosine @ b) @ jnp.sin(q)

        return jax.lax.map(level, (_cast(c.real, z), _cast(c.imag, z)))

    def values(self, z: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n f"]:
        """u at many points, quickly where few times and few values of each coordinate make them all."""
        z = np.asarray(z)
        times, which = np.unique(z[:, 0], return_inverse=True)
        axes: list[Any] = [np.unique(z[:, i], return_inverse=True) for i in range(1, z.shape[1])]
        panel = np.clip(np.searchsorted(self.edges, times, side="right") - 1, 0, len(self.edges) - 2)
        c: Any = self.waves.reshape(self.table.shape)
        k = c.shape[-1] - 1
        numbers = [np.arange(-k, k + 1)] * (len(axes) - 1) + [np.arange(k + 1)]
        bases = [
            np.exp(1j * rate * np.outer(n, x - a))
            for rate, a, n, (x, _) in zip(self.rates, self.lower, numbers, axes, strict=True)
        ]
        found = np.empty((len(z), c.shape[2]))
        for j, (t, p) in enumerate(zip(times, panel, strict=True)):
            a, b = self.edges[p], self.edges[p + 1]
            basis = chebyshev.chebvander(2 * (t - a) / (b - a) - 1, c.shape[1] - 1)[0]
            now, here = np.tensordot(basis, c[p], 1), which == j
            if len(bases) == 1:
                found[here] = (now @ bases[0]).real[:, axes[0][1][here]].T
            else:
                found[here] = (bases[0].T @ now @ bases[1]).real[:, axes[0][1][here], axes[1][1][here]].T
        return found


def _cast(c: np.ndarray, z: Array) -> Array:
    return jnp.asarray(c, z.dtype)
