"""What every space does with its cells, whatever they are: assembly, loads, operators, Galerkin solutions, errors."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy

from natgrad.backend import host, tuning
from natgrad.fem.errors import FEErrors
from natgrad.fem.forms import Form, arity, tabulate
from natgrad.fem.operators import Elementwise, Operator
from natgrad.fem.riesz import Factor, riesz_map


class Cells(NamedTuple):
    """A quadrature rule on all cells: e cells, q points in each, b basis functions, dimension d."""

    dofs: np.ndarray  # (e, b)
    phi: np.ndarray  # (q, b)
    slopes: np.ndarray  # (q, b, d), in reference coordinates
    inverse: np.ndarray  # (e, q, d, d), ∂(reference r)/∂(x_k) at [..., r, k]; q may be 1
    points: np.ndarray  # (e, q, d)
    weights: np.ndarray  # (e, q)


class Facets(NamedTuple):
    """A quadrature rule on some boundary facets."""

    dofs: np.ndarray  # (f, b)
    phi: np.ndarray  # (f, q, b)
    points: np.ndarray  # (f, q, d)
    normals: np.ndarray  # (f, q, d), outer
    weights: np.ndarray  # (f, q)


class BaseSpace(abc.ABC):
    """Continuous piecewise polynomials, known by their values at `nodes` (N, d); `dofs` (cells, b) numbers the nodes of
    each cell. `Space(mesh, degree)` makes one from a scikit-fem mesh, `rectangle(cells, degree)` a tensor-product one.
    """

    nodes: np.ndarray
    degree: int
    dofs: np.ndarray

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def dim(self) -> int:
        return self.nodes.shape[1]

    @abc.abstractmethod
    def cells(self, order: int) -> Cells:
        """A quadrature rule exact to the given degree on every cell."""

    @abc.abstractmethod
    def facets(self, part: Any, order: int) -> Facets:
        """A quadrature rule exact to the given degree on every facet of a part of the boundary."""

    @abc.abstractmethod
    def boundary(self, part: Any = None) -> np.ndarray:
        """The numbers of the nodes on the boundary or on a part of it.

        A part is a name, a function of the midpoints x (d, facets) to booleans, or a list of these.
        """

    @abc.abstractmethod
    def linear(self) -> tuple[BaseSpace, scipy.sparse.csr_array]:
        """The space of degree 1 on the same cells, and the interpolation (N, N₁) from it."""

    @abc.abstractmethod
    def evaluate(self, values: Any, points: Any) -> np.ndarray:
        """The finite-element function at points (n, d)."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.dofs)} cells, degree {self.degree}, {self.num_nodes} nodes)"

    def on_skfem_mesh(self) -> BaseSpace:
        """The same space on the scikit-fem mesh: this one, unless it is a tensor mesh."""
        return self

    def free(self, part: Any = None) -> np.ndarray:
        """The numbers of the nodes that are not on `part` of the boundary, in increasing order."""
        return np.setdiff1d(np.arange(self.num_nodes), self.boundary(part))

    def interpolate(self, f: Any, name: str = "function") -> np.ndarray:
        """(N,): a function of x (or a number) at the nodes; `name` is what a complaint calls it."""
        values = tabulate(f, self.nodes, name)
        if values.ndim != 1:
            raise ValueError(f"the {name} must give a number at one point, got shape {values.shape[1:]}")
        return values.copy()

    def local_matrices(self, form: Any) -> np.ndarray:
        """(e, b, b): the form on every cell, rows are test functions."""
        cells = self.cells(_order(form, self.degree))
        return np.concatenate([_local(form, chunk) for chunk in _chunks(cells)])

    def assemble(self, form: Any) -> scipy.sparse.csr_array:
        """(N, N): A[i, j] = a(φ_j, φ_i)."""
        return sum_cells(self.local_matrices(form), self.dofs, self.num_nodes)

    def load(self, f: Any = None, neumann: Mapping[Any, Any] | None = None, order: int | None = None) -> np.ndarray:
        """(N,): ∫ f v + Σ ∫_part ψ v. f is a number or a function of x; ψ one of x, or of x and the outer normal n."""
        order = 2 * self.degree + 2 if order is None else order
        vector = np.zeros(self.num_nodes)
        if f is not None:
            cells = self.cells(order)
            values = _scalars(f, cells.points, "load")
            np.add.at(vector, cells.dofs, (cells.weights * values) @ cells.phi)
        for part, psi in (neumann or {}).items():
            facets = self.facets(part, order)
            values = _scalars(psi, facets.points, f"Neumann datum on {part!r}", facets.normals)
            np.add.at(vector, facets.dofs, np.einsum("fq,fqb->fb", facets.weights * values, facets.phi))
        return vector

    def operator(self, form: Any, free: Any = None) -> Operator:
        """The form as a frozen operator on the values at the `free` nodes (all where None)."""
        number = np.arange(self.num_nodes)
        free = self.check_free(free)
        if free is not None:
            number = np.full(self.num_nodes, len(free))
            number[free] = np.arange(len(free))
        size = self.num_nodes if free is None else len(free)
        local, dofs = host.array(self.local_matrices(form)), host.array(number[self.dofs], np.int32)
        return Elementwise(local=local, dofs=dofs, size=size)

    def riesz(self, form: Any, free: Any = None, kind: str = "exact", **options: Any) -> Operator:
        """The inverse of a symmetric form on the `free` nodes, or (kind "cycles") an SPD approximation of it."""
        return riesz_map(self, form, self.check_free(free), kind, **options)

    def galerkin(self, form: Any, load: Any, dirichlet_values: Any = None, free: Any = None) -> np.ndarray:
        """(N,): u with u = dirichlet_values off the `free` nodes and a(u, φ_i) = load_i on them."""
        free = self.check_free(free)
        u = np.zeros(self.num_nodes) if dirichlet_values is None else np.array(dirichlet_values, dtype=float)
        load = np.asarray(load, dtype=float)
        for name, vector in (("load", load), ("dirichlet_values", u)):
            if vector.shape != (self.num_nodes,):
                raise ValueError(f"{name} must have shape ({self.num_nodes},), one number per node, got {vector.shape}")
        A = self.assemble(form)
        rows = np.arange(self.num_nodes) if free is None else free
        u[rows] = 0
        u[rows] = Factor(A[rows][:, rows], symmetric=False)((load - A @ u)[rows, None])[:, 0]
        return u

    def errors(self, exact: Callable | np.ndarray, order: int | None = None) -> FEErrors:
        """Relative L² and H¹ errors against a function of one point, the exact one, or against nodal values (N,)."""
        return FEErrors(self.cells(4 * self.degree if order is None else order), exact)

    def check_free(self, free: Any) -> np.ndarray | None:
        """The free nodes as distinct integers in range, or one line."""
        if free is None:
            return None
        nodes = np.asarray(free)
        if nodes.ndim != 1 or not np.issubdtype(nodes.dtype, np.integer) or len(nodes) == 0:
            raise ValueError(f"free must be a non-empty list of node numbers, got {nodes.dtype} of shape {nodes.shape}")
        if nodes.min() < 0 or nodes.max() >= self.num_nodes or len(np.unique(nodes)) < len(nodes):
            raise ValueError(f"free must number distinct nodes from 0 to {self.num_nodes - 1}")
        return nodes


