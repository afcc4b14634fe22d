"""Nodal spaces on scikit-fem meshes: numbering, exactness, orders of convergence."""

import fem_cases as cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import skfem
from skfem.helpers import dot, grad

from natgrad.fem import H1, MASS, STIFFNESS, Form, Space

ELEMENTS = [
    *[("triangles", k) for k in (1, 2, 3, 4)],
    *[("quads", k) for k in (1, 2, 3, 4, 6, 8)],
    *[("tets", k) for k in (1, 2, 3, 4)],
    *[("hexes", k) for k in (1, 2, 3, 4)],
]


def polynomial(space, seed=0):
    """A random polynomial of the space's degree, the total one, and minus its Laplacian."""
    d, k = space.dim, space.degree
    c = np.random.default_rng(seed).standard_normal((3, d))
    u = lambda x: jnp.sum((jnp.asarray(c) @ x) ** k) + x[0]
    return u, lambda x: -jnp.trace(jax.hessian(u)(x))


@pytest.mark.parametrize(("kind", "degree"), ELEMENTS)
def test_polynomials_are_solved_exactly_on_shuffled_warped_meshes(kind, degree):
    """The patch test, on cells of every orientation: it fails if neighbours disagree on a shared node."""
    n = 3 if kind in ("triangles", "quads") else 2
    mesh = getattr(cases, kind)(n)
    mesh = cases.shuffled(cases.warped(mesh) if kind in ("triangles", "tets") else mesh)
    space = Space(mesh, degree)
    u, f = polynomial(space)
    nodal = space.interpolate(u)
    solution = space.galerkin(STIFFNESS, space.load(f), nodal, space.free())
    assert np.abs(solution - nodal).max() < 1e-10 * np.abs(nodal).max()
    [errors] = cases.evaluated(space.errors(u), nodal)
    assert errors["h1"] < 1e-11
    assert errors["l2"] < 1e-12


@pytest.mark.parametrize("degree", [2, 3, 4, 5])
def test_mapped_quads_of_any_orientation_reproduce_linear_functions(degree):
    """Unstructured quadrilaterals (three to a triangle), where edges run both ways."""
    space = Space(cases.shuffled(cases.circle_of_quads()), degree)
    u = lambda x: 2 * x[0] - x[1] + 0.3
    nodal = space.interpolate(u)
    solution = space.galerkin(STIFFNESS, space.load(0.0), nodal, space.free())
    np.testing.assert_allclose(solution, nodal, atol=1e-12)


@pytest.mark.parametrize(("kind", "degree"), [("quads", 4), ("hexes", 3), ("triangles", 4), ("tets", 3)])
def test_every_node_has_one_place(kind, degree):
    """The cells that share a node map it to the same point; scikit-fem's own numbering does not."""
    space = Space(cases.shuffled(getattr(cases, kind)(2)), degree)
    mapped = np.moveaxis(space.mesh._mapping().F(space.element.doflocs.T), 0, -1)
    np.testing.assert_allclose(mapped, space.nodes[space.dofs], atol=1e-13)
    assert len(np.unique(np.round(space.nodes, 9), axis=0)) == space.num_nodes
    plain = skfem.Dofs(space.mesh, space.element).element_dofs.T
    places = np.empty_like(space.nodes)
    places[plain] = mapped
    assert np.abs(places[plain] - mapped).max() > 0.01


def slow(*cases_):
    return [pytest.param(*case, marks=pytest.mark.slow) for case in cases_]


QUICK = [("triangles", 1), ("triangles", 3), ("quads", 2), ("quads", 4), ("tets", 2), ("hexes", 2)]


@pytest.mark.parametrize(("kind", "degree"), [*QUICK, *slow(*[e for e in ELEMENTS if e not in QUICK])])
def test_orders_of_convergence(kind, degree):
    """h^k in H¹ and h^(k+1) in L², of the interpolant and of the Galerkin solution, on warped meshes."""
    flat = kind in ("triangles", "quads")
    sizes = {1: (8, 16), 2: (6, 12), 3: (4, 8), 4: (4, 8), 6: (3, 6), 8: (3, 6)}[degree] if flat else (2, 4)
    if kind in ("tets", "hexes") and degree == 1:
        sizes = (4, 8)
    u, f = (cases.exact_drt, cases.minus_laplacian_drt) if degree > 4 else (cases.wave, cases.minus_laplacian)
    errors = []
    for n in sizes:
        mesh = getattr(cases, kind)(n)
        space = Space(cases.warped(mesh, 0.03), degree)
        nodal = space.interpolate(u)
        solution = space.galerkin(STIFFNESS, space.load(f), nodal, space.free())
        errors.append([e[name] for e in cases.evaluated(space.errors(u), nodal, solution) for name in ("h1", "l2")])
    slopes = np.log2(np.array(errors[0]) / np.array(errors[1])) / np.log2(sizes[1] / sizes[0])
    expected = np.array([degree, degree + 1] * 2)
    assert np.all(slopes > expected - (0.2 if flat else 0.35)), slopes
    assert np.all(slopes < expected + 1.2), slopes


