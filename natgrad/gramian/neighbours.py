"""`batched` where the metric couples the rows: groups of neighbouring nodes and the nodes they interact with.

    G = Σ_b J[I_b]ᵀ G_h[I_b, J_b] J[J_b]                        (eq. feinn_gramian_batch; B = max |J_b|)

Rows of J are computed once a group, those of I_b being among those of J_b. Where every row interacts with every other
(a metric with an inverse in it) there are no groups: rows are computed some at a time, twice a product, with the
metric in between.
"""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend import tuning
from natgrad.backend.parallel import count, gather, own_rows, total
from natgrad.gramian.base import Gramian, feature_values, pull, weighted_jacobian
from natgrad.linalg import cross, matmul
from natgrad.problem import Coupling, Problem


class NeighbourBatches(Gramian):
    """No set-up, product with ℓ vectors O(N [FP] + pNℓ + ℓ [G_h]), memory O(pB) (O(pB + Nℓ) without groups)."""

    problem: Problem
    params: PyTree
    coupling: Coupling
    batch: int = eqx.field(static=True)
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "batched"

    def __init__(self, problem: Problem, params: PyTree, coupling: Coupling, batch: int, reason: str = ""):
        self.problem, self.params, self.coupling = problem, params, coupling
        self.batch, self.reason = batch, reason

    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        """Forward and reverse mode through the network at all nodes: cheaper than rows, and no memory to speak of."""
        values = lambda params: feature_values(self.problem, params, self.params)
        _, push = jax.jvp(values, (self.params,), (ravel_pytree(self.params)[1](v),))
        return pull(self.problem, self.params, self.coupling.apply(push))

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return self._products(lambda A: matmul(A, V), V.shape[1])

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        return self._products(lambda A: A[:, indices], indices.shape[0])

    def diagonal(self) -> Float[Array, " p"]:
        start = jnp.zeros(self.size, self.problem.dtype)
        if self.coupling.graph is not None:
            return self._sum(lambda A, block: jnp.sum(A[: len(block)] * matmul(block, A), axis=0), start)
        pick = lambda i, G: G[i, jnp.arange(i.shape[0])]
        return self._unit_vectors(pick).ravel()[: self.size]

    def as_matrix(self) -> Float[Array, "p p"]:
        if self.coupling.graph is not None:
            start = jnp.zeros((self.size, self.size), self.problem.dtype)
            return self._sum(lambda A, block: cross(matmul(block, A), A[: len(block)]), start)
        return self._unit_vectors(lambda i, G: G.T).reshape(-1, self.size)[: self.size]

    def pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        return pull(self.problem, self.params, values)

    def _products(self, right: Callable[[Array], Array], width: int) -> Array:
        """Jᵀ G_h right(J) for a `right` that takes rows to rows."""
        start = jnp.zeros((width, self.size), self.problem.dtype)
        if self.coupling.graph is not None:
            return self._sum(lambda A, block: cross(A[: len(block)], matmul(block, right(A))), start).T
        (features,) = self.problem.features
        n, batch = features.num_points, min(self.batch, features.num_points)
        indices = jnp.minimum(jnp.arange(-(-n // batch) * batch), n - 1).reshape(-1, batch)
        live = (jnp.arange(indices.size) < n).astype(self.problem.dtype).reshape(indices.shape)
        inputs = (features.inputs, features.weights)
        rows = jax.lax.map(lambda i: right(self._rows(inputs, i)), indices).reshape(indices.size, -1)[:n]
        coupled = self.coupling.apply(rows)

        def add(sums: Array, batch: tuple[Array, Array]) -> tuple[Array, None]:
            i, live = batch
            return sums + cross(self._rows(inputs, i), live[:, None] * coupled[i]), None

        return total(jax.lax.scan(add, start, (indices, live))[0]).T

    def _sum(self, contribution: Callable[[Array, Array], Array], start: Array) -> Array:
        """Σ_b contribution(J[J_b], G_h[I_b, J_b])."""
        assert self.coupling.graph is not None
        groups = self.coupling.graph.groups(self.batch)
        (features,) = self.problem.features
        inputs = jax.tree.map(gather, (features.inputs, features.weights))  # a group has nodes of several devices

        def add(sums: Array, group: tuple[Array, ...]) -> tuple[Array, None]:
            rows, cells, inner, outer = group
            block = self.coupling.block(cells, inner, outer, groups.size, groups.rows.shape[1])
            return sums + contribution(self._rows(inputs, rows), block), None

        share = -(-len(groups.rows) // count())
        arrays = [own_rows(jnp.asarray(a), share, fill="edge") for a in (groups.rows, groups.cells, groups.outer)]
        # A group that fills up has no row of its own, and adds nothing.
        inner = own_rows(jnp.asarray(groups.inner) - groups.size, share) + groups.size
        rows, cells, outer = arrays
        return total(jax.lax.scan(add, start, (rows, cells, inner, outer))[0])

    def _rows(self, points: tuple[tuple[Array, ...], Array], indices: Int[Array, " n"]) -> Float[Array, "n p"]:
        (features,) = self.problem.features
        inputs, weights = jax.tree.map(lambda a: a[indices], points)
        return weighted_jacobian(self.problem, features, self.params, inputs, weights)

    def _unit_vectors(self, part: Callable[[Array, Array], Array]) -> Array:
        """part(i, G[:, i]) for groups of columns i, stacked."""
        width = min(tuning.UNIT_VECTORS, self.size)
        indices = np.minimum(np.arange(-(-self.size // width) * width), self.size - 1).reshape(-1, width)
        return jax.lax.map(lambda i: part(i, self.columns(i)), jnp.asarray(indices))
