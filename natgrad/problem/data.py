"""What is known at the points of a block beside their coordinates: arrays, or a function that gives them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from natgrad.backend import host
from natgrad.domains import Points

Data = Array | tuple[Array, ...] | Callable[[Points], Any]


@dataclass(frozen=True)
class Tabulate:
    """points ↦ their data as a tuple of arrays, of a user's function; nothing without one. Equal where these are."""

    data: Any

    def __call__(self, points: Points) -> tuple[Array, ...]:
        return check_data(tabulated(self.data, points), len(points)) if callable(self.data) else ()


def known(data: Data, points: Points) -> tuple[tuple[Array, ...], Tabulate | None]:
    """The data of these points, and how to have those of others; None where they are arrays, known here alone."""
    arrays = check_data(tabulated(data, points) if callable(data) else data, len(points))
    tabulate = Tabulate(data) if callable(data) or not arrays else None
    if points.moving and tabulate is None:
        raise ValueError("data of points that are fresh or adaptive must be a function of the points")
    return arrays, tabulate


def tabulated(data: Callable, points: Points) -> Any:
    """A function of points at these."""
    try:
        return data(points)
    except Exception as error:
        reason, *_ = str(error).strip().splitlines() or [""]
        raise ValueError(
            f"data fails at {len(points)} points of dimension {points.dim}: {type(error).__name__}: {reason}"
        ) from error


def check_data(data: Any, n: int) -> tuple[Array, ...]:
    """Per-point data as a tuple of arrays with n rows each."""
    try:
        arrays = tuple(host.array(a) for a in (data if isinstance(data, tuple | list) else (data,)))
    except (TypeError, ValueError) as error:
        raise ValueError(f"data must be arrays of numbers, got {type(data).__name__}") from error
    for array in arrays:
        if array.ndim == 0 or array.shape[0] != n:
            raise ValueError(f"data must have one row per point ({n}), got shape {array.shape}")
        if jnp.issubdtype(array.dtype, jnp.complexfloating):
            raise ValueError(f"data must be real, got {array.dtype}: give real and imaginary parts as columns")
        if not host.traced(array) and not np.all(np.isfinite(np.asarray(array))):
            raise ValueError("data must be finite, got some that are NaN or infinite")
    return arrays
