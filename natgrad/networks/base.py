"""What networks have in common: one point in, a number or a vector out."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

Function = Callable[[Array], Array]


def num_parameters(network) -> int:
    """The number p of entries of the parameter vector (p,): of all floating-point arrays in the network.

    >>> from natgrad.networks import MLP
    >>> num_parameters(MLP(in_size=3, out_size=1, width=64, depth=3, key=jax.random.key(0)))
    8641
    """
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))


def point(x, in_size: int) -> Array:
    x = jnp.asarray(x)
    if x.shape != (in_size,):
        hint = "; use jax.vmap" if x.ndim > 1 and x.shape[-1] == in_size else ""
        raise ValueError(f"u takes one point of shape ({in_size},), got {x.shape}{hint}")
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(float)


def check_input(network: Function, inputs: int, why: str) -> None:
    in_size = getattr(network, "in_size", inputs)
    if in_size != inputs:
        raise ValueError(f"a network with {inputs} inputs is needed for {why}, got one with in_size={in_size}")


def each_period(
    periods: Sequence[float | None], given: int | Sequence[int | None], name: str
) -> tuple[int | None, ...]:
    """A number for each coordinate that has a period, None for the others: from one for all, or one for each."""
    numbers: Any = list(given) if np.ndim(given) else [period and given for period in periods]  # type: ignore[arg-type]
    if [n is None for n in numbers] != [p is None for p in periods]:
        raise ValueError(f"{name} must be a number, or one for each period of {tuple(periods)}, got {given}")
    return tuple(None if n is None else int(n) for n in numbers)
