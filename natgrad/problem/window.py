"""Networks of time windows: one window, in its own time, and all windows joined to one function.

The network of a window is a function of (s, x), s = (t − t₀)/(t₁ − t₀) from 0 to 1. t₀ and t₁ − t₀ are arrays that are
not trained, so that all windows of a march are steps of the same compiled program, whatever their times.
"""

import abc
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from natgrad.backend import host
from natgrad.problem.base import Network


class Timed(eqx.Module):
    """A function of points (t, x…) that may have named fields, which are such functions themselves."""

    @abc.abstractmethod
    def part(self, name: str | None) -> Callable:
        """The function itself, or one of its fields."""

    def __call__(self, z: Float[Array, " d"]) -> Float[Array, "*m"]:
        return self.part(None)(z)

    def __getattr__(self, name: str) -> Any:
        # Reached only for what is not an attribute; while a copy is being built, nothing is one.
        if name in fields_of(self):
            return self.part(name)
        raise AttributeError(f"{type(self).__name__} has no field {name!r}")


class Window(Timed):
    """u(t, x) = network((t − t₀)/(t₁ − t₀), x): trained is the network alone."""

    network: Network
    #: t₀ and t₁ − t₀, as the bits of floating-point numbers: floating-point arrays of a network are its parameters.
    bits: Int[Array, "2"]

    def __init__(self, network: Network, start: float, end: float):
        floats = np.array([start, end - start], jnp.result_type(float))
        self.network, self.bits = network, host.array(floats.view(f"int{8 * floats.itemsize}"))

    @property
    def times(self) -> Float[Array, "2"]:
        """t₀ and t₁ − t₀."""
        return jax.lax.bitcast_convert_type(self.bits, f"float{8 * self.bits.dtype.itemsize}")

    def place(self, z: Float[Array, " d"]) -> Float[Array, " d"]:
        """(s, x) ↦ (t, x)."""
        start, length = self.times.astype(z.dtype)
        return z.at[0].set(start + length * z[0])

    def part(self, name: str | None) -> Callable:
        fn = self.network if name is None else getattr(self.network, name)
        start, length = self.times

        def u(z: Float[Array, " d"]) -> Float[Array, "*m"]:
            z = jnp.asarray(z)
            return fn(z.at[0].set((z[0] - start.astype(z.dtype)) / length.astype(z.dtype)))

        return u


class Windows(Timed):
    """One function of (t, x…) out of those of windows: at a joint it is the later one, and outside the nearest one."""

    functions: tuple[Callable, ...]
    times: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, functions: Sequence[Callable], times: Sequence[float]):
        self.functions, self.times = tuple(functions), tuple(map(float, times))

    def part(self, name: str | None) -> Callable:
        parts = [fn if name is None else getattr(fn, name) for fn in self.functions]
        if len(parts) == 1:
            return parts[0]

        def u(z: Float[Array, " d"]) -> Float[Array, "*m"]:
            z = jnp.asarray(z)
            index = jnp.searchsorted(jnp.asarray(self.times[1:-1], z.dtype), z[0], side="right")

            def branch(number: int) -> Callable:
                # Of many points all windows are evaluated at each: where one does not count, at a time of its own.
                inside = z.at[0].set(self.times[number])
                return lambda: parts[number](jnp.where(index == number, z, inside))

            return jax.lax.switch(index, [branch(number) for number in range(len(parts))])

        return u


def fields_of(u: Any) -> tuple[str, ...]:
    """The names of a network's fields; () where it has none."""
    inside = u.__dict__.get("network", u.__dict__.get("functions", (None,))) if isinstance(u, Timed) else u
    inside = inside[0] if isinstance(inside, tuple) else inside
    return fields_of(inside) if isinstance(inside, Timed) else getattr(inside, "names", ())
