"""Finite-element interpolated networks: energies, residuals, exact differences, errors, bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.linalg as spla

import natgrad as ng
from tests.feinns import cubic, network, ritz, square, transport, triangles

PROBLEMS = {"energy": ritz, "newton": cubic, "least squares": transport}


def moved(problem, size):
    """Parameters a step of the given size away."""
    keys = iter(jax.random.split(jax.random.key(5), 100))
    return jax.tree.map(lambda a: a + size * jax.random.normal(next(keys), a.shape), problem.params)


@pytest.mark.parametrize("name", PROBLEMS)
def test_changes_are_exact_differences(name):
    problem = PROBLEMS[name]()
    far = moved(problem, 0.1)
    assert np.isclose(problem.difference(problem.params, far), problem.loss(far) - problem.loss(problem.params))
    # A step so small that the two losses agree in all digits but a few: the slope is still right.
    near = moved(problem, 1e-9)
    slope = sum(
        jnp.vdot(g, b - a)
        for g, a, b in zip(
            *map(jax.tree.leaves, (jax.grad(problem.loss)(problem.params), problem.params, near)), strict=True
        )
    )
    assert np.isclose(problem.difference(problem.params, near), slope, rtol=1e-5)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_galerkin_solution_is_the_best_there_is(name):
    """E' vanishes at it, and its error is that of the mesh."""
    problem = PROBLEMS[name]()
    limits = {k: float(v) for k, v in problem.limits.items()}
    assert 0 < limits["h1_galerkin"] < 1.2 * limits["h1_interpolant"]
    errors = problem.errors(problem.params)
    assert errors["h1"] > limits["h1_galerkin"]
    assert set(errors) == {"l2", "h1", "h1_interpolant", "h1_galerkin"}


def test_energy_is_the_integral():
    """½∫|∇u|² − ∫fu of the finite-element function, by quadrature of its own."""
    problem = ritz()
    space, u = problem.space, np.asarray(problem.nodal(problem.params))
    cells = space.cells(10)
    K = space.assemble(ng.fem.STIFFNESS)
    f = 5 * np.sin(2 * cells.points[..., 0] + cells.points[..., 1])
    whole = 0.5 * u @ K @ u - np.sum(cells.weights * f * (u[cells.dofs] @ cells.phi.T))
    # Ours leaves out what does not depend on θ: the energy of the lifting.
    lift = np.asarray(problem.lifting)
    constant = 0.5 * lift @ K @ lift - np.sum(cells.weights * f * (lift[cells.dofs] @ cells.phi.T))
    assert np.isclose(problem.loss(problem.params), whole - constant, rtol=1e-8)


def test_dual_norm():
    """½ rᵀ R⁻¹ r with the residual of the whole function, lifting included."""
    problem = transport()
    space, free = problem.space, np.asarray(problem.free)
    r = np.asarray(problem.residual(problem.params))
    R = space.assemble(ng.fem.STIFFNESS).tocsc()[free][:, free]
    assert np.isclose(problem.loss(problem.params), 0.5 * r @ spla.spsolve(R.tocsc(), r))


@pytest.mark.parametrize("kind", ["exact", "fast", "cycles"])
def test_riesz_maps_give_equivalent_losses(kind):
    reference = float(transport().loss(transport().params))
    value = float(transport(riesz=kind).loss(transport().params))
    assert value == pytest.approx(reference, rel=1e-9 if kind != "cycles" else 0.5)


def test_dirichlet_data_hold_exactly_and_neumann_nodes_are_free():
    problem = transport()
    space = problem.space
    nodal = np.asarray(problem.nodal(problem.params))
    exact = lambda x: np.sin(2 * x[:, 0] + x[:, 1]) * np.cos(x[:, 1])
    sides = space.boundary(["left", "right"])
    assert np.allclose(nodal[sides], exact(space.nodes[sides]), rtol=0, atol=1e-14)
    top = np.setdiff1d(space.boundary("top"), sides)
    assert set(top) <= set(np.asarray(problem.free))


def test_the_solution_is_the_finite_element_function():
    problem = ritz()
    u = problem.solution(problem.params)
    nodes = problem.space.nodes
    assert np.allclose(u(nodes), problem.nodal(problem.params))
    assert u(nodes[3]).shape == ()
    corner = np.array([1.0, 0.0])  # on the boundary the data hold, whatever the network says
    assert np.isclose(u(corner), np.sin(2.0))
    assert not np.isclose(problem.network(problem.params)(jnp.asarray(corner)), np.sin(2.0))


