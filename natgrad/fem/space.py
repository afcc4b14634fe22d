"""Nodal finite elements on a scikit-fem mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from natgrad.extras import needs
from natgrad.fem.base import BaseSpace, Cells, Facets


class Space(BaseSpace):
    """Continuous piecewise polynomials on an `ng.Mesh`, or on a scikit-fem mesh of triangles, quadrilaterals,
    tetrahedra or hexahedra.

        Space(ng.Mesh("plate.msh"), degree=2)
        Space(skfem.MeshTri.init_circle(4), degree=3)
        Space(mesh, element=skfem.ElementTriP2())

    Nodes are Gauss–Lobatto points on quadrilaterals (degree 1 to 8) and hexahedra (1 to 4), equispaced ones on
    triangles and tetrahedra (1 to 4). An own `element` is welcome if it is nodal. The orientation of the cells is free.
    """

    def __init__(self, mesh: Any, degree: int = 1, *, element: Any = None):
        with needs("A mesh", "fem"):
            from skfem.mesh import Mesh

        from natgrad.fem.elements import check_nodal, nodal_element, oriented_dofs

        mesh = mesh.to_skfem() if hasattr(mesh, "to_skfem") else mesh
        if not isinstance(mesh, Mesh):
            raise ValueError(f"mesh must be a scikit-fem mesh, for example skfem.MeshTri(), got {type(mesh).__name__}")
        refdom = mesh.elem.refdom
        self.mesh = mesh
        if element is None:
            self.element = nodal_element(refdom, degree)
            self.degree = self.element.maxdeg
        else:
            self.element = check_nodal(element)
            if self.element.refdom is not refdom:
                raise ValueError(
                    f"{type(self.element).__name__} is for {self.element.refdom.name.lower()} cells, "
                    f"the mesh has {refdom.name.lower()} ones"
                )
            per_axis = int(np.ceil(round(len(self.element.doflocs) ** (1 / refdom.dim()), 6))) - 1
            simplex = refdom.nnodes == refdom.dim() + 1
            self.degree = self.element.maxdeg if simplex else min(self.element.maxdeg, per_axis)
        self._dofs = oriented_dofs(mesh, self.element)
        self.dofs = self._dofs.element_dofs.T
        self.nodes = np.zeros((self._dofs.N, mesh.dim()))
        self.nodes[self.dofs] = np.moveaxis(mesh._mapping().F(self.element.doflocs.T), 0, -1)

    def basis(self, order: int | None = None) -> Any:
        """scikit-fem's CellBasis with our numbering of the nodes."""
        from skfem.assembly import CellBasis

        order = 2 * self.degree if order is None else order
        return CellBasis(self.mesh, self.element, quadrature=self._rule(order), dofs=self._dofs)

    def _rule(self, order: int) -> tuple[np.ndarray, np.ndarray]:
        from natgrad.fem.elements import quadrature

        return quadrature(self.element.refdom, order)

    def renumbered(self, numbers: np.ndarray) -> Space:
        """The same space with node i called numbers[i]."""
        from copy import copy

        space = copy(self)
        space._dofs = copy(self._dofs)
        for name in ("nodal_dofs", "edge_dofs", "facet_dofs", "interior_dofs", "element_dofs"):
            table = getattr(self._dofs, name)
            setattr(space._dofs, name, np.asarray(numbers, dtype=np.int32)[table] if table.size else table)
        space.dofs = space._dofs.element_dofs.T
        space.nodes = np.empty_like(self.nodes)
        space.nodes[numbers] = self.nodes
        return space

    def boundary(self, part: Any = None) -> np.ndarray:
        return self._dofs.get_facet_dofs(self._facets(part)).flatten().astype(np.int64)

    def _facets(self, part: Any) -> np.ndarray:
        if part is None:
            return self.mesh.boundary_facets()
        if isinstance(part, list | tuple | set):
            return np.unique(np.concatenate([self._facets(p) for p in part]))
        if isinstance(part, str):
            known = self.mesh.boundaries or {}
            if part not in known:
                names = ", ".join(sorted(known)) or "none; name some by mesh.with_boundaries or mesh.with_defaults"
                raise ValueError(f"the mesh has no boundary {part!r} (it has {names})")
            found = np.asarray(known[part])
        elif callable(part):
            found = self.mesh.facets_satisfying(part, boundaries_only=True)
        else:
            raise ValueError(f"a part of the boundary is a name, a function of x or a list of these, got {part!r}")
        if len(found) == 0:
            raise ValueError(f"no facet of the boundary belongs to {part!r}")
        return found

    def cells(self, order: int) -> Cells:
        X, W = self._rule(order)
        mapping = self.mesh._mapping()
        tables = [self.element.lbasis(X, i) for i in range(self.dofs.shape[1])]
        phi = np.stack([np.broadcast_to(value, W.shape) for value, _ in tables], axis=1)
        slopes = np.stack([np.broadcast_to(slope, X.shape).T for _, slope in tables], axis=1)
        shape = (len(self.dofs), len(W))
        points = np.broadcast_to(np.moveaxis(mapping.F(X), 0, -1), (*shape, self.dim))
        inverse = np.broadcast_to(np.moveaxis(mapping.invDF(X), (0, 1), (-2, -1)), (*shape, self.dim, self.dim))
        weights = np.abs(np.broadcast_to(mapping.detDF(X), shape)) * W
        return Cells(self.dofs, phi, slopes, inverse, points, weights)

    def facets(self, part: Any, order: int) -> Facets:
        from skfem.assembly import FacetBasis

        basis = FacetBasis(self.mesh, self.element, facets=self._facets(part), intorder=order, dofs=self._dofs)
        phi = np.stack([np.broadcast_to(np.asarray(field[0]), basis.dx.shape) for field in basis.basis], axis=-1)
        points = np.moveaxis(np.asarray(basis.global_coordinates()), 0, -1)
        normals = np.broadcast_to(np.moveaxis(np.asarray(basis.normals), 0, -1), points.shape)
        return Facets(basis.element_dofs.T, phi, points, normals, basis.dx)

    def local_matrices(self, form: Any) -> np.ndarray:
        from skfem.assembly import BilinearForm

        if not isinstance(form, BilinearForm):
            return super().local_matrices(form)
        return np.swapaxes(form.elemental(self.basis()).tolocal(), 1, 2)  # scikit-fem's rows are trial functions

    def load(self, f=None, neumann=None, order=None):
        from skfem.assembly import LinearForm

        if not isinstance(f, LinearForm):
            return super().load(f, neumann, order)
        own = f.assemble(self.basis(2 * self.degree + 2 if order is None else order))
        return own + super().load(None, neumann, order)

    def linear(self) -> tuple[Space, scipy.sparse.csr_array]:
        from natgrad.fem.elements import weights

        coarse = Space(self.mesh, degree=1)
        local = weights(self.element.refdom, self.element.doflocs)
        nodes, first = np.unique(self.dofs, return_index=True)  # every node in one of its cells
        cell, node = np.divmod(first, self.dofs.shape[1])
        rows = np.repeat(nodes, local.shape[1])
        P = scipy.sparse.csr_array(
            (local[node].ravel(), (rows, coarse.dofs[cell].ravel())), shape=(len(nodes), coarse.num_nodes)
        )
        P.data[np.abs(P.data) < 1e-14] = 0
        P.eliminate_zeros()
        return coarse, P

    def evaluate(self, values: Any, points: Any) -> np.ndarray:
        return self.basis().probes(np.asarray(points, dtype=float).T) @ np.asarray(values)
