"""Some at a time: loops over chunks of one size, whose temporaries stay small and which XLA compiles once."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Shaped

from natgrad.backend import tuning
from natgrad.backend.xla import on_cpu, whole

Body = Callable[[Int[Array, ""], Int[Array, ""], Any], Any]


def even(n: int, most: int) -> int:
    """The size of the fewest chunks of n, at most `most` each, that are about equal."""
    return -(-n // -(-n // most))


def cover(n: int, size: int, body: Body, start: Any) -> Any:
    """carry = body(first, repeated, carry) for chunks first, …, first + size − 1 that cover 0, …, n − 1 in turn.

    The last chunk, where it would be short, begins sooner: `repeated` of its members were in the one before.
    """

    def one(k: Array, carry: Any) -> Any:
        first = jnp.minimum(k * size, n - size)
        return body(first, k * size - first, carry)

    return jax.lax.fori_loop(0, -(-n // size), one, start)


def stack(n: int, size: int, part: Callable[[Int[Array, ""]], Array], axis: int = 0) -> Array:
    """part(first) of each chunk (see `cover`), put together along an axis."""
    like = jax.eval_shape(part, jax.ShapeDtypeStruct((), jnp.int32))
    axis %= len(like.shape)
    shape = (*like.shape[:axis], n, *like.shape[axis + 1 :])

    def put(first: Array, repeated: Array, result: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(result, part(first), first, axis)

    return cover(n, size, put, jnp.zeros(shape, like.dtype))


def by_columns(fn: Callable[[Array], Array], X: Shaped[Array, "n m"], most: int) -> Shaped[Array, "k m"]:
    """fn of each column, at most `most` of them at a time."""
    return by_rows(fn, X.T, most).T


def by_rows(fn: Callable[[Array], Array], X: Shaped[Array, "m n"], most: int) -> Shaped[Array, "m k"]:
    """fn of each row, at most `most` of them at a time: in rounds of one size, filled up with zeros.

    `jax.lax.map` would do what remains apart. Sums over devices in a loop must not meet others
    (`parallel.not_before`).
    """
    m = X.shape[0]
    size = even(m, most)
    return jax.lax.map(fn, jnp.pad(X, ((0, -m % size), (0, 0))), batch_size=size)[:m]


def jacobian(
    rows: Callable[[tuple[Array, ...]], Sequence[Float[Array, "rows _"]]],
    points: tuple[Array, ...],
    each: int,
    widths: Sequence[int],
    dtype: Any,
) -> Float[Array, "rows p"]:
    """The rows of all points, `each` of them a point. rows(points) gives those of some points, in pieces of `widths`
    columns.

    On a CPU some points at a time, every piece put where it belongs: no temporaries of the size of the result.
    """
    if not on_cpu():
        return whole(jnp.concatenate(rows(points), axis=1))
    n, p = points[0].shape[0], sum(widths)
    least = tuning.JACOBIAN_POINTS
    size = even(n, max(least, min(4 * least, tuning.JACOBIAN_NUMBERS // p)))

    def fill(first: Array, repeated: Array, A: Array) -> Array:
        column = 0
        for piece in rows(tuple(jax.lax.dynamic_slice_in_dim(a, first, size) for a in points)):
            A = jax.lax.dynamic_update_slice(A, piece.astype(dtype), (first * each, column))
            column += piece.shape[1]
        return A

    return cover(n, size, fill, jnp.zeros((n * each, p), dtype))