@pytest.mark.parametrize(
    ("kind", "degree"),
    [("quads", 4), ("triangles", 2), *slow(*[("quads", k) for k in (1, 2, 3)], *[("triangles", k) for k in (1, 3, 4)])],
)
def test_orders_with_diffusion_transport_reaction_and_mixed_conditions(kind, degree):
    errors = []
    sizes = {1: (16, 32), 2: (12, 24), 3: (8, 16), 4: (8, 16)}[degree]
    for n in sizes:
        space = Space(getattr(cases, kind)(n).with_defaults(), degree)
        free = space.free(["left", "right"])
        load = space.load(cases.drt_source, neumann={"top": cases.drt_flux, "bottom": cases.drt_flux})
        solution = space.galerkin(cases.DRT, load, space.interpolate(cases.exact_drt), free)
        [error] = cases.evaluated(space.errors(cases.exact_drt), solution)
        errors.append([error["h1"], error["l2"]])
    slopes = np.log2(np.array(errors[0]) / np.array(errors[1]))
    assert np.all(np.abs(slopes - [degree, degree + 1]) < [0.25, 0.45]), slopes


def test_forms_and_loads_agree_with_scikit_fem():
    space = Space(cases.shuffled(cases.triangles(3)), 2)

    @skfem.BilinearForm
    def bilinear(u, v, w):
        return (2 + w.x[0]) * dot(grad(u), grad(v)) + 3 * grad(u)[0] * v + u * v

    @skfem.LinearForm
    def linear(v, w):
        return w.x[1] * v

    own = Form(lambda x: 2 + x[0], [3.0, 0.0], 1.0, order=6)
    A, B = space.assemble(own), bilinear.assemble(space.basis(6))
    np.testing.assert_allclose(A.toarray(), B.toarray(), atol=1e-13)
    np.testing.assert_allclose(space.assemble(bilinear).toarray(), B.toarray(), atol=1e-13)
    x = cases.random(space.num_nodes)
    np.testing.assert_allclose(space.operator(bilinear).apply(x), B @ x, atol=1e-12)
    np.testing.assert_allclose(space.load(linear), space.load(lambda x: x[1]), atol=1e-14)
    facet = skfem.FacetBasis(space.mesh, space.element, intorder=6, dofs=space.basis().dofs)
    psi = skfem.LinearForm(lambda v, w: (w.n[0] + 2 * w.x[1]) * v).assemble(facet)
    np.testing.assert_allclose(space.load(neumann={None: lambda x, n: n[0] + 2 * x[1]}), psi, atol=1e-13)


@pytest.mark.parametrize(("kind", "degree"), [("triangles", 3), ("quads", 2), ("tets", 2), ("hexes", 2)])
def test_boundaries(kind, degree):
    space = Space(getattr(cases, kind)(2).with_defaults(), degree)
    on = lambda axis, value: np.flatnonzero(np.isclose(space.nodes[:, axis], value))
    np.testing.assert_array_equal(space.boundary("left"), on(0, 0.0))
    np.testing.assert_array_equal(space.boundary("top"), on(1, 1.0))
    np.testing.assert_array_equal(space.boundary(lambda x: np.isclose(x[0], 1)), on(0, 1.0))
    np.testing.assert_array_equal(space.boundary(["left", "right"]), np.union1d(on(0, 0.0), on(0, 1.0)))
    every = np.flatnonzero(np.isclose(np.abs(space.nodes - 0.5).max(axis=1), 0.5))
    np.testing.assert_array_equal(space.boundary(), every)
    np.testing.assert_array_equal(space.free(), np.setdiff1d(np.arange(space.num_nodes), every))
    # ∫_left 1 and the length of the boundary
    np.testing.assert_allclose(space.load(neumann={"left": 1.0}).sum(), 1.0, rtol=1e-13)
    np.testing.assert_allclose(space.load(neumann={None: 1.0}).sum(), 2 * space.dim, rtol=1e-13)


@pytest.mark.parametrize(
    "element", [skfem.ElementTriP1, skfem.ElementTriP2(), skfem.ElementTriP3(), skfem.ElementTriP4()]
)
def test_own_elements_are_welcome(element):
    space = Space(cases.shuffled(cases.triangles(3)), element=element)
    ours = Space(space.mesh, space.degree)
    assert space.num_nodes == ours.num_nodes
    u, f = polynomial(space)
    solution = space.galerkin(STIFFNESS, space.load(f), space.interpolate(u), space.free())
    assert cases.evaluated(space.errors(u), solution)[0]["h1"] < 1e-11


