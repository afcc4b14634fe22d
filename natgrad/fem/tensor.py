"""Tensor-product meshes of intervals, rectangles and boxes: the same spaces without scikit-fem, and faster operators.

Everything follows from tables along each axis: the nodal polynomials and their slopes at all Gauss points of the axis,
dense matrices B_a and D_a (Gauss points × nodes). With constant coefficients the form is a sum of Kronecker products of
1D matrices such as K = DᵀWD and M = BᵀWB (K ⊗ M + M ⊗ K for the Laplacian); with variable ones it is applied by
going to the Gauss points and back along the axes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from typing import Annotated, Any

import numpy as np
import scipy

from natgrad.backend import host
from natgrad.extras import needs
from natgrad.fem.base import BaseSpace, Cells, Facets, _order
from natgrad.fem.forms import Form, numbers
from natgrad.fem.lagrange import gauss, lobatto, table
from natgrad.fem.operators import Kronecker, Operator, Restricted, SumFactorized
from natgrad.fem.riesz import FastDiagonalization
from natgrad.options import Count, Range, checked

SIDES = (("left", "right"), ("bottom", "top"), ("front", "back"))
Degree = Annotated[int, Range(at_least=1, at_most=8)]


def rectangle(cells: Count | Sequence[Count] = (30, 30), degree: Degree = 4, lower=None, upper=None) -> TensorSpace:
    """Qk elements on a rectangle cut into cells[0] × cells[1] equal ones (or on an interval, or on a box).

    Nodes are Gauss–Lobatto, numbered with the last coordinate fastest: node i·n_y + j is (x_i, y_j). The parts of the
    boundary are "left", "right" (x), "bottom", "top" (y), "front" and "back" (z).

        space = ng.fem.rectangle((30, 30), degree=4, lower=(0, 0), upper=(1, 1))
    """
    return TensorSpace(cells, degree, lower, upper)


class TensorSpace(BaseSpace):
    """Continuous piecewise polynomials of degree k in each variable on a tensor mesh: what `rectangle(cells, degree)`
    makes. Its operators work axis by axis.
    """

    @checked
    def __init__(self, cells: Count | Sequence[Count] = (30, 30), degree: Degree = 4, lower=None, upper=None):
        counts = np.atleast_1d(cells)
        d = len(counts)
        if d not in (1, 2, 3):
            raise ValueError(f"cells must be one to three positive integers, got {cells!r}")
        nodes = float(np.prod(counts.astype(float) * (degree + 1))) * (d + 1)
        host.afford(nodes, f"{' × '.join(map(str, counts))} cells of degree {degree}")
        lower = np.zeros(d) if lower is None else np.atleast_1d(numbers(lower, "lower corner"))
        upper = np.ones(d) if upper is None else np.atleast_1d(numbers(upper, "upper corner"))
        if lower.shape != (d,) or upper.shape != (d,) or not np.all(lower < upper):
            raise ValueError(f"lower and upper must be {d} numbers each with lower < upper, got {lower} and {upper}")
        self.counts, self.degree, self.lower, self.upper = counts, int(degree), lower, upper
        self.widths = (upper - lower) / counts
        self.edges = [np.linspace(a, b, c + 1) for a, b, c in zip(lower, upper, counts, strict=True)]
        self.local_nodes = lobatto(self.degree)
        self.axes = [
            np.append((e[:-1, None] + h * self.local_nodes[:-1]).ravel(), e[-1])
            for e, h in zip(self.edges, self.widths, strict=True)
        ]
        self.grid = tuple(len(axis) for axis in self.axes)
        self.nodes = _product(self.axes)
        local = _product([np.arange(self.degree + 1)] * d)
        corner = self.degree * _product([np.arange(c) for c in counts])
        self.dofs = np.ravel_multi_index(tuple(np.moveaxis(corner[:, None] + local, -1, 0)), self.grid)
        self._skfem: Any = None

    def on_skfem_mesh(self) -> Any:
        """The same discretization on the scikit-fem mesh, with the nodes in the same order."""
        if self._skfem is None:
            with needs("A mesh", "fem"):
                import skfem

            from natgrad.fem.space import Space

            kind = (skfem.MeshLine, skfem.MeshQuad, skfem.MeshHex)[self.dim - 1]
            sides = {
                name: lambda x, axis=axis, end=end: np.isclose(x[axis], end)
                for axis, names in enumerate(SIDES[: self.dim])
                for name, end in zip(names, (self.lower[axis], self.upper[axis]), strict=True)
            }
            space = Space(kind.init_tensor(*self.edges).with_boundaries(sides), degree=self.degree)
            near = [np.abs(axis - x[:, None]).argmin(axis=1) for axis, x in zip(self.axes, space.nodes.T, strict=True)]
            self._skfem = space.renumbered(np.ravel_multi_index(tuple(near), self.grid))
        return self._skfem

    @property
    def mesh(self) -> Any:
        """The scikit-fem mesh."""
        return self.on_skfem_mesh().mesh

    def basis(self, order: int | None = None) -> Any:
        """scikit-fem's CellBasis with our numbering of the nodes."""
        return self.on_skfem_mesh().basis(order)

    # Cells and facets

    def cells(self, order: int) -> Cells:
        t, w = gauss(order)
        corner = _product([e[:-1] for e in self.edges])
        points = corner[:, None] + self.widths * _product([t] * self.dim)
        weights = np.prod(self.widths) * np.prod(_product([w] * self.dim), axis=1)
        phi, slopes = self._tables([t] * self.dim)
        inverse = np.broadcast_to(np.diag(1 / self.widths), (len(corner), 1, self.dim, self.dim))
        return Cells(self.dofs, phi, slopes, inverse, points, np.broadcast_to(weights, points.shape[:-1]))

    def _tables(self, points: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Basis functions (q, b) and their slopes (q, b, d) at a grid of reference points."""
        tables = [table(t, self.local_nodes) for t in points]
        pick = lambda axis: reduce(np.kron, [t[int(a == axis)] for a, t in enumerate(tables)])
        return pick(-1), np.stack([pick(a) for a in range(self.dim)], axis=-1)

    def _sides(self, part: Any) -> list[tuple[int, int, np.ndarray]]:
        """(axis, 0 or 1, cells) of the facets of a part."""
        numbers = np.arange(len(self.dofs)).reshape(self.counts)
        known = dict(zip(itertools.chain(*SIDES[: self.dim]), itertools.product(range(self.dim), (0, 1)), strict=True))
        sides = {s: np.take(numbers, -s[1], axis=s[0]).ravel() for s in known.values()}
        if isinstance(part, list | tuple | set):
            found: dict[tuple[int, int], np.ndarray] = {}
            for axis, side, cells in itertools.chain(*map(self._sides, part)):
                found[axis, side] = np.union1d(found.get((axis, side), cells), cells)
            return [(*s, c) for s, c in found.items()]
        if part is None:
            return [(*s, c) for s, c in sides.items()]
        if isinstance(part, str):
            if part not in known:
                raise ValueError(f"the mesh has no boundary {part!r} (it has {', '.join(known)})")
            return [(*known[part], sides[known[part]])]
        if not callable(part):
            raise ValueError(f"a part of the boundary is a name, a function of x or a list of these, got {part!r}")
        middle = _product([(e[:-1] + e[1:]) / 2 for e in self.edges])
        picked = []
        for (axis, side), cells in sides.items():
            x = middle[cells].T.copy()
            x[axis] = (self.lower, self.upper)[side][axis]
            inside = np.broadcast_to(np.asarray(part(x), dtype=bool), len(cells))
            if inside.any():
                picked.append((axis, side, cells[inside]))
        if not picked:
            raise ValueError(f"no facet of the boundary belongs to {part!r}")
        return picked

    def boundary(self, part: Any = None) -> np.ndarray:
        local = _product([np.arange(self.degree + 1)] * self.dim)
        return np.unique(
            np.concatenate([self.dofs[c][:, local[:, a] == s * self.degree].ravel() for a, s, c in self._sides(part)])
        )

    def facets(self, part: Any, order: int) -> Facets:
        t, w = gauss(order)
        corner = _product([e[:-1] for e in self.edges])
        pieces = []
        for axis, side, cells in self._sides(part):
            reference = [np.array([float(side)]) if a == axis else t for a in range(self.dim)]
            ones = [np.ones(1) if a == axis else w * self.widths[a] for a in range(self.dim)]
            points = corner[cells][:, None] + self.widths * _product(reference)
            points[..., axis] = (self.lower, self.upper)[side][axis]
            phi = np.broadcast_to(self._tables(reference)[0], (len(cells), points.shape[1], self.dofs.shape[1]))
            weights = np.broadcast_to(np.prod(_product(ones), axis=1), points.shape[:-1])
            normals = np.broadcast_to((2 * side - 1) * np.eye(self.dim)[axis], points.shape)
            pieces.append(Facets(self.dofs[cells], phi, points, normals, weights))
        return Facets(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))

    # Operators

    def operator(self, form: Any, free: Any = None, path: str | None = None) -> Operator:
        """The form as a frozen operator on the values at the `free` nodes (all where None).

        `path` is "axes" (dense products along the axes) or "cells" (see `Elementwise`, which has far fewer operations
        and measured faster on both a CPU and a GPU: `python -m benchmarks.fem`), the default.
        """
        if path not in (None, "axes", "cells"):
            raise ValueError(f"path must be 'axes' or 'cells', got {path!r}")
        if not isinstance(form, Form):
            return self.on_skfem_mesh().operator(form, free)
        if path != "axes":
            return super().operator(form, free)
        free = self.check_free(free)
        if form.constant:
            sets = self._product_of(free)
            whole: Operator = Kronecker(self._kronecker(form, sets))
            if sets is not None:
                return whole
        else:
            whole = self._sum_factorized(form)
        return whole if free is None else Restricted(whole=whole, free=host.array(free), size=len(free))

    def assemble(self, form: Any) -> scipy.sparse.csr_array:
        return super().assemble(form) if isinstance(form, Form) else self.on_skfem_mesh().assemble(form)

    def fast_diagonalization(self, form: Any, free: np.ndarray | None) -> Operator:
        """The exact inverse for constant, axis-parallel diffusion and reaction, on a product of free nodes."""
        sets = self._product_of(free)
        constant = isinstance(form, Form) and form.constant
        C = form.matrix(np.zeros((1, self.dim)))[0] if constant else np.ones((2, 2))
        if not constant or np.any(C - np.diag(np.diag(C))) or np.any(np.diag(C) < 0):
            raise ValueError(
                "kind='fast' needs constant coefficients, a diagonal diffusion and no advection: "
                "use 'exact' or 'cycles'"
            )
        if sets is None:
            raise ValueError("kind='fast' needs whole sides of the mesh to be free or fixed: use 'exact' or 'cycles'")
        matrices = [self._axis_matrices(a, _order(form, self.degree), sets[a]) for a in range(self.dim)]
        return FastDiagonalization(
            [m[1][1] for m in matrices], [m[0][0] for m in matrices], np.diag(C)[1:], float(C[0, 0])
        )

    def _global_tables(self, axis: int, order: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values and slopes (Gauss points of the axis × its nodes), the points and the weights."""
        t, w = gauss(order)
        values, slopes = table(t, self.local_nodes)
        c, q, k, h = self.counts[axis], len(t), self.degree, self.widths[axis]
        B, D = np.zeros((2, c, q, self.grid[axis]))
        for i in range(c):
            B[i, :, i * k : i * k + k + 1] = values
            D[i, :, i * k : i * k + k + 1] = slopes / h
        points = self.edges[axis][:-1, None] + h * t
        return B.reshape(c * q, -1), D.reshape(c * q, -1), points.ravel(), np.tile(h * w, c)

    def _axis_matrices(self, axis: int, order: int, nodes: np.ndarray) -> list[list[np.ndarray]]:
        """[i][j]: ∫ (∂ⁱφ)(∂ʲφ) along an axis, rows are test functions, for some of its nodes."""
        B, D, _, w = self._global_tables(axis, order)
        tables = (B[:, nodes], D[:, nodes])
        return [[(w[:, None] * test).T @ trial for trial in tables] for test in tables]

    def _kronecker(self, form: Form, sets: list[np.ndarray] | None) -> list[list[np.ndarray]]:
        """The terms of the form, as few as there are after sums along one axis; see `Kronecker`."""
        C = form.matrix(np.zeros((1, self.dim)))[0]
        terms = []  # along each axis, the coefficients of the four 1D matrices
        for i, j in zip(*np.nonzero(C), strict=True):
            factors = [np.eye(4)[2 * (i == a + 1) + (j == a + 1)] for a in range(self.dim)]
            terms.append([C[i, j] * factors[0], *factors[1:]])
        for axis in range(self.dim):
            merged: dict[bytes, list[np.ndarray]] = {}
            for term in terms:
                key = b"".join(f.tobytes() for a, f in enumerate(term) if a != axis)
                before = merged.setdefault(key, [f if a != axis else 0 * f for a, f in enumerate(term)])
                before[axis] = before[axis] + term[axis]
            terms = list(merged.values())
        everything = [np.arange(n) for n in self.grid]
        matrices = [
            np.array(self._axis_matrices(a, _order(form, self.degree), (sets or everything)[a])).reshape(4, -1)
            for a in range(self.dim)
        ]
        square = lambda m: m.reshape(int(np.sqrt(m.size)), -1)
        zero = [[np.zeros(4)] * self.dim]
        return [[square(f @ m) for f, m in zip(term, matrices, strict=True)] for term in terms or zero]

    def _sum_factorized(self, form: Form) -> Operator:
        tables = [self._global_tables(a, _order(form, self.degree)) for a in range(self.dim)]
        points, weights = (np.meshgrid(*(t[k] for t in tables), indexing="ij") for k in (2, 3))
        C = form.matrix(np.stack(points, axis=-1)) * np.prod(weights, axis=0)[..., None, None]
        pairs = {
            (i, j): C[..., i, j] for i, j in itertools.product(range(self.dim + 1), repeat=2) if np.any(C[..., i, j])
        }
        return SumFactorized([t[0] for t in tables], [t[1] for t in tables], pairs)

    def _product_of(self, free: np.ndarray | None) -> list[np.ndarray] | None:
        """The nodes along each axis of which `free` is the product in order, or None."""
        if free is None:
            return [np.arange(n) for n in self.grid]
        sets = [np.unique(i) for i in np.unravel_index(free, self.grid)]
        product = np.ravel_multi_index(tuple(_product(sets).T), self.grid)
        return sets if np.array_equal(product, free) else None

    def linear(self) -> tuple[TensorSpace, scipy.sparse.csr_array]:
        coarse = TensorSpace(self.counts.tolist(), 1, self.lower, self.upper)
        per_axis = []
        for a, count in enumerate(self.counts):
            cell = np.minimum(np.arange(self.grid[a]) // self.degree, count - 1)
            t = np.append(np.tile(self.local_nodes[:-1], count), 1.0)
            rows = np.repeat(np.arange(self.grid[a]), 2)
            entries = np.stack([1 - t, t], axis=1).ravel(), (rows, np.stack([cell, cell + 1], axis=1).ravel())
            per_axis.append(scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=(self.grid[a], count + 1))))
        P = scipy.sparse.csr_array(reduce(scipy.sparse.kron, per_axis))
        P.eliminate_zeros()
        return coarse, P

    def evaluate(self, values: Any, points: Any) -> np.ndarray:
        x = np.asarray(points, dtype=float)
        if x.ndim != 2 or x.shape[1] != self.dim:
            raise ValueError(f"points must have shape (n, {self.dim}), got {x.shape}")
        if np.any(x < self.lower - 1e-12) or np.any(x > self.upper + 1e-12):
            raise ValueError("some points lie outside of the mesh")
        cell = np.clip(((x - self.lower) / self.widths).astype(int), 0, self.counts - 1)
        t = (x - self.lower) / self.widths - cell
        local = [table(t[:, a], self.local_nodes)[0] for a in range(self.dim)]
        phi = reduce(lambda p, q: (p[:, :, None] * q[:, None, :]).reshape(len(x), -1), local)
        dofs = self.dofs[np.ravel_multi_index(tuple(cell.T), tuple(self.counts))]
        return np.sum(phi * np.asarray(values)[dofs], axis=1)


def _product(axes: list[np.ndarray]) -> np.ndarray:
    """(n₁ ⋯ n_d, d): the grid of coordinates, the last one fastest."""
    return np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=-1)
