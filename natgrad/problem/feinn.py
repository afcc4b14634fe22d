"""Finite-element interpolated networks (sections 2.3.1, 5.1.4, 5.1.5 of the paper): weak forms, trained at the nodes.

    u_θ = ū_h + Σ_i NN(x_i) φ_i      over the free nodes x_i; ū_h interpolates the Dirichlet data

With P(θ) the values of the network at the free nodes, A the form and b the load less A ū_h,

    FEINNEnergy          E(P) = ½ PᵀAP − bᵀP + ∫ W(u_θ)                 symmetric forms; W a nonlinear potential
    FEINNLeastSquares    E(P) = ½ (AP − b)ᵀ R⁻¹ (AP − b)                any inf-sup stable form; R the Riesz map of V

both functions of P alone, so that ∇L = Jᵀ E'(P) comes from the Jacobian J of the network at the nodes, and the Gramian
is Jᵀ G_h J with G_h the metric between nodal values. The network is never differentiated in x.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import everywhere, gather, own_rows
from natgrad.backend.programs import Program
from natgrad.fem import STIFFNESS, BaseSpace, FEErrors, Form, Operator
from natgrad.fem.base import sum_cells
from natgrad.fem.definite import check_definite
from natgrad.fem.operators import Elementwise, NormalEquations
from natgrad.problem.base import Features, Network, Problem, check_block, partition
from natgrad.problem.coupling import Coupling, Graph
from natgrad.problem.potential import Potential
from natgrad.problem.units import check_units

Exact = Callable | Literal["galerkin"]
NEWTON = 30  # iterations at most for the Galerkin solution of a nonlinear problem


class FEINN(Problem):
    """What both kinds share: the space, the constraints, and the errors with what the mesh allows beside them."""

    params: PyTree
    static: PyTree
    features: tuple[Features, ...]
    norms: FEErrors | None
    space: BaseSpace = eqx.field(static=True)
    form: Operator
    load: Float[Array, " n"]
    lifting: Float[Array, " N"]
    free: Int[Array, " n"]
    limits: dict[str, Float[Array, ""]]
    #: The values of a network have fewer directions above round-off than its derivatives, 200 to 500 as a rule.
    max_rank: ClassVar[int | None] = 500

    def _set_up(
        self,
        network: Network,
        space: BaseSpace,
        form: Any,
        load: Any,
        dirichlet: Any,
        neumann: Mapping[Any, Any] | None,
    ) -> "scipy.sparse.csr_array":
        """All fields of this class; the assembled form."""
        if not isinstance(space, BaseSpace):
            raise ValueError(f"space must be ng.fem.Space(mesh, …) or ng.fem.rectangle(…), got {type(space).__name__}")
        self.params, self.static = partition(network)
        self.space = space
        lifting, free = _lift(space, dirichlet)
        nodes = host.array(space.nodes[free], self.dtype)
        out = check_block("nodes", lambda u, x: u(x), network, (host.row(nodes),), "network at")
        if out.size != 1:
            raise ValueError(f"a finite-element function is a number at each node, the network gives {out.shape}")
        check_units(network, [("nodes", lambda u, x: u(x), (nodes,))])
        ones = host.array(np.ones(len(free)), self.dtype)
        self.features = (Features("nodes", (nodes,), ones, 1, lambda u, frozen, x: jnp.atleast_1d(u(x))),)
        matrix = space.assemble(form)
        self.lifting, self.free = self._cast(lifting), host.array(free)
        self.form = self._operator(form)
        self.load = self._cast((_vector(space, load, neumann) - matrix @ lifting)[free])
        self.norms, self.limits = None, {}
        return matrix

    def _cast(self, tree: Any) -> Any:
        floating = lambda a: host.array(a, self.dtype) if jnp.issubdtype(jnp.result_type(a), jnp.floating) else a
        return jax.tree.map(floating, tree)

    def _operator(self, form: Any) -> Operator:
        return self._cast(self.space.operator(form, np.asarray(self.free)))

    def _galerkin(self, matrix: "scipy.sparse.csr_array") -> np.ndarray:
        """(N,): the solution in the whole space."""
        from scipy.sparse.linalg import spsolve

        u, free = np.array(self.lifting, float), np.asarray(self.free)
        u[free] = spsolve(scipy.sparse.csc_array(matrix[free][:, free]), np.asarray(self.load, float))
        return u

    def _measure(self, exact: Exact, galerkin: np.ndarray) -> None:
        """Errors against an exact solution, those of the interpolant and of the Galerkin solution; or against that."""
        if isinstance(exact, str) and exact == "galerkin":
            self.norms = self._cast(self.space.errors(galerkin))
            return
        if not callable(exact):
            got = repr(exact) if isinstance(exact, str) else type(exact).__name__
            raise ValueError(f'the exact solution must be a function of one point, got {got}; or give exact="galerkin"')
        self.norms = self._cast(self.space.errors(exact))
        bests = {"h1_interpolant": self.space.interpolate(exact), "h1_galerkin": galerkin}
        bests = {name: self._cast(values) for name, values in bests.items()}
        h1 = Program(lambda norms, values: norms(values)["h1"], self.norms, bests["h1_galerkin"])
        self.limits = {name: h1(self.norms, values) for name, values in bests.items()}

    def values(self, params: PyTree) -> Float[Array, " n"]:
        """P(θ): the network at the free nodes."""
        return gather(jax.vmap(self.network(params))(self.features[0].inputs[0]).reshape(-1), self.free.size)

    def nodal(self, params: PyTree) -> Float[Array, " N"]:
        """u_θ at all nodes."""
        return self.lifting.at[self.free].set(self.values(params))

    def solution(self, params: PyTree) -> Callable:
        """u_θ, the finite-element function: of one point (d,) or of several (n, d), on the host."""
        program = Program(partial(everywhere, lambda problem, params: problem.nodal(params)), self, params)
        nodal = np.asarray(program(self, params))

        def u(x: Any) -> np.ndarray:
            points = np.asarray(x, dtype=float)
            return self.space.evaluate(nodal, np.atleast_2d(points)).reshape(points.shape[:-1])

        return u

    def errors(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """l2 and h1 of u_θ, and, beside an exact solution, h1 of the interpolant and of the Galerkin solution: what the
        mesh allows."""
        return {} if self.norms is None else {**self.norms(self.nodal(params)), **self.limits}


class FEINNEnergy(FEINN):
    """½a(u, u) + ∫ W(u) − ℓ(u), minimized in the metric of the form.

        space = ng.fem.rectangle((30, 30), degree=4)
        problem = ng.FEINNEnergy(network, space, ng.fem.Form(), load=f, dirichlet=0.0, exact=exact)

    Arguments:
        network: an Equinox module of one point (d,), a number out.
        space: `ng.fem.rectangle(…)` or `ng.fem.Space(mesh, degree)`.
        form: a symmetric form, `ng.fem.Form(diffusion=…, reaction=…)` or one of scikit-fem.
        load: f, a function of x or a number; or a vector with one number for each node.
        dirichlet: the data on the whole boundary, a function or a number; or {part: data}; None for no condition.
        neumann: {part: ψ} on the rest, ψ a function of x or of x and the normal.
        potential: W(u, x), where the equation has a nonlinear term ∂W/∂u: u⁴/4 for −Δu + u³ = f.
        metric: "energy" (the form), "h1" (∇v·∇w), "newton" (the form and ∂²W/∂u², frozen at u), or a form.
        exact: the exact solution, a function of one point; or "galerkin", the finite-element solution itself, which a
            sparse solve finds when the problem is built.
    """

    metric: Operator
    graph: Graph = eqx.field(static=True)
    term: Potential | None
    newton: bool = eqx.field(static=True)
    least_squares: ClassVar[bool] = False
    caution: ClassVar[tuple[float, float]] = (1e-3, 1 / 3)
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
        exact: Exact | None = None,
    ):
        matrix = self._set_up(network, space, form, load, dirichlet, neumann)
        _check_symmetric(form, matrix)
        check_definite("an energy", space, form, matrix, np.asarray(self.free), linear=potential is None)
        natural = self.free.size == space.num_nodes and potential is None
        if natural and matrix.sum() <= 1e-12 * abs(matrix).sum():
            raise ValueError(
                "the energy has no minimum, constants cost nothing: give dirichlet=… or the form a reaction"
            )
        if metric is None:
            metric = "energy" if potential is None else "newton"
        chosen = _metric(metric, {"energy": form, "h1": STIFFNESS, "newton": form}, space, np.asarray(self.free))
        self.newton = metric == "newton"
        if self.newton and potential is None:
            raise ValueError("metric='newton' needs a potential=…: for a linear problem it is metric='energy'")
        self.metric = self.form if chosen is form else self._operator(chosen)
        self.graph = Graph.of(self.metric, space.nodes[np.asarray(self.free)])
        # The cells of the potential are those of the form: scikit-fem numbers them in its own way.
        cells = space if isinstance(form, Form) else space.on_skfem_mesh()
        term = None if potential is None else Potential(cells, potential)
        self.term = self._cast(term)
        if exact is not None:
            self._measure(exact, self._galerkin(matrix) if term is None else self._newton(matrix, term))

    def _newton(self, matrix: "scipy.sparse.csr_array", term: Potential) -> np.ndarray:
        """The minimizer over the whole space, by Newton's method."""
        from scipy.sparse.linalg import spsolve

        u, free, b = np.array(self.lifting, float), np.asarray(self.free), np.asarray(self.load, float)
        sub = scipy.sparse.csc_array(matrix[free][:, free])
        first, second = jax.jit(lambda t, u: t.slope(u)), jax.jit(lambda t, u: t.matrices(u, convex=False))
        for _ in range(NEWTON):
            residual = sub @ u[free] - b + np.asarray(first(term, u))[free]
            tangent = sum_cells(np.asarray(second(term, u)), np.asarray(term.dofs), self.space.num_nodes)
            step = spsolve(scipy.sparse.csc_array(sub + tangent[free][:, free]), residual)
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
        if self.term is not None:
            slope += self.term.slope(self.lifting.at[self.free].set(P))[self.free]
        return own_rows(slope, self.features[0].num_points)

    def coupling(self, params: PyTree) -> Coupling:
        metric = self.metric
        if self.newton:
            assert self.term is not None
            assert isinstance(metric, Elementwise)
            added = self.term.matrices(jax.lax.stop_gradient(self.nodal(params)), convex=True)
            metric = eqx.tree_at(lambda operator: operator.local, metric, metric.local + added)
        return Coupling(metric, self.graph)

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
    metric: Operator
    graph: Graph | None = eqx.field(static=True)
    least_squares: ClassVar[bool] = True
    caution: ClassVar[tuple[float, float]] = (1e-4, 0.5)

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
        exact: Exact | None = None,
    ):
        matrix = self._set_up(network, space, form, load, dirichlet, neumann)
        self.riesz = self._cast(_riesz(space, inner, np.asarray(self.free), riesz))
        known = {"least_squares": None, "h1": STIFFNESS, "energy": _symmetric_part(form)}
        chosen = _metric(metric, known, space, np.asarray(self.free))
        if chosen is None:
            self.metric = NormalEquations(form=self.form, riesz=self.riesz, size=self.free.size)
            self.graph = None  # R⁻¹ couples all nodes
        else:
            self.metric = self._operator(chosen)
            self.graph = Graph.of(self.metric, space.nodes[np.asarray(self.free)])
        if exact is not None:
            self._measure(exact, self._galerkin(matrix))

    def residual(self, params: PyTree) -> Float[Array, " n"]:
        """AP − b: the residual tested with every free basis function."""
        return self.form.apply(self.values(params)) - self.load

    def loss(self, params: PyTree) -> Float[Array, ""]:
        r = self.residual(params)
        return 0.5 * r @ self.riesz.apply(r)

    def covector(self, params: PyTree) -> Float[Array, " n"]:
        """Aᵀ R⁻¹ (AP − b)."""
        slope = self.form.apply_transpose(self.riesz.apply(self.residual(params)))
        return own_rows(slope, self.features[0].num_points)

    def coupling(self, params: PyTree) -> Coupling:
        return Coupling(self.metric, self.graph)

    def changes(self, params: PyTree) -> Callable[[PyTree], Float[Array, ""]]:
        """(Aδ)ᵀ R⁻¹ (r + ½Aδ)."""
        P = self.values(params)
        r = self.form.apply(P) - self.load

        def change(new: PyTree) -> Float[Array, ""]:
            moved = self.form.apply(self.values(new) - P)
            return moved @ self.riesz.apply(r + 0.5 * moved)

        return change


