"""Nodal elements for scikit-fem and the table of their degrees of freedom. (The one module that imports scikit-fem.)

A node is known by its weights: the (multi)linear coordinates of the point with respect to the vertices of its element.
The vertices with a weight that is not zero name the vertex, edge, face or cell that owns the node, and the weights in
the order of the *global* numbers of these vertices name the node within its owner, whichever way an element runs
through it. That is what makes neighbours agree on the nodes they share.
"""

import itertools
from typing import Annotated

import numpy as np
import scipy
from skfem.assembly import Dofs
from skfem.element import Element, ElementH1, ElementHex1, ElementLineP1, ElementQuad1, ElementTetP1, ElementTriP1
from skfem.quadrature import get_quadrature
from skfem.refdom import RefHex, RefLine, RefQuad, RefTet, RefTri

from natgrad.fem.lagrange import lobatto, product
from natgrad.options import Range, check

LINEAR = {
    RefLine: ElementLineP1(),
    RefTri: ElementTriP1(),
    RefQuad: ElementQuad1(),
    RefTet: ElementTetP1(),
    RefHex: ElementHex1(),
}
MAX_DEGREE = {RefLine: 8, RefTri: 4, RefQuad: 8, RefTet: 4, RefHex: 4}


class Lagrange(ElementH1):
    """Nodal element of any degree: equispaced on simplices, Gauss–Lobatto on lines, quadrilaterals and hexahedra.

    A basis function is a product of polynomials in one coordinate each: φ_α = ∏ᵢ L_{αᵢ}(cᵢ), where c are the
    barycentric coordinates on a simplex and the Cartesian ones elsewhere.
    """

    def __init__(self, refdom, degree: int):
        self.refdom, self.maxdeg = refdom, degree
        d = refdom.dim()
        self.simplex = refdom in (RefTri, RefTet)
        if self.simplex:
            grid = np.arange(degree + 1) / degree
            self.roots = [grid[:j] for j in range(degree + 1)]
            self.gradients = np.vstack([-np.ones(d), np.eye(d)])
            multi = [(degree - sum(a), *a) for a in itertools.product(range(degree + 1), repeat=d) if sum(a) <= degree]
        else:
            grid = lobatto(degree)
            self.roots = [np.delete(grid, j) for j in range(degree + 1)]
            self.gradients = np.eye(d)
            multi = list(itertools.product(range(degree + 1), repeat=d))
        self.grid = grid
        locations = grid[np.array(multi)][:, -d:]
        owner, key = owners(refdom, locations)
        order = sorted(range(len(multi)), key=lambda i: (owner[i], key[i]))
        self.multi, self.doflocs = [multi[i] for i in order], locations[order]
        counts = np.bincount(owner, minlength=len(entities(refdom)))
        first = np.cumsum([0, refdom.nnodes, refdom.nedges if d == 3 else 0, refdom.nfacets if d > 1 else 0])
        self.nodal_dofs = 1
        self.edge_dofs = int(counts[first[1]]) if d == 3 else 0
        self.facet_dofs = int(counts[first[2]]) if d > 1 else 0
        self.interior_dofs = int(counts[-1])
        self.dofnames = ["u"] * (1 + self.facet_dofs + self.edge_dofs + self.interior_dofs)

    def lbasis(self, X, i):
        c = np.concatenate([1 - X.sum(axis=0, keepdims=True), X]) if self.simplex else X
        factors = [product(t, self.roots[a], self.grid[a]) for t, a in zip(c, self.multi[i], strict=True)]
        value = np.prod([v for v, _ in factors], axis=0)
        slopes = [
            slope * np.prod([v for l, (v, _) in enumerate(factors) if l != k] or [np.ones_like(slope)], axis=0)
            for k, (_, slope) in enumerate(factors)
        ]
        return value, np.einsum("kd,k...->d...", self.gradients, np.array(slopes))


