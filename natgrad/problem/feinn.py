"""Finite-element interpolated networks (sections 2.3.1, 5.1.4, 5.1.5 of the paper): weak forms, trained at the nodes.

    u_θ = ū_h + Σ_i NN(x_i) φ_i      over the free nodes x_i; ū_h interpolates the Dirichlet data

With P(θ) the values of the network at the free nodes, A the form and b the load less A ū_h,

    FEINNEnergy          E(P) = ½ PᵀAP − bᵀP + ∫ W(u_θ)                 symmetric forms; W a nonlinear potential
    FEINNLeastSquares    E(P) = ½ (AP − b)ᵀ R⁻¹ (AP − b)                any inf-sup stable form; R the Riesz map of V

both functions of P alone, so that ∇L = Jᵀ E'(P) comes from the Jacobian J of the network at the nodes, and the Gramian
is Jᵀ G_h J with G_h the metric between nodal values. The network is never differentiated in x.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from jaxtyping import Array, Float, Int, PyTree

from natgrad.fem import STIFFNESS, BaseSpace, FEErrors, Form, Operator
from natgrad.fem.operators import Elementwise
from natgrad.problem.base import Features, Network, Problem, check_block, partition
from natgrad.problem.coupling import Coupling, Graph

GAUSS = np.polynomial.legendre.leggauss(8)
NEWTON = 30  # iterations at most for the Galerkin solution of a nonlinear problem


class FEINN(Problem):
    """What both kinds share: the space, the constraints, and the errors with what the mesh allows beside them."""

    params: PyTree
    static: PyTree
    features: tuple[Features, ...]
    norms: FEErrors | None
    space: BaseSpace = eqx.field(static=True)
    graph: Graph = eqx.field(static=True)
    form: Operator
    load: Float[Array, " n"]
    lifting: Float[Array, " N"]
    free: Int[Array, " n"]
    limits: dict[str, Float[Array, ""]]

    def __init__(
        self,
        network: Network,
        space: BaseSpace,
        form: Any,
        load: Any,
        dirichlet: Any,
        neumann: Mapping[Any, Any] | None,
    ):
        if not isinstance(space, BaseSpace):
            raise ValueError(f"space must be ng.fem.Space(mesh, …) or ng.fem.rectangle(…), got {type(space).__name__}")
        self.params, self.static = partition(network)
        self.space = space
        lifting, free = _lift(space, dirichlet)
        nodes = jnp.asarray(space.nodes[free], self.dtype)
        out = check_block("nodes", lambda u, x: u(x), network, (nodes[0],), "network at")
        if out.size != 1:
            raise ValueError(f"a finite-element function is a number at each node, the network gives {out.shape}")
        self.features = (
            Features("nodes", (nodes,), jnp.ones(len(free), self.dtype), 1, lambda u, frozen, x: jnp.atleast_1d(u(x))),
        )
        numbers = np.full(space.num_nodes, len(free))
        numbers[free] = np.arange(len(free))
        self.graph = Graph(numbers[space.dofs], space.nodes[free])
        matrix = space.assemble(form)
        self.form = self._cast(space.operator(form, free))
        self.load = self._cast((_vector(space, load, neumann) - matrix @ lifting)[free])
        self.lifting, self.free = self._cast(lifting), jnp.asarray(free)
        self.norms, self.limits = None, {}

    def _cast(self, tree: Any) -> Any:
        floating = lambda a: jnp.asarray(a, self.dtype) if jnp.issubdtype(jnp.result_type(a), jnp.floating) else a
        return jax.tree.map(floating, tree)

    def _measure(self, exact: Callable | None, galerkin: np.ndarray) -> None:
        """Errors against an exact solution, and those of the interpolant and of the Galerkin solution."""
        if exact is None:
            return
        self.norms = self._cast(self.space.errors(exact))
        bests = {"h1_interpolant": self.space.interpolate(exact), "h1_galerkin": galerkin}
        self.limits = {name: self.norms(self._cast(values))["h1"] for name, values in bests.items()}

    def _local(self, form: Any) -> Float[Array, "cells b b"]:
        return self._cast(self.space.local_matrices(form))

    def values(self, params: PyTree) -> Float[Array, " n"]:
        """P(θ): the network at the free nodes."""
        return jax.vmap(self.network(params))(self.features[0].inputs[0]).reshape(-1)

    def nodal(self, params: PyTree) -> Float[Array, " N"]:
        """u_θ at all nodes."""
        return self.lifting.at[self.free].set(self.values(params))

    def solution(self, params: PyTree) -> Callable:
        """u_θ, the finite-element function: of one point (d,) or of several (n, d), on the host."""
        nodal = np.asarray(self.nodal(params))

        def u(x: Any) -> np.ndarray:
            points = np.asarray(x, dtype=float)
            return self.space.evaluate(nodal, np.atleast_2d(points)).reshape(points.shape[:-1])

        return u

    def errors(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """l2 and h1 of u_θ, and h1 of the interpolant and of the Galerkin solution: what the mesh allows."""
        return {} if self.norms is None else {**self.norms(self.nodal(params)), **self.limits}


class FEINNEnergy(FEINN):
    """½a(u, u) + ∫ W(u) − ℓ(u), minimized in the metric of the form.

        space = ng.fem.rectangle((30, 30), degree=4)
        problem = ng.FEINNEnergy(network, space, ng.fem.Form(), load=f, dirichlet=0.0, exact=exact)

    Arguments:
        network: an Equinox module of one point (d,), a number out.
        space: `ng.fem.rectangle(…)` or `ng.fem.Space(mesh, degree)`.
        form: a symmetric form, `ng.fem.Form(diffusion=…, reaction=…)` or one of scikit-fem.
        load: f, a function of x or a number; or a vector, a number a node.
        dirichlet: the data on the whole boundary, a function or a number; or {part: data}; None for no condition.
        neumann: {part: ψ} on the rest, ψ a function of x or of x and the normal.
        potential: W(u, x), where the equation has a nonlinear term ∂W/∂u: u⁴/4 for −Δu + u³ = f.
        metric: "energy" (the form), "h1" (∇v·∇w), "newton" (the form and ∂²W/∂u², frozen at u), or a form.
        exact: the exact solution, a function of one point.
    """

    metric: Operator
    local: Float[Array, "cells b b"]
    term: "Potential | None"
    newton: bool = eqx.field(static=True)
    least_squares: ClassVar[bool] = False
    scaling: ClassVar[float] = 1e-8

    def __init__(
        self,
        network: Network,
        space: BaseSpace,
        form: Any,
        *,
        load: Any = None,
        dirichlet: Any = None,
        neumann: Mapping[Any, Any] | None = None,
        potential: Callable | None = None,
        metric: Any = None,
        exact: Callable | None = None,
    ):
        super().__init__(network, space, form, load, dirichlet, neumann)
        matrix, free = space.assemble(form), np.asarray(self.free)
        _check_symmetric(form, matrix)
        ones = np.ones(space.num_nodes)
        if len(free) == space.num_nodes and potential is None and ones @ matrix @ ones <= 1e-12 * abs(matrix).sum():
            raise ValueError(
                "the energy has no minimum, constants cost nothing: give dirichlet=… or the form a reaction"
            )
        if metric is None:
            metric = "energy" if potential is None else "newton"
        chosen = _metric(metric, {"energy": form, "h1": STIFFNESS, "newton": form}, space)
        self.newton = metric == "newton"
        if self.newton and potential is None:
            raise ValueError("metric='newton' needs a potential=…: for a linear problem it is metric='energy'")
        self.metric = self.form if chosen is form else self._cast(space.operator(chosen, free))
        self.local = self._local(chosen)
        term = None if potential is None else Potential(space, potential)
        self.term = self._cast(term)
        if exact is not None:
            self._measure(exact, self._galerkin(matrix, term, np.array(self.lifting, float), free))

    def _galerkin(self, matrix: sp.csr_array, term: "Potential | None", u: np.ndarray, free: np.ndarray) -> np.ndarray:
        """The minimizer over the whole space, by Newton's method."""
        b, N = np.asarray(self.load, float), self.space.num_nodes
        sub = sp.csc_array(matrix[free][:, free])
        if term is None:
            u[free] = spla.spsolve(sub, b)
            return u
        first, second = jax.jit(lambda t, u: t.slope(u)), jax.jit(lambda t, u: t.local(u))
        rows, columns = (f(self.space.dofs, self.space.dofs.shape[1], axis=1) for f in (np.repeat, _tile))
        for _ in range(NEWTON):
            residual = sub @ u[free] - b + np.asarray(first(term, u))[free]
            local = np.asarray(second(term, u)).ravel()
            tangent = sp.csr_array(sp.coo_array((local, (rows.ravel(), columns.ravel())), shape=(N, N)))
            step = spla.spsolve(sp.csc_array(sub + tangent[free][:, free]), residual)
            u[free] -= step
            if np.linalg.norm(step) <= 1e-13 * np.linalg.norm(u):
                break
        return u

    def loss(self, params: PyTree) -> Float[Array, ""]:
        P = self.values(params)
        energy = 0.5 * P @ self.form.apply(P) - self.load @ P
        return energy if self.term is None else energy + self.term.energy(self.lifting.at[self.free].set(P))

    def covector(self, params: PyTree) -> Float[Array, " n"]:
        """E'(P) = AP − b + ∫ W'(u) φ."""
        P = self.values(params)
        slope = self.form.apply(P) - self.load
        return slope if self.term is None else slope + self.term.slope(self.lifting.at[self.free].set(P))[self.free]

    def coupling(self, params: PyTree) -> Coupling:
        if not self.newton:
            return Coupling(self.metric, self.local, self.graph)
        assert self.term is not None
        curvature = self.term.curvature(jax.lax.stop_gradient(self.nodal(params)))
        added = self.term.matrices(curvature)
        numbers = (
            jnp.full(self.lifting.size, self.free.size, jnp.int32)
            .at[self.free]
            .set(jnp.arange(self.free.size, dtype=jnp.int32))
        )
        term = Elementwise(local=added, dofs=numbers[self.term.dofs], size=self.free.size)
        return Coupling(Sum(terms=(self.metric, term), size=self.free.size), self.local + added, self.graph)

    def changes(self, params: PyTree) -> Callable[[PyTree], Float[Array, ""]]:
        """⟨AP − b, δ⟩ + ½ δᵀAδ + ∫∫₀¹ W'(u + tδ) δ dt: no two energies are subtracted."""
        P = self.values(params)
        slope = self.form.apply(P) - self.load
        nodal = self.lifting.at[self.free].set(P)

        def change(new: PyTree) -> Float[Array, ""]:
            delta = self.values(new) - P
            total = slope @ delta + 0.5 * delta @ self.form.apply(delta)
            if self.term is None:
                return total
            return total + self.term.difference(nodal, jnp.zeros_like(nodal).at[self.free].set(delta))

        return change


