"""Decisions that problems which step together (`jax.vmap`) take as one.

A branch whose index differs from problem to problem is no branch under `jax.vmap`: all branches are computed, and one
is selected. With the largest index of all problems it stays one, where a larger index is right for each of them, too.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Shaped


@jax.custom_batching.custom_vmap
def jointly(index: Shaped[Array, ""]) -> Shaped[Array, ""]:
    """The index itself; of problems that step together, the largest of theirs: one number, and not one for each."""
    return index


@jointly.def_vmap
def _of_all(size: int, batched: list[bool], index: Array) -> tuple[Array, bool]:
    return (jnp.max(index, axis=0) if batched[0] else index), False
