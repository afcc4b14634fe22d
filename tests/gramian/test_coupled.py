"""Every strategy against the dense Jᵀ G_h J, where the metric couples the rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.problem.coupling import Graph
from tests.feinns import BETA, KAPPA, SIGMA, cubic, ritz, square, transport, triangles
from tests.helpers import FAST, check_products, poisson, relative

PROBLEMS = {
    "energy": ritz,
    "energy, triangles": lambda: ritz(triangles()),
    "newton": cubic,
    "transport, h1": lambda: transport(metric="h1"),
    "transport, energy": lambda: transport(square(general=True), metric="energy"),
    "transport, least squares": transport,
}
STRATEGIES = [
    ("assembled", None),
    ("assembled", 30),
    ("jacobian", None),
    ("batched", 1),  # one node a group
    ("batched", 30),  # divides nothing
    ("batched", 1000),  # one group
    ("linearized", 30),
    ("auto", None),
]


def metric(problem):
    """G_h, assembled by the space or made of its parts."""
    space, free = problem.space, np.asarray(problem.free)
    pick = lambda form: space.assemble(form).toarray()[np.ix_(free, free)]
    if problem.least_squares and problem.graph is None:
        full = space.assemble(ng.fem.Form(diffusion=KAPPA, advection=BETA, reaction=SIGMA)).toarray()[
            np.ix_(free, free)
        ]
        return full.T @ np.linalg.solve(pick(ng.fem.STIFFNESS), full)
    G = np.asarray(problem.metric.apply(jnp.eye(len(free))))
    if not problem.least_squares and problem.newton:
        # ∫ 3u² φ_i φ_j from scratch.
        cells = space.cells(4 * space.degree)
        u = np.asarray(problem.nodal(problem.params))[cells.dofs] @ cells.phi.T
        whole = np.zeros((space.num_nodes, space.num_nodes))
        for dofs, values, weights in zip(cells.dofs, u, cells.weights, strict=True):
            whole[np.ix_(dofs, dofs)] += cells.phi.T @ ((3 * weights * values**2)[:, None] * cells.phi)
        G = G + whole[np.ix_(free, free)]
    return G


@pytest.fixture(scope="module", params=PROBLEMS)
def case(request):
    problem = PROBLEMS[request.param]()
    theta, unravel = ravel_pytree(problem.params)
    J = np.asarray(jax.jacrev(lambda t: problem.values(unravel(t)))(theta))
    return problem, J.T @ metric(problem) @ J


@pytest.mark.parametrize(("strategy", "batch"), STRATEGIES)
def test_products_agree_with_the_dense_gramian(case, strategy, batch):
    check_products(*case, strategy, batch, tol=1e-11)


@pytest.mark.parametrize("build", [poisson, ritz])
@pytest.mark.parametrize("strategy", ["assembled", "jacobian", "batched", "linearized"])
def test_made_in_one_compiled_function_it_serves_in_another(build, strategy):
    """Whatever a Gramian holds, the activations of a linearization included, is a leaf of it."""
    problem = build()
    G = jax.jit(lambda params: ng.gramian(problem, params, strategy, batch=10), compiler_options=FAST)(problem.params)
    v = jnp.cos(jnp.arange(G.size))
    mv, matrix = jax.jit(lambda G, v: (G.mv(v), G.as_matrix()), compiler_options=FAST)(G, v)
    assert relative(mv, matrix @ v) < 1e-12


@pytest.mark.parametrize("build", [ritz, cubic, transport])
def test_tensor_and_general_path_agree(build):
    """The same problem on the tensor mesh and on scikit-fem's: loss, gradient, Gramian, limits."""
    fast, general = build(square()), build(square(general=True))
    f = jax.jit(
        lambda problem: (
            problem.loss(problem.params),
            ng.gramian(problem, strategy="jacobian").loss_gradient(),
            ng.gramian(problem, strategy="jacobian").as_matrix(),
            problem.errors(problem.params),
        ),
        compiler_options=FAST,
    )
    for ours, theirs in zip(*(jax.tree.leaves(f(problem)) for problem in (fast, general)), strict=True):
        assert relative(ours, theirs) < 1e-12


@pytest.mark.parametrize("batch", [1, 30, 60, 10_000])
def test_groups_are_a_partition_with_all_interactions(batch):
    space = triangles(degree=3)
    graph = Graph(space.dofs, space.nodes)
    groups = graph.groups(batch)
    matrix = space.assemble(ng.fem.H1).toarray()
    rebuilt, seen = np.zeros_like(matrix), []
    for rows, cells, inner, outer in zip(groups.rows, groups.cells, groups.inner, groups.outer, strict=True):
        own = np.unique(inner[inner < groups.size])
        seen += list(rows[own])
        for cell, i, j in zip(cells, inner, outer, strict=True):
            local = space.local_matrices(ng.fem.H1)[cell]
            keep = i < groups.size
            assert (j[keep] < groups.rows.shape[1]).all()  # I_b is part of J_b
            inside = j < groups.rows.shape[1]
            rebuilt[np.ix_(rows[i[keep]], rows[j[inside]])] += local[np.ix_(keep, inside)]
    assert sorted(seen) == list(range(space.num_nodes))
    assert relative(rebuilt, matrix) < 1e-14
    neighbours = max(len(graph.interacting(np.array([r]))) for r in range(space.num_nodes))
    assert groups.rows.shape[1] <= max(2 * batch, 2 * neighbours)


def test_a_group_has_one_compilation_and_no_whole_jacobian():
    """The temporaries of a batched product are those of a group, not of all rows."""
    problem = ritz(square(cells=12, degree=4), width=16)
    V = jnp.ones((problem.num_parameters, 4))
    sizes = {}
    for strategy in ("jacobian", "batched"):
        f = jax.jit(lambda problem, V, s=strategy: ng.gramian(problem, problem.params, s, batch=300).mm(V))
        sizes[strategy] = f.lower(problem, V).compile().memory_analysis().temp_size_in_bytes
    assert sizes["batched"] < 0.35 * sizes["jacobian"]
