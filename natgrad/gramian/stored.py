"""`jacobian`: A = W^½ J is computed once and stored; every product is one or two passes over it."""

import operator
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from natgrad.gramian.base import CHUNK, Gramian, sqrt_weights, weighted_jacobian
from natgrad.linalg import cross, gram, gram_diagonal, gram_mm
from natgrad.problem import Features, Problem


class StoredJacobian(Gramian):
    """Set-up O(q [FP]), product with ℓ vectors O(pqℓ), memory O(pq).

    The rows are kept in several arrays: stacking them would copy the Jacobian.
    """

    problem: Problem
    params: PyTree
    blocks: tuple[Float[Array, "rows p"], ...]
    root_weights: Float[Array, " rows"]
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "jacobian"

    def __init__(self, problem: Problem, params: PyTree, reason: str = ""):
        self.problem, self.params, self.reason = problem, params, reason
        self.blocks = tuple(
            weighted_jacobian(problem, f, params, inputs, weights)
            for f in problem.features
            for inputs, weights in _pieces(f)
        )
        self.root_weights = sqrt_weights(problem, params)

    @property
    def jacobian(self) -> Float[Array, "rows p"]:
        """A = W^½ J, all blocks stacked (a copy)."""
        return jnp.concatenate(self.blocks)

    # (A v) A and not Aᵀ (A v): XLA on CPU would write the transpose of A to memory first.
    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        return _sum((A @ v) @ A for A in self.blocks)

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return _sum(gram_mm(A, V) for A in self.blocks)

    def diagonal(self) -> Float[Array, " p"]:
        return _sum(gram_diagonal(A) for A in self.blocks)

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        return _sum(cross(A, A[:, indices]) for A in self.blocks).T

    def as_matrix(self) -> Float[Array, "p p"]:
        return _sum(gram(A) for A in self.blocks)

    def pullback(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        ends = np.cumsum([len(A) for A in self.blocks])[:-1]
        return _sum(f @ A for f, A in zip(jnp.split(self.root_weights * values, ends), self.blocks, strict=True))


def _pieces(block: Features) -> Iterator[tuple[tuple[Array, ...], Array]]:
    """The points of a block in a multiple of CHUNK and the rest, so that neither is copied to be put together."""
    n = block.num_points
    cut = n - n % CHUNK
    for piece in (slice(0, cut), slice(cut, n)):
        if piece.start < piece.stop:
            yield tuple(a[piece] for a in block.inputs), block.weights[piece]


def _sum(parts: Iterable[Array]) -> Array:
    return reduce(operator.add, parts)
