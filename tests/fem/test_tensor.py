"""Tensor meshes against the same spaces on scikit-fem meshes, without scikit-fem, and their operators."""

import subprocess
import sys

import fem_cases as cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend import tuning
from natgrad.fem import H1, MASS, STIFFNESS, Form, rectangle
from natgrad.fem.operators import Elementwise, Kronecker, Restricted, SumFactorized

FULL = np.array([[2.0, 0.3], [-0.1, 1.0]])
FORMS = {
    "stiffness": STIFFNESS,
    "mass": MASS,
    "h1": H1,
    "constant": Form(FULL, [1.0, -2.0], 3.0),
    "variable": cases.DRT,
    "matrix": Form(lambda x: jnp.array([[2 + x[0], x[1]], [0.0, 1.0]]), reaction=lambda x: x[0] * x[1]),
    "advection": Form(None, advection=lambda x: jnp.array([x[1], -x[0]])),
    "underintegrated": Form(cases.kappa, order=4),
}
SPACES = {
    "Q4": lambda: rectangle((3, 2), 4),
    "Q1": lambda: rectangle((4, 5), 1, lower=(-1, 0), upper=(2, 0.5)),
}


def close(a, b, tol=1e-12):
    scale = np.abs(b).max()
    assert np.abs(np.asarray(a) - np.asarray(b)).max() <= tol * (scale or 1.0)


@pytest.mark.parametrize(
    ("name", "form"), [*[("Q4", f) for f in FORMS], ("Q1", "constant"), ("Q1", "matrix")], ids=lambda v: v
)
def test_both_paths_and_both_spaces_agree(name, form):
    space, form = SPACES[name](), FORMS[form]
    general = space.on_skfem_mesh()
    close(space.nodes, general.nodes)
    A = general.assemble(form).toarray()
    close(space.assemble(form).toarray(), A)
    odd = np.random.default_rng(3).permutation(space.num_nodes)[: space.num_nodes // 2]
    for free in (space.free(["left", "right"]), odd):
        dense = A[np.ix_(free, free)]
        x = cases.random(len(free), 3)
        for path in ("axes", "cells"):
            operator = space.operator(form, free, path=path)
            assert operator.shape == dense.shape
            many, back, one, one_back = cases.both_ways(operator, x)
            close(many, dense @ x)
            close(back, dense.T @ x)
            close(operator.quadratic(x), np.diag(x.T @ dense @ x))
            close(one, dense @ x[:, 0])
            close(one_back, dense.T @ x[:, 0])


@pytest.mark.parametrize("path", ["axes", "cells"])
def test_many_columns_go_in_blocks(path):
    space = rectangle((3, 2), 2)
    free = space.free()
    dense = space.assemble(cases.DRT).toarray()[np.ix_(free, free)]
    operator = space.operator(cases.DRT, free, path=path)
    x = cases.random(len(free), 2 * tuning.ELEMENT_COLUMNS.here() + 7)
    close(operator.apply(x), dense @ x)
    close(operator.quadratic(x), np.diag(x.T @ dense @ x))


def test_the_path_is_what_it_should_be():
    space = rectangle((3, 3), 2)
    sides, odd = space.free(["left", "right"]), np.array([3, 1, 20])
    kinds = lambda form, free: type(space.operator(form, free, path="axes"))
    assert kinds(STIFFNESS, None) is kinds(STIFFNESS, sides) is kinds(STIFFNESS, space.free()) is Kronecker
    assert kinds(STIFFNESS, odd) is kinds(cases.DRT, sides) is Restricted
    assert kinds(cases.DRT, None) is SumFactorized
    assert type(space.operator(STIFFNESS, path="cells")) is Elementwise
    assert len(space.operator(Form(2.0, [1.0, 2.0], 3.0), path="axes").terms) == 2


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_loads_boundaries_and_errors_agree(space):
    space = space()
    general = space.on_skfem_mesh()
    u = lambda x: jnp.sin(x[0]) * jnp.exp(x[1])
    psi = lambda x, n: x[0] * n[0] + 3 * n[1] + x[1]
    half = lambda x: (x[0] < 0.4) & (x[1] < 0.6)
    for neumann in (None, {"left": psi}, {"top": 2.0, "bottom": psi}, {None: psi}, {half: psi}, {("left", "top"): psi}):
        close(space.load(u, neumann), general.load(u, neumann))
    for part in (None, "left", "right", "bottom", "top", half, ["left", "top"], ["left", half]):
        np.testing.assert_array_equal(space.boundary(part), general.boundary(part))
    values = cases.random(space.num_nodes)
    for ours, theirs in zip(*(cases.evaluated(s.errors(u), values) for s in (space, general)), strict=True):
        np.testing.assert_allclose([ours["l2"], ours["h1"]], [theirs["l2"], theirs["h1"]], rtol=1e-10)
    points = space.lower + np.random.default_rng(0).random((15, 2)) * (space.upper - space.lower)
    close(space.evaluate(values, points), general.evaluate(values, points), 1e-10)
    P, Q = space.linear()[1], general.linear()[1]
    linear = lambda x: 2 * x[0] - x[1]
    close(P @ space.linear()[0].interpolate(linear), space.interpolate(linear))
    close(Q @ general.linear()[0].interpolate(linear), space.interpolate(linear))


def test_the_finite_element_error_of_the_paper_s_mesh():
    """Q4 on 30 × 30 cells, the mixed problem of section 5.1.5: both errors are those of the interpolant."""
    space = rectangle((30, 30), 4)
    free = space.free(["left", "right"])
    load = space.load(cases.drt_source, {"top": cases.drt_flux, "bottom": cases.drt_flux})
    nodal = space.interpolate(cases.exact_drt)
    solution = space.galerkin(cases.DRT, load, nodal, free)
    interpolant, galerkin = cases.evaluated(space.errors(cases.exact_drt), nodal, solution)
    np.testing.assert_allclose(interpolant["h1"], 3.16e-6, rtol=0.01)
    np.testing.assert_allclose(galerkin["h1"], interpolant["h1"], rtol=0.01)
    np.testing.assert_allclose(galerkin["l2"], interpolant["l2"], rtol=0.01)


@pytest.mark.parametrize(("cells", "degree"), [((4,), 3), ((2, 3, 2), 2)])
def test_intervals_and_boxes(cells, degree):
    space = rectangle(cells, degree)
    general = space.on_skfem_mesh()
    form = Form(lambda x: 1 + x[0], np.arange(1.0, 1 + len(cells)), 2.0)
    A = general.assemble(form).toarray()
    close(space.assemble(form).toarray(), A)
    x = cases.random(space.num_nodes, 2)
    close(space.operator(form, path="axes").apply(x), A @ x)
    close(space.operator(form, path="axes").apply_transpose(x), A.T @ x)
    constant = Form(2.0, np.arange(1.0, 1 + len(cells)), 2.0)
    B = general.assemble(constant).toarray()
    close(space.operator(constant, path="axes").apply(x), B @ x)
    np.testing.assert_array_equal(space.boundary("right"), general.boundary("right"))
    np.testing.assert_array_equal(space.boundary(), general.boundary())
    if len(cells) > 1:
        close(space.load(neumann={"back": lambda x, n: n[2] * x[0]}), general.load(neumann={"back": lambda x: x[0]}))
    free = space.free("left")
    fast, exact = (space.riesz(H1, free, kind=kind) for kind in ("fast", "exact"))
    close(fast.apply(x[free]), exact.apply(x[free]), 1e-10)


@pytest.mark.parametrize("path", ["axes", "cells"])
@pytest.mark.parametrize("form", [STIFFNESS, cases.DRT], ids=["constant", "variable"])
def test_operators_are_transformed_by_jax(path, form):
    space = rectangle((2, 3), 2)
    free = space.free("left")
    operator = space.operator(form, free, path=path)
    dense = space.assemble(form)[free][:, free].toarray()
    x, y = cases.random(len(free), seed=1), cases.random(len(free), seed=2)
    many = cases.random(len(free), 150)  # more columns than a block, and not a multiple of it

    @jax.jit
    def transformed(operator, x, y, many):
        return (
            operator.apply(x),
            jax.vmap(operator.apply)(jnp.stack([x, y])),
            jax.grad(lambda x: y @ operator.apply(x))(x),
            jax.jvp(operator.apply, (x,), (y,))[1],
            jax.grad(lambda x: x @ operator.apply_transpose(x))(x),
            operator.apply(many),
            jax.grad(lambda many: jnp.sum(many * operator.apply(many)))(many),
        )

    both = dense + dense.T
    truth = (dense @ x, jnp.stack([x, y]) @ dense.T, dense.T @ y, dense @ y, both @ x, dense @ many, both @ many)
    for found, wanted in zip(transformed(operator, x, y, many), truth, strict=True):
        close(found, wanted)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(operator))


