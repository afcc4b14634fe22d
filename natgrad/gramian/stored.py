"""`jacobian`: A = W^½ J is computed once and stored; every product is one or two passes over it."""

import operator
from collections.abc import Callable, Iterable
from functools import reduce
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend import tuning
from natgrad.backend.chunks import stack
from natgrad.backend.parallel import columns, inside, total
from natgrad.gramian.base import Gramian, weighted_jacobian
from natgrad.gramian.linearized import Linearized
from natgrad.linalg import TestMatrix, cross, gram, gram_diagonal, gram_vector, matmul, row_gram
from natgrad.problem import Coupling, Problem


class StoredJacobian(Gramian):
    """Set-up O(q [FP]), product with ℓ vectors O(pqℓ), memory O(pq).

    The rows are kept in several arrays: stacking them would copy the Jacobian. Where a coupling has the derivatives
    (finite elements), rows are the network's bare values: a pass through the network then reads less than a fifth of
    what A has, and products with one vector go by it.
    """

    problem: Problem
    params: PyTree
    blocks: tuple[Float[Array, "rows p"], ...]
    coupling: Coupling | None
    passes: Linearized | None
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "jacobian"

    def __init__(self, problem: Problem, params: PyTree, reason: str = ""):
        self.problem, self.params, self.reason = problem, params, reason
        self.blocks = tuple(weighted_jacobian(problem, f, params, f.inputs, f.weights) for f in problem.features)
        self.coupling = problem.coupling(params)
        self.passes = None if self.coupling is None else Linearized(problem, params, batch=1)

    @property
    def jacobian(self) -> Float[Array, "rows p"]:
        """A = W^½ J, all blocks stacked (a copy)."""
        return jnp.concatenate(self.blocks)

    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        if self.passes is not None:
            return self.passes.mv(v)
        return _sum(gram_vector(A, v) for A in self.blocks)

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return _sum(cross(A, B) for B, A in self._coupled([matmul(A, V) for A in self.blocks])).T

    def push_many(self, omega: TestMatrix) -> Float[Array, "rows m"]:
        return jnp.concatenate([omega.times(A) for A in self.blocks])

    def pull_many(self, values: Float[Array, "m rows"]) -> Float[Array, "m p"]:
        return _sum(matmul(B, A) for B, A in zip(self._split(values), self.blocks, strict=True))

    def diagonal(self) -> Float[Array, " p"]:
        if self.coupling is None:
            return _sum(gram_diagonal(A) for A in self.blocks)
        coupling = self.coupling
        return self._by_columns(lambda start: coupling.quadratic(jnp.concatenate(self._slices(start))))

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        return _sum(cross(A, B) for B, A in self._coupled([A[:, indices] for A in self.blocks])).T

    def as_matrix(self) -> Float[Array, "p p"]:
        if self.coupling is None:
            return _sum(gram(A) for A in self.blocks)
        return self._by_columns(lambda start: _sum(cross(A, B) for B, A in self._coupled(self._slices(start))))

    def pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        if self.passes is not None:
            return self.passes.pull(values)
        return _sum(f @ A for f, A in zip(self._split(values), self.blocks, strict=True))

    def push(self, v: Float[Array, " p"]) -> Float[Array, " rows"]:
        if self.passes is not None:
            return self.passes.push(v)
        return jnp.concatenate([A @ v for A in self.blocks])

    def kernel(self, squares: Float[Array, " p"] | None = None) -> Float[Array, "rows rows"]:
        if self.coupling is not None:
            return super().kernel(squares)
        if inside():  # all rows of some columns a device: no device ever has the whole of A
            A = columns(self.jacobian if squares is None else self.jacobian * jnp.sqrt(squares))
            return total(row_gram(A, A))
        scaled = self.blocks if squares is None else [A * squares for A in self.blocks]
        return jnp.block([[row_gram(A, B) for B in self.blocks] for A in scaled])

    def _coupled(self, parts: list[Array]) -> Iterable[tuple[Array, Array]]:
        """Rows of each block with the metric applied to them, beside the blocks."""
        if self.coupling is not None:
            parts = self._split(self.coupling.apply(jnp.concatenate(parts)))
        return zip(parts, self.blocks, strict=True)

    def _split(self, rows: Array) -> list[Array]:
        return jnp.split(rows, np.cumsum([len(A) for A in self.blocks])[:-1], axis=-1)

    def _slices(self, start: Array) -> list[Array]:
        return [jax.lax.dynamic_slice_in_dim(A, start, self._width, 1) for A in self.blocks]

    @property
    def _width(self) -> int:
        """How many columns of A a coupling is applied to at a time, where it must be to all."""
        return min(tuning.COUPLED_COLUMNS, self.size)

    def _by_columns(self, part: Callable[[Array], Array]) -> Array:
        """part(start) of columns start, …, start + width − 1, put together along the first axis."""
        return stack(self.size, self._width, part)


def _sum(parts: Iterable[Array]) -> Array:
    return total(reduce(operator.add, parts))
