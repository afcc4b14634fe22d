"""What a network sees in place of a point: scaled, as sines and cosines of it, periodic."""

from collections.abc import Sequence
from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.networks.base import Function, check_input, each_period, point
from natgrad.networks.compose import Fields
from natgrad.options import Count, Positive, checked


class Bounded(Protocol):
    """What `Normalized` asks of a domain."""

    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]: ...


class Normalized(eqx.Module):
    """u(x) = scale · N(2 (x − c) / (b − a)): N sees the box (a, b) around a domain, centre c, as [−1, 1]ᵈ.

    This is where units belong: lengths and times into `domain` (time first, as in its points), the size of u into
    `scale`, a positive number or one for each component of u. The parameters are those of the network. Of several
    fields each has its own: `Fields(u=Normalized(…), p=Normalized(…))`. What stands inside, `Periodic` for one, is in
    coordinates of [−1, 1]; what stands outside, the distance of a `HardBoundary`, in those of the domain.

    >>> from natgrad.domains import Box
    >>> from natgrad.networks import MLP, num_parameters
    >>> plate = Box([0, 0], [250, 80])  # millimetres
    >>> u = Normalized(MLP(2, 1, 16, 2, key=jax.random.key(0)), plate, scale=300.0)  # kelvins
    >>> u(jnp.array([125.0, 40.0])), num_parameters(u) == num_parameters(u.network)  # the centre is 0
    (Array(0., dtype=float32), True)
    """

    network: Function
    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    scale: float | tuple[float, ...] = eqx.field(static=True)

    def __init__(self, network: Function, domain: Bounded, scale: float | Sequence[float] = 1.0):
        if isinstance(network, Fields):
            raise ValueError("each field has a size of its own: write Fields(u=Normalized(…), p=Normalized(…))")
        if not callable(network):
            raise ValueError(f"Normalized takes a network first, got {type(network).__name__}")
        if not callable(getattr(domain, "bounds", None)):
            raise ValueError(f"Normalized takes a domain such as ng.Box(lower, upper), got {type(domain).__name__}")
        self.lower, self.upper = domain.bounds()
        check_input(network, len(self.lower), f"points of {domain}")
        self.network = network
        self.scale = _scale(scale, getattr(network, "out_size", None))

    @property
    def in_size(self) -> int:
        return len(self.lower)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = point(x, self.in_size)
        a, b = np.array(self.lower), np.array(self.upper)
        y = self.network((x - ((a + b) / 2).astype(x.dtype)) * (2 / (b - a)).astype(x.dtype))
        if self.scale == 1.0:
            return y
        return y * (self.scale if isinstance(self.scale, float) else np.array(self.scale, y.dtype))


class FourierFeatures(eqx.Module):
    """N([sin 2πBx, cos 2πBx]), the rows of B being frozen frequencies, which are not parameters.

    `frequencies` is B / scale itself, (f, d), or the number f of rows to draw from N(0, scale²) with `key`;
    of several scales, such as `scale=(0.5, 2, 8)`, each has as many rows as the others, up to one. The network takes
    2f inputs. `ng.save` keeps B; saving the leaves alone does not.

    >>> from natgrad.networks import MLP
    >>> N = MLP(32, 1, 64, 2, key=jax.random.key(0))
    >>> u = FourierFeatures(N, in_size=3, frequencies=16, scale=0.5, key=jax.random.key(1))
    >>> u(jnp.ones(3)).shape, num_parameters(u) == num_parameters(N)
    ((), True)
    """

    network: Function
    frequencies: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    in_size: int = eqx.field(static=True)

    @checked
    def __init__(
        self,
        network: Function,
        in_size: Count,
        frequencies: Count | Float[Array, "f d"],
        *,
        scale: Positive | Sequence[Positive] = 1.0,
        key: PRNGKeyArray | None = None,
    ):
        if np.ndim(frequencies) == 0:
            if key is None:
                raise ValueError("frequencies drawn at random take a key, such as key=jax.random.key(0)")
            frequencies = jax.random.normal(host.as_key(key), (int(frequencies), in_size))
        b = np.asarray(frequencies, dtype=float)
        if b.ndim != 2 or b.shape[1] != in_size:
            raise ValueError(f"frequencies must have shape (f, {in_size}), got {b.shape}")
        scales = np.atleast_1d(np.asarray(scale, float))
        if not 0 < len(scales) <= len(b):
            raise ValueError(f"scale must be one for all frequencies, or at most {len(b)} of them, got {len(scales)}")
        b = b * np.sort(np.resize(scales, len(b)))[:, None]
        if not np.isfinite(b).all():
            raise ValueError("frequencies must be finite, got some that are NaN or infinite")
        check_input(network, 2 * len(b), f"{len(b)} frequencies")
        self.network = network
        self.frequencies = tuple(tuple(row) for row in b.tolist())  # hashable, as static fields must be
        self.in_size = in_size

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = point(x, self.in_size)
        phase = (2 * np.pi * np.asarray(self.frequencies)).astype(x.dtype) @ x
        return self.network(jnp.concatenate([jnp.sin(phase), jnp.cos(phase)]))