def _lift(space: BaseSpace, dirichlet: Any) -> tuple[np.ndarray, np.ndarray]:
    """The Dirichlet data at the nodes (zero elsewhere), and the free nodes."""
    lifting = np.zeros(space.num_nodes)
    parts = {} if dirichlet is None else dirichlet if isinstance(dirichlet, Mapping) else {None: dirichlet}
    fixed = np.zeros(space.num_nodes, bool)
    for part, data in parts.items():
        nodes = space.boundary(list(part) if isinstance(part, tuple) else part)
        lifting[nodes] = space.interpolate(data, "Dirichlet datum")[nodes]
        fixed[nodes] = True
    if fixed.all():
        raise ValueError("no node is free: the mesh has only boundary nodes, refine it or raise the degree")
    return lifting, np.nonzero(~fixed)[0]


def _vector(space: BaseSpace, load: Any, neumann: Mapping[Any, Any] | None) -> np.ndarray:
    if neumann is not None and not isinstance(neumann, Mapping):
        raise ValueError(f"neumann must be a mapping {{part: ψ}}, got {type(neumann).__name__}")
    if load is not None and not callable(load) and np.ndim(load) == 1:
        vector = np.asarray(load, float)
        if vector.shape != (space.num_nodes,) or not np.all(np.isfinite(vector)):
            raise ValueError(
                f"a load vector has a finite number per node ({space.num_nodes}), got shape {vector.shape}"
            )
        return vector + space.load(None, neumann)
    return space.load(load, neumann)


def _check_symmetric(form: Any, matrix: "scipy.sparse.csr_array") -> None:
    if abs(matrix - matrix.T).max() > 1e-10 * abs(matrix).max():
        raise ValueError(
            f"an energy needs a symmetric form, {form} is not: use ng.FEINNLeastSquares, or leave the advection out"
        )


def _symmetric_part(form: Any) -> Any:
    if not isinstance(form, Form):
        return form
    return Form(diffusion=form.diffusion, reaction=form.reaction, order=form.order)


def _metric(metric: Any, known: Mapping[str, Any], space: BaseSpace, free: np.ndarray) -> Any:
    """The form of a metric by name, or the one given."""
    if isinstance(metric, str) and metric not in known:
        raise ValueError(f"unknown metric {metric!r}: choose one of {', '.join(known)}, or give a form")
    chosen = known[metric] if isinstance(metric, str) else metric
    if metric == "energy" or not isinstance(metric, str):
        matrix = space.assemble(chosen)
        _check_symmetric(chosen, matrix)
        check_definite("a metric", space, chosen, matrix, free)
    return chosen


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
