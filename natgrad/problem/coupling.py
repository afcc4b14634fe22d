"""Metrics that couple the rows of the Jacobian: G = Jᵀ G_h J with G_h between nodal values (eq. feinn_gramian).

A finite-element operator G_h is sparse, not diagonal. What the strategies of the Gramian need of it is its product with
vectors, and for batches (eq. feinn_gramian_batch) the sub-matrices G_h[I_b, J_b] of groups of neighbouring nodes I_b
and all nodes J_b that interact with them. Both come from the cells: G_h = Σ_e Rₑᵀ Aₑ Rₑ.
"""

from functools import lru_cache
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from natgrad.backend.parallel import columns, gather, on_all_rows
from natgrad.fem import Operator
from natgrad.fem.operators import Elementwise


class Groups(NamedTuple):
    """Groups of neighbouring rows, filled up to equal sizes: k groups, i rows in each, j interacting ones, e cells.

    `rows` (k, j) numbers the rows J_b, those of I_b first (positions below i). `cells` (k, e) are the cells that touch
    I_b; `inner` and `outer` (k, e, b) the positions of their nodes in I_b (i where not in it) and in J_b (j likewise).
    """

    rows: np.ndarray
    size: int
    cells: np.ndarray
    inner: np.ndarray
    outer: np.ndarray


class Graph:
    """Which rows interact: those that share a cell. Host data, compared by identity, so that it may be static.

    `dofs` (cells, b) numbers the rows of each cell, with numbers ≥ n for nodes that are no rows; `points` (n, d) says
    where they are.
    """

    def __init__(self, dofs: np.ndarray, points: np.ndarray):
        self.dofs, self.points = np.asarray(dofs), np.asarray(points)
        free = self.dofs < len(self.points)
        self._cell = np.nonzero(free)[0][np.argsort(self.dofs[free], kind="stable")]
        self._start = np.searchsorted(np.sort(self.dofs[free]), np.arange(len(self.points) + 1))
        self.groups = lru_cache(maxsize=8)(self._groups)

    @classmethod
    def of(cls, operator: Operator, points: np.ndarray) -> "Graph":
        """The rows that share a cell of an operator."""
        assert isinstance(operator, Elementwise)
        return cls(np.asarray(operator.dofs), points)

    def touching(self, rows: np.ndarray) -> np.ndarray:
        """The cells that have one of the rows."""
        return np.unique(np.concatenate([self._cell[self._start[r] : self._start[r + 1]] for r in rows]))

    def interacting(self, rows: np.ndarray) -> np.ndarray:
        """J: the rows that share a cell with one of the given ones."""
        nodes = np.unique(self.dofs[self.touching(rows)])
        return nodes[nodes < len(self.points)]

    def _groups(self, batch: int) -> Groups:
        """Groups with |J_b| ≤ batch (or of one row, where even that has more neighbours), by halving along the longest
        side of their box."""
        done, todo = [], [np.arange(len(self.points))]
        while todo:
            rows = todo.pop()
            if len(rows) == 1 or (len(rows) <= batch and len(self.interacting(rows)) <= batch):
                done.append(rows)
                continue
            x = self.points[rows]
            order = np.argsort(x[:, np.argmax(np.ptp(x, axis=0))], kind="stable")
            todo += [rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]]
        return self._pack(done)

    def _pack(self, groups: list[np.ndarray]) -> Groups:
        n = len(self.points)
        others = [np.setdiff1d(self.interacting(rows), rows) for rows in groups]
        cells = [self.touching(rows) for rows in groups]
        i, o, e = (max(map(len, lists)) for lists in (groups, others, cells))
        packed = Groups(
            rows=np.zeros((len(groups), i + o), np.int32),
            size=i,
            cells=np.zeros((len(groups), e), np.int32),
            inner=np.full((len(groups), e, self.dofs.shape[1]), i, np.int32),
            outer=np.full((len(groups), e, self.dofs.shape[1]), i + o, np.int32),
        )
        for k, (rows, more, touched) in enumerate(zip(groups, others, cells, strict=True)):
            inner, outer = np.full(n + 1, i), np.full(n + 1, i + o)
            inner[rows] = outer[rows] = np.arange(len(rows))
            outer[more] = i + np.arange(len(more))
            dofs = np.minimum(self.dofs[touched], n)
            packed.rows[k, : len(rows)], packed.rows[k, i : i + len(more)] = rows, more
            packed.cells[k, : len(touched)] = touched
            packed.inner[k, : len(touched)], packed.outer[k, : len(touched)] = inner[dofs], outer[dofs]
        return packed


class Coupling(eqx.Module):
    """G_h, symmetric positive semidefinite: `operator.apply` takes (rows,) or (rows, m). Where it is a sum over cells,
    `graph` says which rows share one; without it every row interacts with every other."""

    operator: Operator
    graph: Graph | None = eqx.field(static=True, default=None)

    def apply(self, x: Float[Array, "rows *m"]) -> Float[Array, "rows *m"]:
        """G_h x, for the rows of this device where they are spread over several."""
        return on_all_rows(self.operator.apply, x, self.operator.size)

    def quadratic(self, x: Float[Array, "rows m"]) -> Float[Array, " m"]:
        """xᵀ G_h x for each column, of the rows of all devices where they are spread over several."""
        return gather(self.operator.quadratic(columns(x)[: self.operator.size]), x.shape[1])

    def block(self, cells: Array, inner: Array, outer: Array, size: int, width: int) -> Float[Array, "i j"]:
        """G_h[I_b, J_b] of one group."""
        assert isinstance(self.operator, Elementwise)
        local = self.operator.local
        matrix = jnp.zeros((size, width), local.dtype)
        return matrix.at[inner[:, :, None], outer[:, None, :]].add(local[cells], mode="drop")