@pytest.mark.parametrize("space", [square(), triangles()], ids=["rectangle", "triangles"])
@pytest.mark.parametrize("solver", [ng.NystromNGD(max_rank=40), ng.RPCholNGD(max_rank=40)], ids=["nystrom", "rpchol"])
def test_training_reaches_the_mesh(space, solver):
    problem = ritz(space, width=8)
    solution = ng.solve(problem, solver, steps=60, progress=False, target_error=1.5 * problem.limits["h1_interpolant"])
    assert solution.status == "target error"


@pytest.mark.parametrize("build", [cubic, transport])
def test_training_of_the_others(build):
    problem = build(width=8)
    solution = ng.solve(problem, ng.NystromNGD(max_rank=60), steps=80, progress=False)
    assert solution.errors["h1"] < 2 * solution.errors["h1_galerkin"]


@pytest.mark.parametrize("space", [triangles, square])
def test_a_scikit_fem_form_is_a_form(space):
    from skfem import BilinearForm
    from skfem.helpers import dot, grad

    form = BilinearForm(lambda u, v, w: dot(grad(u), grad(v)))
    well = lambda u, x: u**4 / 4
    make = lambda form: ng.FEINNEnergy(network(), space(), form, potential=well, metric="newton", dirichlet=0.0)
    problem, ours = make(form), make(ng.fem.Form())
    assert np.isclose(problem.loss(problem.params), ours.loss(ours.params), rtol=1e-12)
    G, expected = (ng.gramian(p, p.params).as_matrix() for p in (problem, ours))
    assert np.allclose(G, expected, rtol=0, atol=1e-11 * np.max(np.abs(expected)))


@pytest.mark.parametrize("build", [ritz, cubic])
def test_errors_against_the_galerkin_solution(build):
    """Without an exact solution: zero for the finite-element solution itself, whatever the mesh leaves out."""
    problem, known = build(exact="galerkin"), build()
    errors = problem.errors(problem.params)
    assert errors.keys() == {"l2", "h1"}
    matrix = problem.space.assemble(ng.fem.Form())
    best = problem._galerkin(matrix) if build is ritz else problem._newton(matrix, problem.term)
    assert problem.norms(jnp.asarray(best))["h1"] < 1e-13
    np.testing.assert_allclose(errors["h1"], known.errors(known.params)["h1"], rtol=0.05)  # the mesh is a good one
    shifted = problem.norms(jnp.asarray(1.5 * best))
    np.testing.assert_allclose([shifted["l2"], shifted["h1"]], 0.5, rtol=1e-12)


def bad(call, *words):
    return pytest.param(call, words, id=" ".join(words))


SPACE = square()
BAD = [
    bad(
        lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(advection=[1.0, 0.0]), dirichlet=0.0),
        "symmetric",
        "FEINNLeastSquares",
    ),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), load=1.0), "no minimum", "dirichlet"),
    bad(lambda: ng.FEINNLeastSquares(network(), SPACE, ng.fem.Form(reaction=1.0), load=1.0), "singular", "boundary"),
    bad(lambda: ng.FEINNEnergy(network(), "square", ng.fem.Form(), dirichlet=0.0), "space", "str"),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, 3.0, dirichlet=0.0), "form", "float"),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), dirichlet={"lid": 0.0}), "lid", "left"),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), dirichlet=0.0, metric="h2"), "h2", "energy"),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), dirichlet=0.0, exact="fem"), "galerkin", "'fem'"),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), dirichlet=0.0, metric="newton"), "potential"),
    bad(lambda: ng.FEINNLeastSquares(network(), SPACE, ng.fem.Form(), dirichlet=0.0, metric="newton"), "newton", "h1"),
    bad(lambda: ng.FEINNLeastSquares(network(), SPACE, ng.fem.Form(), dirichlet=0.0, riesz="quick"), "quick", "exact"),
    bad(lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), dirichlet=0.0, load=np.ones(3)), "load", "(3,)"),
    bad(
        lambda: ng.FEINNEnergy(ng.MLP(3, 1, 4, 1, key=jax.random.key(0)), SPACE, ng.fem.Form(), dirichlet=0.0),
        "network",
        "(2,)",
    ),
    bad(
        lambda: ng.FEINNEnergy(ng.MLP(2, 2, 4, 1, key=jax.random.key(0)), SPACE, ng.fem.Form(), dirichlet=0.0),
        "a number at each node",
    ),
    bad(
        lambda: ng.FEINNEnergy(network(), SPACE, ng.fem.Form(), dirichlet=0.0, potential=lambda u: u**2),
        "potential",
        "W(u, x)",
    ),
    bad(
        lambda: ng.FEINNEnergy(network(), ng.fem.rectangle((1, 1), degree=1), ng.fem.Form(), dirichlet=0.0),
        "no node is free",
    ),
]


@pytest.mark.parametrize(("call", "words"), BAD)
def test_bad_input_gets_one_clear_line(call, words):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    message = str(error.value)
    assert "\n" not in message
    for word in words:
        assert word in message