@pytest.mark.parametrize(
    ("mesh", "element"),
    [
        (skfem.MeshQuad(), skfem.ElementQuadP(4)),
        (skfem.MeshTri(), skfem.ElementTriArgyris()),
        (skfem.MeshTri(), skfem.ElementTriP1B()),
        (skfem.MeshTri(), skfem.ElementTriP0()),
        (skfem.MeshTri(), skfem.ElementVector(skfem.ElementTriP1())),
        (skfem.MeshTri(), skfem.ElementTriRT1()),
    ],
    ids=lambda x: type(x).__name__,
)
def test_elements_without_nodal_values_are_refused(mesh, element):
    with pytest.raises(ValueError, match="is not nodal") as caught:
        Space(mesh, element=element)
    assert "\n" not in str(caught.value)


def test_bad_input_gets_one_line():
    space = Space(cases.triangles(2).with_defaults(), 2)
    cases_of = {
        "from 1 to 4": lambda: Space(cases.triangles(1), 5),
        "from 1 to 8": lambda: Space(cases.quads(1), 0),
        "must be a scikit-fem mesh": lambda: Space("square"),
        "the mesh has quadrilateral ones": lambda: Space(cases.quads(1), element=skfem.ElementTriP1()),
        r"no boundary 'lid' \(it has bottom, left, right, top\)": lambda: space.boundary("lid"),
        "no facet of the boundary": lambda: space.boundary(lambda x: x[0] > 2),
        "a name, a function of x": lambda: space.boundary(3),
        "advection must be an array of shape": lambda: space.assemble(Form(advection=[1.0, 2.0, 3.0])),
        "diffusion must be a number or an array": lambda: space.assemble(Form(lambda x: x)),
        "the reaction fails at a single point": lambda: space.assemble(Form(reaction=lambda x: x[0] @ x)),
        "is not finite": lambda: space.assemble(Form(lambda x: 1 / (x[0] - x[0]))),
        "reaction must be a finite number, an array": lambda: Form(reaction="one"),
        "at least one of": lambda: Form(None),
        "BilinearForm": lambda: space.operator("laplace"),
        "distinct nodes": lambda: space.operator(STIFFNESS, [0, 0]),
        "non-empty list": lambda: space.operator(STIFFNESS, []),
        "load must have shape": lambda: space.galerkin(STIFFNESS, np.ones(3), np.zeros(space.num_nodes), space.free()),
        "singular": lambda: space.galerkin(STIFFNESS, np.ones(space.num_nodes)),
        "give a number at one point": lambda: space.interpolate(lambda x: x),
        "exact solution must give a number": lambda: space.errors(lambda x: x),
        "x must have shape": lambda: space.operator(MASS).apply(jnp.ones(3)),
    }
    for message, call in cases_of.items():
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_functions_may_be_written_with_numpy():
    space = Space(cases.triangles(2), 1)
    with_numpy = Form(lambda x: np.exp(np.float64(x[0])) + 1, reaction=lambda x: float(np.sin(np.float64(x[1]))) + 2)
    with_jax = Form(lambda x: jnp.exp(x[0]) + 1, reaction=lambda x: jnp.sin(x[1]) + 2)
    np.testing.assert_allclose(space.assemble(with_numpy).toarray(), space.assemble(with_jax).toarray(), rtol=1e-14)
    np.testing.assert_allclose(space.interpolate(2), 2)


@pytest.mark.parametrize("kind", ["triangles", "quads", "tets", "hexes"])
def test_measures_and_kernels(kind):
    space = Space(cases.shuffled(getattr(cases, kind)(2)), 2)
    ones = np.ones(space.num_nodes)
    np.testing.assert_allclose(ones @ space.assemble(MASS) @ ones, 1.0, rtol=1e-13)
    np.testing.assert_allclose(space.assemble(STIFFNESS) @ ones, 0.0, atol=1e-12)
    np.testing.assert_allclose(space.assemble(H1) @ ones, space.load(1.0), atol=1e-12)


def test_evaluate_and_jitted_errors():
    space = Space(cases.shuffled(cases.quads(3)), 3)
    u = lambda x: x[0] ** 3 - x[0] * x[1] ** 2
    points = np.random.default_rng(1).random((20, 2))
    np.testing.assert_allclose(space.evaluate(space.interpolate(u), points), jax.vmap(u)(points), atol=1e-12)
    norms, nodal = space.errors(u), space.interpolate(u)
    shifted = jax.jit(lambda norms, v: norms(v))(norms, nodal + 1.0)
    np.testing.assert_allclose(shifted["l2"] * np.sqrt(nodal @ space.assemble(MASS) @ nodal), 1.0, rtol=1e-12)
    np.testing.assert_allclose(shifted["h1"] * np.sqrt(nodal @ space.assemble(H1) @ nodal), 1.0, rtol=1e-12)