class FEINNLeastSquares(FEINN):
    """½ ‖a(u, ·) − ℓ‖² in the norm dual to the Riesz map's.

        form = ng.fem.Form(diffusion=kappa, advection=beta, reaction=sigma)
        problem = ng.FEINNLeastSquares(network, space, form, load=f, dirichlet={"left": g, "right": g},
                                       neumann={"top": psi, "bottom": psi}, exact=exact)

    Arguments beyond those of `FEINNEnergy`:
        riesz: "fast" (tensor meshes), "exact" (a sparse factorization on the host), "cycles" (a few multigrid cycles,
            an equivalent norm at a lower price); by default "fast" where the mesh allows it, else "exact".
        inner: the inner product of the test space, ∇v·∇w by default.
        metric: "least_squares" (⟨Av, R⁻¹Aw⟩, the metric of the loss itself), "h1" (∇v·∇w, the paper's, equivalent to
            it by the inf-sup condition), "energy" (the symmetric part of the form), or a form.
    """

    riesz: Operator
    metric: Operator | None
    local: Float[Array, "cells b b"] | None
    least_squares: ClassVar[bool] = True

    def __init__(
        self,
        network: Network,
        space: BaseSpace,
        form: Any,
        *,
        load: Any = None,
        dirichlet: Any = None,
        neumann: Mapping[Any, Any] | None = None,
        riesz: str | None = None,
        inner: Any = STIFFNESS,
        metric: Any = "least_squares",
        exact: Callable | None = None,
    ):
        super().__init__(network, space, form, load, dirichlet, neumann)
        free = np.asarray(self.free)
        self.riesz = self._cast(_riesz(space, inner, free, riesz))
        known = {"least_squares": None, "h1": STIFFNESS, "energy": _symmetric_part(form)}
        chosen = _metric(metric, known, space)
        self.metric = None if chosen is None else self._cast(space.operator(chosen, free))
        self.local = None if chosen is None else self._local(chosen)
        if exact is not None:
            u = np.array(self.lifting, float)
            matrix = sp.csc_array(space.assemble(form)[free][:, free])
            u[free] = spla.spsolve(matrix, np.asarray(self.load, float))
            self._measure(exact, u)

    def residual(self, params: PyTree) -> Float[Array, " n"]:
        """AP − b: the residual tested with every free basis function."""
        return self.form.apply(self.values(params)) - self.load

    def loss(self, params: PyTree) -> Float[Array, ""]:
        r = self.residual(params)
        return 0.5 * r @ self.riesz.apply(r)

    def covector(self, params: PyTree) -> Float[Array, " n"]:
        """Aᵀ R⁻¹ (AP − b)."""
        return self.form.apply_transpose(self.riesz.apply(self.residual(params)))

    def coupling(self, params: PyTree) -> Coupling:
        if self.metric is not None:
            return Coupling(self.metric, self.local, self.graph)
        return Coupling(NormalEquations(form=self.form, riesz=self.riesz, size=self.free.size))

    def changes(self, params: PyTree) -> Callable[[PyTree], Float[Array, ""]]:
        """(Aδ)ᵀ R⁻¹ (r + ½Aδ)."""
        P = self.values(params)
        r = self.form.apply(P) - self.load

        def change(new: PyTree) -> Float[Array, ""]:
            moved = self.form.apply(self.values(new) - P)
            return moved @ self.riesz.apply(r + 0.5 * moved)

        return change


