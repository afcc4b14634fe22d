"""Forms that may be an energy or a metric, and those that fall without bound."""

import jax.numpy as jnp
import numpy as np
import pytest
import skfem
from skfem.helpers import dot, grad

import natgrad as ng
from natgrad.fem import Form, Space, rectangle
from tests.fem import fem_cases as cases

NET = ng.MLP(2, 1, 3, 1, key=0)
SPACE = rectangle((2, 2), 2)
LOWEST = 2 * np.pi**2  # eigenvalue of −Δ on the unit square


def energy(form, space=SPACE, **options):
    return ng.FEINNEnergy(NET, space, form, **{"load": 1.0, "dirichlet": 0.0, **options})


def least_squares(**options):
    return ng.FEINNLeastSquares(NET, SPACE, **{"form": Form(), "load": 1.0, "dirichlet": 0.0, **options})


@skfem.BilinearForm
def upside_down(u, v, w):
    return -dot(grad(u), grad(v))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: energy(Form(diffusion=-1.0)), "an energy needs a diffusion that is not negative, got -1$"),
        (lambda: energy(Form(diffusion=lambda x: x[0] - 0.5)), r"not negative, got -0.444 at x = \(0.0564, "),
        (lambda: energy(Form(diffusion=[[1.0, 2.0], [2.0, 1.0]])), "not negative, got -1$"),
        (lambda: energy(Form(diffusion=None, reaction=-1.0)), "an energy needs a form without negative eigenvalues"),
        (
            lambda: energy(Form(reaction=-2 * LOWEST)),
            r"eigenvalues, Form\(.*reaction=-39.*too negative",
        ),
        (
            lambda: energy(upside_down, Space(cases.triangles(2), 2)),
            "an energy needs a form without negative eigenvalues",
        ),
        (lambda: energy(Form(), metric=Form(diffusion=-1.0)), "a metric needs a diffusion that is not negative"),
        (lambda: least_squares(form=Form(diffusion=-1.0), metric="energy"), "a metric needs a diffusion"),
        (lambda: least_squares(inner=Form(diffusion=-1.0)), "a Riesz map needs a positive definite form"),
        (
            lambda: energy(Form(), load=lambda x: x[5]),
            r"the load: the index 5 is outside an axis of length 2; a point .*",
        ),
        (lambda: energy(Form(diffusion=lambda x: 1 + x[2])), "the diffusion: the index 2 is outside"),
        (lambda: energy(Form(), potential=lambda u, x: u**4 * x[2]), "the potential: the index 2 is outside"),
        (
            lambda: energy(Form(), load=float("nan")),
            "the load must be a finite number, an array or a function of x, got nan",
        ),
        (lambda: energy(Form(), load=np.full(25, np.nan)), "a finite number per node"),
        (lambda: energy(Form(), load="a"), "the load must be a finite number, .* got 'a'"),
        (lambda: energy(Form(), dirichlet="left"), "must be a finite number, an array or a function of x, got 'left'"),
        (lambda: energy(Form(), neumann=[1.0]), "neumann must be a mapping .*, got list"),
        (lambda: energy(Form(), exact=3.0), "exact solution must be a function of one point, got float"),
    ],
)
def test_refused_in_one_line(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("form", "options"),
    [
        (Form(reaction=-0.5 * LOWEST), {}),
        (Form(diffusion=lambda x: x[0] * (1 - x[0])), {}),
        (Form(diffusion=None, reaction=1.0), {"dirichlet": None}),
        (Form(reaction=-2 * LOWEST), {"potential": lambda u, x: u**4}),
    ],
)
def test_energies_with_a_minimum_are_welcome(form, options):
    problem = energy(form, **options)
    assert jnp.isfinite(problem.loss(problem.params))


def test_the_sign_of_a_residual_does_not_matter():
    up, down = (least_squares(form=Form(diffusion=d), load=d) for d in (1.0, -1.0))
    np.testing.assert_allclose(up.loss(up.params), down.loss(down.params), rtol=1e-12)