def test_bad_input_gets_one_line():
    space = rectangle((2, 2), 2)
    bad = {
        r"cells must be a positive integer or a sequence, .*, got \(2, 0\)": lambda: rectangle((2, 0)),
        "one to three positive integers": lambda: rectangle((2, 2, 2, 2)),
        "from 1 to 8": lambda: rectangle((2, 2), 9),
        "lower < upper": lambda: rectangle((2, 2), 1, upper=(1, -1)),
        r"no boundary 'lid' \(it has left, right, bottom, top\)": lambda: space.boundary("lid"),
        "no facet of the boundary": lambda: space.boundary(lambda x: x[0] > 2),
        "a name, a function of x": lambda: space.boundary(3),
        "path must be": lambda: space.operator(STIFFNESS, path="fast"),
        "BilinearForm": lambda: space.operator(3, path="axes"),
        "outside of the mesh": lambda: space.evaluate(np.zeros(space.num_nodes), [[2.0, 0.0]]),
        r"shape \(n, 2\)": lambda: space.evaluate(np.zeros(space.num_nodes), [0.5, 0.5]),
    }
    for message, call in bad.items():
        with pytest.raises(ValueError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_tensor_meshes_need_no_scikit_fem_and_leave_the_precision_alone():
    code = (
        "import sys; sys.modules['skfem'] = None\n"
        "import jax, jax.numpy as jnp, numpy as np\n"
        "from natgrad.fem import rectangle, Form, STIFFNESS\n"
        "s = rectangle((2, 2), 2)\n"
        "f = s.free('left')\n"
        "b = s.load(lambda x: jnp.sin(x[0]), {'top': lambda x, n: n[1]})\n"
        "u = s.galerkin(Form(lambda x: 1 + x[0], [1.0, 2.0]), b, s.interpolate(lambda x: x[0]), f)\n"
        "for path in ('axes', 'cells'): s.operator(Form(lambda x: 1 + x[0]), f, path=path).apply(u[f])\n"
        "for kind in ('exact', 'fast', 'cycles'): s.riesz(STIFFNESS, f, kind).apply(u[f])\n"
        "s.errors(lambda x: jnp.sin(x[0]))(u); s.evaluate(u, [[0.5, 0.5]])\n"
        "print(b.dtype, u.dtype, jax.config.jax_enable_x64)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert out.stdout.split() == ["float64", "float64", "False"]