class Sum(Operator):
    """Σ A_i."""

    terms: tuple[Operator, ...]
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        return sum(term.product(x, transpose) for term in self.terms)


class NormalEquations(Operator):
    """Aᵀ R⁻¹ A."""

    form: Operator
    riesz: Operator
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        return self.form.product(self.riesz.product(self.form.product(x, False), False), True)


class Potential(eqx.Module):
    """∫ W(u, x) dx of a finite-element function by quadrature on the cells, with its derivatives in u."""

    dofs: Int[Array, "e b"]
    phi: Float[Array, "q b"]
    points: Float[Array, "e q d"]
    weights: Float[Array, "e q"]
    density: Callable = eqx.field(static=True)

    def __init__(self, space: BaseSpace, density: Callable):
        cells = space.cells(4 * space.degree)  # u⁴ is integrated exactly
        self.dofs, self.phi = jnp.asarray(cells.dofs, jnp.int32), jnp.asarray(cells.phi)
        self.points, self.weights = jnp.asarray(cells.points), jnp.asarray(cells.weights)
        self.density = density
        try:
            shape = jax.eval_shape(density, jnp.zeros(()), jnp.zeros(space.dim)).shape
        except Exception as error:
            raise ValueError(f"the potential must be a function W(u, x) of two numbers: {error}") from error
        if shape != ():
            raise ValueError(f"the potential W(u, x) must give a number, got shape {shape}")

    def _at_points(self, derivative: int, u: Float[Array, "e q"]) -> Float[Array, "e q"]:
        f = self.density
        for _ in range(derivative):
            f = jax.grad(f)
        return jax.vmap(jax.vmap(f))(u, self.points)

    def _interpolate(self, nodal: Float[Array, " N"]) -> Float[Array, "e q"]:
        return nodal[self.dofs] @ self.phi.T

    def _test(self, values: Float[Array, "e q *m"], size: int) -> Float[Array, "N *m"]:
        local = jnp.einsum("eq...,qb->eb...", values, self.phi)
        return jnp.zeros((size, *values.shape[2:]), values.dtype).at[self.dofs].add(local)

    def energy(self, nodal: Float[Array, " N"]) -> Float[Array, ""]:
        return jnp.sum(self.weights * self._at_points(0, self._interpolate(nodal)))

    def slope(self, nodal: Float[Array, " N"]) -> Float[Array, " N"]:
        """∫ W'(u) φ_i."""
        return self._test(self.weights * self._at_points(1, self._interpolate(nodal)), nodal.size)

    def curvature(self, nodal: Float[Array, " N"]) -> Float[Array, "e q"]:
        """W''(u) ≥ 0 at the points, times their weights."""
        return self.weights * jnp.maximum(self._at_points(2, self._interpolate(nodal)), 0.0)

    def matrices(self, curvature: Float[Array, "e q"]) -> Float[Array, "e b b"]:
        """∫ W''(u) φ_i φ_j on every cell."""
        return jnp.einsum("qi,eq,qj->eij", self.phi, curvature, self.phi)

    def local(self, nodal: Float[Array, " N"]) -> Float[Array, "e b b"]:
        return self.matrices(self.weights * self._at_points(2, self._interpolate(nodal)))

    def difference(self, nodal: Float[Array, " N"], delta: Float[Array, " N"]) -> Float[Array, ""]:
        """∫ W(u + δ) − W(u) as ∫∫₀¹ W'(u + tδ) δ dt, by a Gauss rule in t that is exact for polynomials."""
        u, d = self._interpolate(nodal), self._interpolate(delta)
        total = jnp.zeros_like(u)
        for t, w in zip(*GAUSS, strict=True):
            total += 0.5 * w * self._at_points(1, u + 0.5 * (1 + t) * d)
        return jnp.sum(self.weights * total * d)


