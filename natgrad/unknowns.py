"""Unknowns of inverse problems: numbers and fields that are trained beside u, within bounds that always hold.

An unknown ν is a smooth, increasing function of a parameter s without bounds, so that no step leads outside:

    lower a alone      ν = a + eˢ               upper b alone      ν = b − e⁻ˢ
    both               ν = a + (b − a) / (1 + e⁻ˢ)                 neither      ν = s
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from natgrad.backend import host
from natgrad.options import checked


class Unknown(eqx.Module):
    """A number, an array or a field to be found, beside the network of u in `ng.Fields`.

        net = ng.Fields(u=ng.MLP(2, 1, 16, 2, key=key), nu=ng.Unknown(0.1, positive=True))
        heat = lambda net, z: ng.partial(net.u, z, 0) - net.nu.value * ng.partial(net.u, z, 1, 1)
        ng.solve(problem, solver, steps=50).u.nu.value  # after training

    >>> kappa = Unknown(0.25, lower=0, upper=1)
    >>> round(float(kappa.value), 6)
    0.25

    Arguments:
        value: where it starts, a number or an array strictly within the bounds; or a network of one point, which makes
            it a field: `net.kappa(x)` is then its value at x, and the bounds hold at every x.
        positive: the same as lower=0.
        lower, upper: the bounds.
        dtype: of a number, that of the networks beside it; by default float64 where JAX has it on.
    """

    free: Any
    lower: float | None = eqx.field(static=True)
    upper: float | None = eqx.field(static=True)

    @checked
    def __init__(
        self,
        value: Any,
        *,
        positive: bool = False,
        lower: float | None = None,
        upper: float | None = None,
        dtype: Any = None,
    ):
        if positive and lower is not None:
            raise ValueError(f"positive=True is lower=0, and lower={lower:g} is given: leave one of the two out")
        self.lower, self.upper = 0.0 if positive else lower, upper
        if self.lower is not None and upper is not None and not self.lower < upper:
            raise ValueError(f"lower must be below upper, got {self.lower:g} and {upper:g}")
        if callable(value):
            self.free = value
            return
        try:
            start = np.asarray(value, float)
        except (TypeError, ValueError):
            raise ValueError(f"an unknown starts from a number, an array or a network, got {value!r}") from None
        a, b = (-np.inf if self.lower is None else self.lower), (np.inf if upper is None else upper)
        if not start.size or not np.all((a < start) & (start < b)):
            raise ValueError(f"an unknown starts strictly within its bounds ({a:g}, {b:g}), got {value}")
        self.free = host.array(self._freed(start), jnp.result_type(float) if dtype is None else dtype)

    @property
    def is_field(self) -> bool:
        """Whether it is a function of a point, and not a number or an array."""
        return callable(self.free)

    @property
    def value(self) -> Float[Array, "*s"]:
        """The number or the array as it is now."""
        if self.is_field:
            raise ValueError("this unknown is a field and has a value at each point: call it, net.kappa(x)")
        return self._bounded(self.free)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*s"]:
        """Its value at one point: everywhere the same, unless it is a field."""
        return self._bounded(self.free(x)) if self.is_field else self.value

    def _bounded(self, s: Array) -> Array:
        a, b = self.lower, self.upper
        if a is not None and b is not None:
            return a + (b - a) * jax.nn.sigmoid(s)
        if a is not None:
            return a + jnp.exp(s)
        return s if b is None else b - jnp.exp(-s)

    def _freed(self, value: np.ndarray) -> np.ndarray:
        a, b = self.lower, self.upper
        if a is not None and b is not None:
            return np.log((value - a) / (b - value))
        if a is not None:
            return np.log(value - a)
        return value if b is None else -np.log(b - value)


def field_names(network: Callable) -> list[str]:
    """The names of the fields of a network that are functions of a point: all but unknown numbers."""
    parts = ((name, getattr(network, name)) for name in getattr(network, "names", ()))
    return [name for name, part in parts if not isinstance(part, Unknown) or part.is_field]


def numbers(network: Any) -> dict[str, np.ndarray]:
    """The unknown numbers and arrays of a network with fields, or with attributes, by name."""
    names = getattr(network, "names", None) or list(getattr(network, "__dict__", ()))
    parts = {name: getattr(network, name) for name in names}
    known = {name: p for name, p in parts.items() if isinstance(p, Unknown) and not p.is_field}
    return {name: np.asarray(part.value) for name, part in known.items()}
