"""Riesz maps against dense inverses."""

import equinox as eqx
import fem_cases as cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import skfem
from skfem.helpers import dot, grad

from natgrad.fem import H1, STIFFNESS, Form, Space, TensorSpace, rectangle

GENERAL = {
    "triangles": lambda: Space(cases.shuffled(cases.triangles(4)).with_defaults(), 3),
    "quads": lambda: Space(cases.shuffled(cases.quads(3)).with_defaults(), 4),
    "tensor": lambda: rectangle((4, 3), 3),
    "hexes": lambda: Space(cases.hexes(2).with_defaults(), 2),
}


def matrix(space, form, free):
    A = space.assemble(form).toarray()
    return A if free is None else A[np.ix_(free, free)]


@pytest.mark.parametrize("space", GENERAL.values(), ids=GENERAL)
def test_exact(space):
    space = space()
    for form, free in ((STIFFNESS, space.free("left")), (STIFFNESS, space.free()), (H1, None)):
        A, R = matrix(space, form, free), space.riesz(form, free)
        x = cases.random(len(A), 3)
        for solved in cases.both_ways(R, A @ x):
            np.testing.assert_allclose(solved, x if solved.ndim == 2 else x[:, 0], atol=1e-11)


@pytest.mark.parametrize(
    "form", [STIFFNESS, H1, Form(np.diag([2.0, 0.5]), reaction=3.0)], ids=["a", "h1", "anisotropic"]
)
def test_fast(form):
    space = rectangle((4, 3), 4, upper=(2.0, 1.0))
    for free in (space.free(["left", "right"]), space.free(), space.free("top"), None):
        if form is STIFFNESS and free is None:
            continue
        A, R = matrix(space, form, free), space.riesz(form, free, kind="fast")
        x = cases.random(len(A), 3)
        for solved in cases.both_ways(R, A @ x):
            np.testing.assert_allclose(solved, x if solved.ndim == 2 else x[:, 0], atol=1e-10)


@pytest.mark.parametrize("kind", ["exact", "fast", "cycles"])
def test_maps_are_symmetric_and_transformed_by_jax(kind):
    space = rectangle((3, 3), 2)
    free = space.free(["left", "right"])
    R = space.riesz(STIFFNESS, free, kind)
    dense = np.asarray(eqx.filter_jit(lambda R, x: R.apply(x))(R, jnp.eye(len(free))))
    np.testing.assert_allclose(dense, dense.T, atol=1e-13)
    assert np.linalg.eigvalsh(dense).min() > 0
    x, y = cases.random(len(free), seed=1), cases.random(len(free), seed=2)
    batches = cases.random(2 * len(free), 3).reshape(2, len(free), 3)

    @jax.jit
    def transformed(R, x, y, batches):
        return (
            jax.vmap(R.apply)(jnp.stack([x, y])),
            jax.vmap(R.apply)(batches),
            jax.grad(lambda x: y @ R.apply(x))(x),
            jax.jvp(R.apply, (x,), (y,))[1],
            jax.hessian(lambda x: x @ R.apply(x))(x),
        )

    truth = (jnp.stack([x, y]) @ dense, dense @ batches, dense @ y, dense @ y, 2 * dense)
    for found, wanted in zip(transformed(R, x, y, batches), truth, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("space", GENERAL.values(), ids=GENERAL)
def test_bounds_of_cycles_hold(space):
    space = space()
    free = space.free("left")
    form = Form(lambda x: 1 + x[0] ** 2, reaction=0.5)
    A, R = matrix(space, form, free), space.riesz(form, free, "cycles")
    spectrum = np.linalg.eigvals(np.asarray(cases.applied(R, jnp.asarray(A))))
    assert np.abs(spectrum.imag).max() < 1e-8
    np.testing.assert_allclose([spectrum.real.min(), spectrum.real.max()], R.bounds, rtol=0.05)
    if not isinstance(space, TensorSpace):
        return
    twice = space.riesz(form, free, "cycles", count=2)
    assert 1 - twice.bounds.lower < 1.2 * (1 - R.bounds.lower) ** 2


@pytest.mark.parametrize("degree", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_bounds_of_cycles_do_not_depend_on_the_mesh(degree):
    def condition(space):
        bounds = space.riesz(STIFFNESS, space.free(), "cycles").bounds
        return bounds.upper / bounds.lower

    conditions = [condition(rectangle((n, n), degree)) for n in (4, 8, 16)]
    conditions += [condition(Space(cases.triangles(n), degree)) for n in (4, 8)]
    assert max(conditions[:3]) < 1.3
    assert max(conditions[3:]) < 3
    assert max(conditions[:3]) / min(conditions[:3]) < 1.1
    assert conditions[4] / conditions[3] < 1.1


def test_more_smoothing_is_a_better_inverse():
    space = Space(cases.triangles(4), 4)
    lower = [space.riesz(STIFFNESS, space.free(), "cycles", smoothing=k).bounds.lower for k in (3, 6)]
    assert lower[1] > 1.5 * lower[0]


def test_bad_input_gets_one_line():
    space, general = rectangle((2, 2), 2), Space(cases.triangles(2), 2)

    @skfem.BilinearForm
    def advection(u, v, w):
        return dot(grad(u), grad(v)) + grad(u)[0] * v

    lonely = np.delete(space.free(), [0])
    bad = {
        "singular on the free nodes": [lambda k=k: space.riesz(STIFFNESS, None, k) for k in ("exact", "fast", "cycles")]
        + [lambda: general.riesz(STIFFNESS)],
        "a symmetric form": [
            lambda: space.riesz(Form(advection=[1.0, 0.0]), None),
            lambda: general.riesz(advection, general.free()),
            lambda: space.riesz(Form([[1.0, 0.5], [0.0, 1.0]]), space.free()),
        ],
        "positive definite": [lambda: general.riesz(Form(reaction=-100.0), general.free())],
        "needs a tensor mesh": [lambda: general.riesz(STIFFNESS, general.free(), "fast")],
        "constant coefficients": [
            lambda: space.riesz(Form(cases.kappa), space.free(), "fast"),
            lambda: space.riesz(Form([[1.0, 0.5], [0.5, 1.0]]), space.free(), "fast"),
        ],
        "whole sides": [lambda: space.riesz(STIFFNESS, lonely, "fast")],
        "kind must be": [lambda: space.riesz(STIFFNESS, space.free(), "amg")],
        "smoothing ≥ 1": [lambda: space.riesz(STIFFNESS, space.free(), "cycles", smoothing=0)],
        "a free vertex": [lambda: rectangle((1, 1), 3).riesz(STIFFNESS, rectangle((1, 1), 3).free(), "cycles")],
    }
    for message, calls in bad.items():
        for call in calls:
            with pytest.raises(ValueError, match=message) as caught:
                call()
            assert "\n" not in str(caught.value)