class Periodic(eqx.Module):
    """A network periodic in x_i with period `periods[i]`: it sees sin and cos of 2πk x_i / periods[i], k = 1 … K.

    A coordinate whose period is None is passed on as it is. K is `harmonics`, a number or one for each coordinate (None
    where the period is). The network takes 2K inputs for a periodic coordinate, 1 for another: the sines, the cosines
    (coordinate by coordinate), then the others.

    >>> from natgrad.networks import MLP
    >>> u = Periodic(MLP(3, 1, 16, 2, key=jax.random.key(0)), periods=(None, 1.0))  # (t, x), periodic in x
    >>> bool(jnp.allclose(u(jnp.array([0.2, 0.3])), u(jnp.array([0.2, 1.3])), atol=1e-5))
    True
    >>> v = Periodic(MLP(7, 1, 16, 2, key=jax.random.key(0)), periods=(None, 1.0), harmonics=3)
    """

    network: Function
    periods: tuple[float | None, ...] = eqx.field(static=True)
    harmonics: tuple[int | None, ...] = eqx.field(static=True)

    @checked
    def __init__(
        self,
        network: Function,
        periods: Sequence[Positive | None],
        harmonics: Count | Sequence[Count | None] = 1,
    ):
        numbers = each_period(periods, harmonics, "harmonics")
        inputs = sum(1 if n is None else 2 * n for n in numbers)
        check_input(network, inputs, f"the periods {tuple(periods)} with the harmonics {numbers}")
        self.network = network
        self.periods = tuple(None if p is None else float(p) for p in periods)
        self.harmonics = numbers

    def waves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The coordinate and the rate 2πk / period of each sine, and the coordinates that are passed on."""
        pairs = list(zip(self.periods, self.harmonics, strict=True))
        waves = [(i, 2 * np.pi * k / p) for i, (p, n) in enumerate(pairs) if p for k in range(1, (n or 0) + 1)]
        others = [i for i, p in enumerate(self.periods) if p is None]
        return np.array([i for i, _ in waves], int), np.array([rate for _, rate in waves]), np.array(others, int)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = point(x, len(self.periods))
        periodic, rates, others = self.waves()
        phase = x[periodic] * rates.astype(x.dtype)
        return self.network(jnp.concatenate([jnp.sin(phase), jnp.cos(phase), x[others]]))


def _scale(scale: float | Sequence[float], outputs: int | None) -> float | tuple[float, ...]:
    try:
        sizes = np.asarray(scale, float)
    except (TypeError, ValueError):
        raise ValueError(f"scale must be a number, or one for each output, got {scale!r}") from None
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        raise ValueError(f"scale must be positive and finite, the size of u, got {scale}")
    if sizes.ndim == 0:
        return float(sizes)
    if sizes.ndim > 1 or (outputs is not None and (outputs == 1 or len(sizes) != outputs)):
        right = "a number" if outputs == 1 else f"a number or {outputs or 'several'} of them, one for each output"
        raise ValueError(f"scale must be {right}, got {scale}")
    return tuple(sizes.tolist())