def _tile(dofs: np.ndarray, count: int, axis: int) -> np.ndarray:
    return np.tile(dofs, (1, count))


def _lift(space: BaseSpace, dirichlet: Any) -> tuple[np.ndarray, np.ndarray]:
    """The Dirichlet data at the nodes (zero elsewhere), and the free nodes."""
    lifting = np.zeros(space.num_nodes)
    parts = {} if dirichlet is None else dirichlet if isinstance(dirichlet, Mapping) else {None: dirichlet}
    fixed = np.zeros(space.num_nodes, bool)
    for part, data in parts.items():
        nodes = space.boundary(list(part) if isinstance(part, tuple) else part)
        lifting[nodes] = space.interpolate(data)[nodes]
        fixed[nodes] = True
    if fixed.all():
        raise ValueError("no node is free: the mesh has only boundary nodes, refine it or raise the degree")
    return lifting, np.nonzero(~fixed)[0]


def _vector(space: BaseSpace, load: Any, neumann: Mapping[Any, Any] | None) -> np.ndarray:
    if load is not None and not callable(load) and np.ndim(load) == 1:
        vector = np.asarray(load, float)
        if vector.shape != (space.num_nodes,):
            raise ValueError(f"a load vector has a number a node ({space.num_nodes}), got shape {vector.shape}")
        return vector + space.load(None, neumann)
    return space.load(load, neumann)