def quadrature(refdom, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (d, q) and weights: scikit-fem's rule, or a collapsed Gauss–Jacobi product where it has none."""
    try:
        return get_quadrature(refdom, order)
    except (NotImplementedError, KeyError):
        pass
    d, n = refdom.dim(), order // 2 + 1
    rules = [scipy.special.roots_jacobi(n, d - 1 - i, 0) for i in range(d)]  # (1 − t)^a is the area of what t cuts off
    t = np.stack(np.meshgrid(*((1 + x) / 2 for x, _ in rules), indexing="ij")).reshape(d, -1)
    w = np.stack(np.meshgrid(*(w / 2 ** (d - i) for i, (_, w) in enumerate(rules)), indexing="ij")).reshape(d, -1)
    return t * np.concatenate([np.ones((1, t.shape[1])), np.cumprod(1 - t[:-1], axis=0)]), w.prod(axis=0)


def entities(refdom) -> list[tuple[int, ...]]:
    """Vertices, edges (3D), facets (2D, 3D) and the cell, each by its local vertices, in scikit-fem's order."""
    d = refdom.dim()
    edges = refdom.edges if d == 3 else []
    facets = refdom.facets if d > 1 else []
    vertices = [[v] for v in range(refdom.nnodes)]
    return [tuple(e) for e in [*vertices, *edges, *facets, range(refdom.nnodes)]]


def weights(refdom, locations: np.ndarray) -> np.ndarray:
    """(nodes, vertices): the values of the vertices' (multi)linear functions at reference points (nodes, d)."""
    linear = LINEAR[refdom]
    return np.stack([linear.lbasis(locations.T, v)[0] for v in range(refdom.nnodes)], axis=1)


def owners(refdom, locations: np.ndarray) -> tuple[list[int], list[tuple[float, ...]]]:
    """The entity that owns each reference point, and the point's weights there."""
    known = {frozenset(e): i for i, e in enumerate(entities(refdom))}
    table = np.round(weights(refdom, locations), 10)
    owner = [known.get(frozenset(np.flatnonzero(row).tolist()), -1) for row in table]
    return owner, [tuple(-row[list(entities(refdom)[o])]) for row, o in zip(table, owner, strict=True)]


def nodal_element(refdom, degree: int) -> Element:
    """Our element, or one line that says which degrees there are."""
    if refdom not in MAX_DEGREE:
        raise ValueError(
            f"no nodal elements on {refdom.name.lower()} cells; use triangles, quadrilaterals, tetrahedra or hexahedra"
        )
    highest = Range(at_least=1, at_most=MAX_DEGREE[refdom])
    check(f"the degree on {refdom.name.lower()} cells", degree, Annotated[int, highest])
    return Lagrange(refdom, int(degree))


def check_nodal(element) -> Element:
    """Refuses elements whose unknowns are not values at points that tie the cells together continuously."""
    element = element() if isinstance(element, type) else element
    name = type(element).__name__
    reason = None
    if not isinstance(element, ElementH1) or element.refdom not in LINEAR:
        reason = "it is not a scalar H¹ element of scikit-fem on lines, triangles, quadrilaterals, tets or hexes"
    elif getattr(element, "doflocs", None) is None or element.nodal_dofs != 1:
        reason = "it has no node at every vertex"
    else:
        points = np.asarray(element.doflocs, dtype=float)
        values = np.stack([np.broadcast_to(element.lbasis(points.T, i)[0], len(points)) for i in range(len(points))])
        owner, _ = owners(element.refdom, points)
        per = [1] * element.refdom.nnodes
        per += [element.edge_dofs] * (element.refdom.nedges if element.dim == 3 else 0)
        per += [element.facet_dofs] * (element.refdom.nfacets if element.dim > 1 else 0) + [element.interior_dofs]
        if not np.allclose(values, np.eye(len(points)), atol=1e-8):
            reason = "its basis functions are not 1 at one node and 0 at the others"
        elif owner != [e for e, count in enumerate(per) for _ in range(count)]:
            reason = "its nodes do not lie on the vertices, edges, faces and cells that own them"
    if reason:
        raise ValueError(
            f"{name} is not nodal: {reason}; finite-element interpolation needs nodal values, "
            "for example Space(mesh, degree=2)"
        )
    return element


def oriented_dofs(mesh, element) -> Dofs:
    """scikit-fem's degrees of freedom with the nodes inside shared edges and faces matched between neighbours."""
    dofs = Dofs(mesh, element)
    owner, _ = owners(element.refdom, element.doflocs)
    locations = weights(element.refdom, element.doflocs)
    table = dofs.element_dofs.copy()
    for e, vertices in enumerate(entities(element.refdom)[:-1]):
        local = np.flatnonzero(np.array(owner) == e)
        if len(local) < 2:
            continue
        direction = np.argsort(mesh.t[list(vertices)], axis=0)
        own = np.sort(dofs.element_dofs[local], axis=0)
        for way in np.unique(direction, axis=1).T:
            here = np.flatnonzero((direction == way[:, None]).all(axis=0))
            rows = np.round(locations[np.ix_(local, np.array(vertices)[way])], 10)
            rank = np.argsort(np.lexsort(rows.T[::-1]))
            table[np.ix_(local, here)] = own[rank][:, here]
    dofs.element_dofs = table
    return dofs
