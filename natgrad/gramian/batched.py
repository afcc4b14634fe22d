"""`batched`: the Jacobian of B points at a time, recomputed for every product and never stored.

Blocks whose number of points is not a multiple of B are filled up with copies of their last point at weight zero.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend.parallel import total as add_up
from natgrad.gramian.base import Gramian, root, second, weighted_jacobian
from natgrad.gramian.neighbours import NeighbourBatches
from natgrad.linalg import TestMatrix, cross, gram, gram_diagonal, row_gram
from natgrad.problem import Features, Problem
from natgrad.problem.base import split

DEFAULT_BATCH = 1000  # points at a time, where nobody says


def batches(problem: Problem, params: PyTree, batch: int, reason: str = "") -> Gramian:
    """The strategy `batched`, with neighbours where the metric couples the rows."""
    coupling = problem.coupling(params)
    if coupling is None:
        return BatchedJacobian(problem, params, batch, reason)
    return NeighbourBatches(problem, params, coupling, batch, reason)


class BatchedJacobian(Gramian):
    """No set-up, product with ℓ vectors O(q [FP] + pqℓ), memory O(pB): eq. (G_matrixfree_batch)."""

    problem: Problem
    params: PyTree
    batch: int = eqx.field(static=True)
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "batched"

    def __init__(self, problem: Problem, params: PyTree, batch: int, reason: str = ""):
        self.problem, self.params, self.batch, self.reason = problem, params, batch, reason

    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        """Forward and reverse mode a batch, which costs less than its Jacobian."""
        tangent = ravel_pytree(self.params)[1](v)

        def product(block: Features, inputs: tuple[Array, ...], weights: Array) -> Array:
            frozen = jax.lax.stop_gradient(self.problem.network(self.params))
            features = lambda p: block.at(self.problem.network(p), frozen, inputs)
            _, push = jax.linearize(features, self.params)
            scale = block.metric_weights(frozen, inputs, weights)[:, None]
            (out,) = jax.linear_transpose(push, self.params)(scale * push(tangent))
            return ravel_pytree(out)[0]

        return self._sum(product, jnp.zeros_like(v))

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        # Summed as (G V)ᵀ, the way the products come: a transposed copy a batch would be half of the memory.
        return self._sum_rows(lambda A: cross(A, A @ V), jnp.zeros_like(V.T)).T

    def push_many(self, omega: TestMatrix) -> Float[Array, "rows m"]:
        def rows(batch: tuple, block: Features) -> Array:
            return omega.times(weighted_jacobian(self.problem, block, self.params, *batch))

        return self._by_rows(rows)

    def pull_many(self, values: Float[Array, "m rows"]) -> Float[Array, "m p"]:
        start = jnp.zeros((values.shape[0], self.size), self.problem.dtype)
        return self._sum_rows(cross, start, values.T)

    def diagonal(self) -> Float[Array, " p"]:
        return self._sum_rows(gram_diagonal, jnp.zeros(self.size, self.problem.dtype))

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        start = jnp.zeros((indices.shape[0], self.size), self.problem.dtype)
        return self._sum_rows(lambda A: cross(A, A[:, indices]), start).T

    def as_matrix(self) -> Float[Array, "p p"]:
        return self._sum_rows(gram, jnp.zeros((self.size, self.size), self.problem.dtype))

    def pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        def product(block: Features, inputs: tuple[Array, ...], weights: Array, rows: Array) -> Array:
            frozen = jax.lax.stop_gradient(self.problem.network(self.params))
            _, vjp = jax.vjp(lambda p: block.at(self.problem.network(p), frozen, inputs), self.params)
            scale = root(block.metric_weights(frozen, inputs, weights))[:, None]
            (out,) = vjp(scale * rows.reshape(-1, block.size))
            return ravel_pytree(out)[0]

        return self._sum(product, jnp.zeros(self.size, self.problem.dtype), values)

    def push(self, v: Float[Array, " p"]) -> Float[Array, " rows"]:
        tangent = ravel_pytree(self.params)[1](v)

        def rows(batch: tuple, block: Features) -> Array:
            inputs, weights = batch
            frozen = jax.lax.stop_gradient(self.problem.network(self.params))
            features = lambda p: block.at(self.problem.network(p), frozen, inputs)
            out = jax.jvp(features, (self.params,), (tangent,))[1]
            return (root(block.metric_weights(frozen, inputs, weights))[:, None] * out).ravel()

        return self._by_rows(rows)

    def curvature(self, v: Float[Array, " p"]) -> Float[Array, " rows"]:
        tangent = ravel_pytree(self.params)[1](v)

        def rows(batch: tuple, block: Features) -> Array:
            frozen = jax.lax.stop_gradient(self.problem.network(self.params))
            return second(lambda p: block.at(self.problem.network(p), frozen, batch[0]), self.params, tangent).ravel()

        return self._by_rows(rows)

    def kernel(self, squares: Float[Array, " p"] | None = None) -> Float[Array, "rows rows"]:
        """Tile by tile of its lower half, the rows of both batches recomputed."""
        blocks = self.problem.features
        scale = 1.0 if squares is None else jnp.sqrt(squares)
        split = [_split((f.inputs, f.weights), self.batch) for f in blocks]

        def rows(k: int, i: Array) -> Array:
            inputs, weights = jax.tree.map(lambda a: a[i], split[k])
            return scale * weighted_jacobian(self.problem, blocks[k], self.params, inputs, weights)

        def tiles(k: int, m: int) -> Array:
            """The rows of block k against those of block m."""
            (count, height), (others, width) = (split[b][1].shape for b in (k, m))
            height, width = height * blocks[k].size, width * blocks[m].size

            def across(i: Array, K: Array) -> Array:
                A = rows(k, i)
                tile = lambda j, K: jax.lax.dynamic_update_slice(K, row_gram(A, rows(m, j)), (i * height, j * width))
                return jax.lax.fori_loop(0, i + 1 if k == m else others, tile, K)

            K = jnp.zeros((count * height, others * width), self.problem.dtype)
            return jax.lax.fori_loop(0, count, across, K)[: blocks[k].rows, : blocks[m].rows]

        order = range(len(blocks))
        above = lambda k, m: jnp.zeros((blocks[k].rows, blocks[m].rows), self.problem.dtype)
        lower = jnp.block([[(tiles if m <= k else above)(k, m) for m in order] for k in order])
        return jnp.tril(lower) + jnp.tril(lower, -1).T

    def _by_rows(self, rows: Callable[..., Array]) -> Float[Array, "rows *m"]:
        """rows(batch, block=…) of all batches one after the other, less those that fill up."""
        blocks = self.problem.features
        parts = [jax.lax.map(partial(rows, block=f), _split((f.inputs, f.weights), self.batch)) for f in blocks]
        joined = [part.reshape(-1, *part.shape[2:])[: f.rows] for f, part in zip(blocks, parts, strict=True)]
        return jnp.concatenate(joined)

    def _sum_rows(self, product: Callable[..., Array], start: Array, values: Array | None = None) -> Array:
        """Σ_b product(A_b), or product(A_b, values_b)."""

        def contribution(block: Features, inputs: tuple[Array, ...], weights: Array, *rows: Array) -> Array:
            return product(weighted_jacobian(self.problem, block, self.params, inputs, weights), *rows)

        return self._sum(contribution, start, values)

    def _sum(self, contribution: Callable, total: Array, values: Array | None = None) -> Array:
        """The sum of the contributions of all batches, one after the other; `values` has a row for each of A."""
        start = 0
        for block in self.problem.features:
            batches: tuple[Any, ...] = _split((block.inputs, block.weights), self.batch)
            if values is not None:
                rest = values.shape[1:]
                own = values[start : start + block.rows].reshape(block.num_points, block.size, *rest)
                own = split(own, len(batches[1]), fill="constant")
                batches = (*batches, own.reshape(len(own), -1, *rest))
                start += block.rows

            def add(total: Array, batch: tuple, block: Features = block) -> tuple[Array, None]:
                return total + contribution(block, *batch), None

            total, _ = jax.lax.scan(add, total, batches)
        return add_up(total)


def _split(arrays: tuple[tuple[Array, ...], Array], batch: int) -> tuple[tuple[Array, ...], Array]:
    """(n, …) → (count, ≤ batch, …), with two batches at least: XLA unrolls a loop of one, and would then hold its rows
    beside those of another block."""
    inputs, weights = arrays
    count = max(2, -(-weights.shape[0] // batch))
    return tuple(split(a, count) for a in inputs), split(weights, count, fill="constant")