def _check_symmetric(form: Any, matrix: sp.csr_array) -> None:
    if abs(matrix - matrix.T).max() > 1e-10 * abs(matrix).max():
        raise ValueError(
            f"an energy needs a symmetric form, {form} is not: use ng.FEINNLeastSquares, or leave the advection out"
        )


def _symmetric_part(form: Any) -> Any:
    if not isinstance(form, Form):
        return form
    return Form(diffusion=form.diffusion, reaction=form.reaction, order=form.order)


def _metric(metric: Any, known: Mapping[str, Any], space: BaseSpace) -> Any:
    """The form of a metric by name, or the one given."""
    if isinstance(metric, str):
        if metric not in known:
            raise ValueError(f"unknown metric {metric!r}: choose one of {', '.join(known)}, or give a form")
        return known[metric]
    _check_symmetric(metric, space.assemble(metric))
    return metric


def _riesz(space: BaseSpace, inner: Any, free: np.ndarray, kind: str | None) -> Operator:
    if kind is not None:
        return space.riesz(inner, free, kind=kind)
    if hasattr(space, "fast_diagonalization"):
        try:
            return space.riesz(inner, free, kind="fast")
        except ValueError as error:
            if "kind='fast' needs" not in str(error):
                raise
    return space.riesz(inner, free, kind="exact")
