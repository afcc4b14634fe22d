"""Points outside a normalized network's box are refused; points too large or too small for a network are warned of."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad import zoo
from natgrad.problem import units

BOX = ng.Box([0, 0], [200, 100])
KEY = jax.random.key(1)


def mlp(dim=2, seed=0, width=20, **options):
    return ng.MLP(dim, 1, width, 2, key=jax.random.key(seed), **options)


def fit(network, points, **more):
    return ng.LeastSquares(network, fit=ng.Residual(lambda u, x: u(x) - 1.0, points), **more)


def inside(factor=1.0, corner=0.0):
    return ng.Box([corner * factor] * 2, [(corner + 1) * factor] * 2).interior(50, key=KEY)


def refused(make):
    with pytest.raises(ValueError, match="lie outside the box") as error:
        make()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_points_outside_are_an_error_that_names_block_and_box():
    network = ng.Normalized(mlp(), BOX)
    fit(network, BOX.interior(50, key=KEY))
    message = refused(lambda: fit(network, jnp.array([[10.0, 20.0], [201.0, 3.0]])))
    assert "1 of 2 points (the first: 201, 3) of block 'fit'" in message
    assert "[0, 200] × [0, 100]" in message


def test_round_off_is_not_outside():
    network = ng.Normalized(mlp(dtype=jnp.float32), BOX)
    edge = np.array([[200.0, 100.0]]) * (1 + 1e-6)
    fit(network, jnp.asarray(np.repeat(edge, 3, axis=0)))
    refused(lambda: fit(network, jnp.asarray(np.repeat(edge * 1.001, 3, axis=0))))


def test_energies_and_finite_elements_look_too():
    network = ng.Normalized(mlp(), ng.Box([0, 0], [1, 0.5]))
    square = ng.Box([0, 0], [1, 1]).interior(50, key=KEY)
    block = ng.Energy(lambda u, x: u(x) ** 2, square, metric=ng.metrics.L2())
    assert "block 'interior'" in refused(lambda: ng.EnergyMinimization(network, interior=block))
    space = ng.fem.rectangle((4, 4), degree=1)
    assert "block 'nodes'" in refused(lambda: ng.FEINNEnergy(network, space, ng.fem.Form(), load=1.0, dirichlet=0.0))


def test_a_field_is_asked_for_the_points_it_is_evaluated_at():
    left, right = ng.Box([0, 0], [1, 1]), ng.Box([1, 0], [2, 1])
    halves = ng.Fields(a=ng.Normalized(mlp(), left), b=ng.Normalized(mlp(seed=3), right))
    blocks = {
        "left": ng.Residual(lambda w, x: ng.laplacian(w.a, x), left.interior(20, key=KEY)),
        "right": ng.Residual(lambda w, x: ng.laplacian(w.b, x), right.interior(20, key=KEY)),
    }
    ng.LeastSquares(halves, **blocks)
    both = ng.Residual(lambda w, x: w.a(x) - w.b(x), left.interior(20, key=KEY))
    message = refused(lambda: ng.LeastSquares(halves, **blocks, both=both))
    assert "block 'both'" in message
    assert "field 'b'" in message


@pytest.mark.parametrize("name", zoo.names())
def test_no_problem_of_the_zoo_is_warned_of(name):
    benchmark = zoo.get(name)
    for preset in benchmark.presets:
        few = {k: 30 for k in ("interior", "boundary", "initial", "sensors") if k in benchmark.options}
        few |= {"end": 0.002} if "end" in benchmark.options else {}
        cells = {"cells": 2} if "cells" in benchmark.options else {}
        few |= {"reynolds": 100.0} if "reynolds" in benchmark.options else {}  # one reference for all presets
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            benchmark.problem(jax.random.key(0), preset, **few, **cells)


@pytest.mark.parametrize("name", ["poisson3d", "burgers", "kovasznay"])
@pytest.mark.parametrize(("factor", "said"), [(100.0, "saturate"), (0.01, "nearly constant in")])
def test_other_lengths_are_warned_of_in_one_line(name, factor, said):
    """The small presets in metres that were made in centimetres, and the other way; time is as it was."""
    plain = {"graded": False, "odd": False} if name == "burgers" else {}
    problem = zoo.get(name).problem(jax.random.key(0), "small", **plain)
    stretch = np.array([1.0, factor]) if name == "burgers" else factor
    blocks = [(f.name, lambda u, *row, f=f: f.evaluate(u, u, *row), f.inputs) for f in problem.features]
    other = [(block, fn, (inputs[0] * stretch, *inputs[1:])) for block, fn, inputs in blocks]
    network = problem.network(problem.params)
    with pytest.warns(UserWarning, match=said) as caught:
        units.check_units(network, other)
    text = str(caught[0].message)
    assert "\n" not in text
    assert "ng.Normalized(network, domain)" in text
    assert (name == "kovasznay") == ("field 'u'" in text)


@pytest.mark.parametrize("factor", [100.0, 0.01])
def test_what_the_warning_proposes_silences_it(factor):
    points = inside(factor)
    with pytest.warns(UserWarning, match="the MLP ") as caught:
        fit(mlp(), points)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="the MLP "):
        fit(ng.HardBoundary(mlp(), distance=lambda x: x[0]), points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(ng.Normalized(mlp(), points.domain), points)
        fit(ng.HardBoundary(ng.Normalized(mlp(), points.domain), distance=lambda x: x[0] / factor), points)


def test_a_shift_alone_saturates():
    with pytest.warns(UserWarning, match="as large as 1e\\+03"):
        fit(mlp(), inside(corner=1000.0))


def test_networks_of_features_are_seen_through():
    days = ng.Interval(0, 365) * ng.Interval(0, 24)
    points = days.interior(50, key=KEY)
    with pytest.warns(UserWarning, match="as large as 36"):
        fit(ng.Periodic(mlp(3), periods=(None, 24.0)), points)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(ng.FourierFeatures(mlp(8), 2, np.array([[1, 0], [0, 1], [1, 1], [1, -1]]), scale=1e-2), points)
        fit(ng.Periodic(mlp(4), periods=(365.0, 24.0)), points)


def test_what_is_no_length_is_not_warned_of():
    flat = np.column_stack([np.linspace(0, 1, 20), np.full(20, 0.3)])  # one coordinate never changes
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(mlp(), flat)
        fit(mlp(activation=jnp.sin), inside(100.0))
        fit(ng.MLP(2, 1, 20, 0, key=KEY), inside(100.0))  # linear
        jax.jit(lambda x: fit(mlp(), x).loss(mlp()))(inside(100.0).x)  # values are not known here