def sum_cells(local: np.ndarray, dofs: np.ndarray, size: int) -> scipy.sparse.csr_array:
    """Σ_e Rₑᵀ Aₑ Rₑ (size, size) of matrices (e, b, b) on cells with nodes (e, b)."""
    b = dofs.shape[1]
    rows, columns = np.repeat(dofs, b, axis=1), np.tile(dofs, (1, b))
    return scipy.sparse.csr_array(
        scipy.sparse.coo_array((local.ravel(), (rows.ravel(), columns.ravel())), shape=(size, size))
    )


def _order(form: Any, degree: int) -> int:
    if not isinstance(form, Form):
        raise ValueError(f"a form is natgrad.fem.Form or a scikit-fem BilinearForm, got {type(form).__name__}")
    return 2 * degree if form.order is None else form.order


def _local(form: Form, cells: Cells) -> np.ndarray:
    e, (q, b), d = len(cells.dofs), cells.phi.shape, cells.points.shape[-1]
    D = np.empty((e, q, d + 1, b))  # u and ∇u of every basis function
    D[:, :, 0] = cells.phi
    D[:, :, 1:] = np.einsum("qbr,eqrk->eqkb", cells.slopes, np.broadcast_to(cells.inverse, (e, q, d, d)), optimize=True)
    C = form.matrix(cells.points) * cells.weights[:, :, None, None]
    return np.swapaxes(D.reshape(e, -1, b), 1, 2) @ (C @ D).reshape(e, -1, b)


def _chunks(cells: Cells) -> Iterator[Cells]:
    """The cells, some at a time, so that the tables of their gradients fit in memory."""
    (q, b), d = cells.phi.shape, cells.points.shape[-1]
    step = max(1, tuning.TABLE_NUMBERS // (q * b * (d + 1)))
    for i in range(0, len(cells.dofs), step):
        s = slice(i, i + step)
        yield cells._replace(
            dofs=cells.dofs[s], inverse=cells.inverse[s], points=cells.points[s], weights=cells.weights[s]
        )


def _scalars(f: Any, points: np.ndarray, name: str, normals: np.ndarray | None = None) -> np.ndarray:
    """A scalar function at points (e, q, d), of their normals too where it takes two arguments."""
    flat = points.reshape(-1, points.shape[-1])
    more = (normals.reshape(flat.shape),) if normals is not None and callable(f) and arity(f) == 2 else ()
    values = tabulate(f, flat, name, *more)
    if values.ndim != 1:
        raise ValueError(f"the {name} must give a number at one point, got shape {values.shape[1:]}")
    return values.reshape(points.shape[:-1])
