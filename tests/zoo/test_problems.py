"""Every problem of the zoo: it builds, its exact solution solves it, its file is short; slow: NyströmNGD solves it."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad import zoo
from natgrad.experiment import optimizers
from natgrad.options import check
from natgrad.zoo import _reference

NAMES = zoo.names()
SIZES = {"width": 6, "depth": 1, "interior": 64, "boundary": 24, "initial": 16, "sensors": 16, "cells": 3}
PAPER = {"poisson3d": 8641, "heat3d": 8705, "kovasznay": 2 * (135 + 2 * 2070) + 92 + 46}  # parameters, Appendix B
SHORT = {  # references of a few seconds take a shorter time
    "ginzburg_landau": {"end": 0.01},
    "gray_scott": {"end": 0.002},
    "kdv": {"end": 0.1},
    "kuramoto_sivashinsky": {"end": 0.05},
}
ROUGH = {"gray_scott": 1e-5}  # the reference at t → 0, where derivatives jump on the boundary
ENOUGH = {"gross_pitaevskii": {"interior": 3_600}, "nonlinear_poisson": {"interior": 900}}  # for exact integrals


def tiny(benchmark, **options):
    sizes = {name: size for name, size in SIZES.items() if name in benchmark.options}
    return benchmark.build(jax.random.key(0), **{**sizes, **SHORT.get(benchmark.name, {}), **options})


def exact_network(benchmark):
    """The exact solution in the place of the network, from the benchmark's own file."""
    module = __import__(f"natgrad.zoo.{benchmark.name}", fromlist=["exact"])
    if benchmark.name in ("kovasznay", "stokes2d"):
        return ng.Fields(u=module.velocity, p=module.pressure)
    if benchmark.name == "cavity":
        return _reference.cavity(100.0, "parabola")
    if benchmark.name == "inverse_poisson":
        return ng.Fields(u=module.temperature, k=module.log_kappa)
    if benchmark.name == "inverse_burgers":
        return ng.Fields(u=_reference.burgers(module.NU), nu=ng.Unknown(module.NU, positive=True))
    if benchmark.name in ("ginzburg_landau", "gray_scott"):
        return getattr(_reference, benchmark.name)(**SHORT[benchmark.name])
    return benchmark.fields(SHORT.get(benchmark.name, {})).fields["u"][1]


class Placed:
    """A function of (t, x…) in the place of a window's network, which knows where a window is."""

    def __init__(self, function, window):
        self.function, self.place = function, window.place

    def __call__(self, z):
        return self.function(z)


def residuals(problem, network):
    """{block: what it is at its points} of a function in the place of the network."""
    own = problem.network(problem.params)
    network = Placed(network, own) if hasattr(own, "place") else network
    blocks = problem.features
    at = jax.jit(lambda inputs: [b.at(network, network, x) for b, x in zip(blocks, inputs, strict=True)])
    return dict(zip([b.name for b in blocks], at([b.inputs for b in blocks]), strict=True))


def on_a_mesh(problem):
    return not isinstance(problem, ng.LeastSquares | ng.EnergyMinimization)


@pytest.fixture(scope="module", params=NAMES)
def benchmark(request):
    return zoo.get(request.param)


@pytest.fixture(scope="module")
def problem(benchmark):
    return tiny(benchmark, **ENOUGH.get(benchmark.name, {}))


def test_builds_with_a_finite_loss_and_errors(problem):
    loss, errors = jax.jit(lambda problem: (problem.loss(problem.params), problem.errors(problem.params)))(problem)
    assert np.isfinite(loss)
    assert all(0 < float(error) < 1e3 for error in errors.values())


def test_the_exact_solution_solves_it(benchmark, problem):
    """Residuals of the exact solution vanish; for an energy, its derivative in smooth directions does."""
    exact = exact_network(benchmark)
    if on_a_mesh(problem):
        pytest.skip("a finite-element space holds no exact solution")
    if benchmark.name == "cavity":
        pytest.skip("the residual takes fourth derivatives of a stream function: tests/zoo/test_cavity.py has them")
    if problem.least_squares:
        for name, values in residuals(problem, exact).items():
            np.testing.assert_allclose(values, 0, atol=ROUGH.get(benchmark.name, 1e-8), err_msg=name)
        return
    (block,) = problem.energies
    points, box = block.points, block.points.domain
    lower, upper = jnp.asarray(box.lower), jnp.asarray(box.upper)

    def moved(mode, s):
        wave = lambda x: jnp.prod(jnp.sin(mode * jnp.pi * (x - lower) / (upper - lower)))
        return lambda x: exact(x) + s * wave(x)

    @jax.jit
    def energies(mode):
        energy = lambda s: points.integrate(jax.vmap(lambda x: block.density(moved(mode, s), x))(points.x))
        change = points.integrate(jax.vmap(lambda x: block.difference(exact, moved(mode, 0.1), x))(points.x))
        return jax.grad(energy)(0.0), change, energy(0.1) - energy(0.0)

    for mode in ((1, 1), (2, 1), (3, 3)):
        slope, change, difference = energies(jnp.array(mode))
        assert abs(slope) < 1e-8
        np.testing.assert_allclose(change, difference, atol=1e-12)


def test_the_errors_of_the_exact_solution_are_zero(benchmark, problem):
    if on_a_mesh(problem):
        pytest.skip("a finite-element space holds no exact solution")
    errors = jax.jit(lambda norms: norms(exact_network(benchmark)))(problem.norms)
    assert max(float(error) for error in errors.values()) < 1e-12


def test_presets_fit(benchmark):
    for name, preset in benchmark.presets.items():
        benchmark.check(preset.options)
        assert set(preset.steps) == {"ngd", "bfgs", "lbfgs", "ssbroyden", "adam"}
        assert min(preset.steps.values()) > 0
        for solver in (preset.solver, preset.published):
            assert isinstance(optimizers.build("nystrom", "default", solver, 10), ng.NaturalGradient)
            assert set(solver) <= {"max_rank", "damping", "gamma"}, name
        assert "max_rank" not in preset.published, name
    for parameter in benchmark.options.values():
        check(parameter.name, parameter.default, parameter.annotation)


def test_is_described(benchmark):
    for text in (benchmark.title, benchmark.equation):
        assert text
        assert "\n" not in text
    assert benchmark.presets["small"].error is not None, "state the measured error"


def test_the_file_is_short(benchmark):
    text = (Path(zoo.__file__).parent / f"{benchmark.name}.py").read_text()
    assert len(text.splitlines()) <= 100


def test_the_picture_shows_network_and_exact_solution(benchmark, problem):
    picture = benchmark.fields(SHORT.get(benchmark.name, {}))
    network = problem.network(problem.params)
    x = jnp.asarray(
        [picture.at.get(c, min(0.5, end)) for c, end in zip(picture.coordinates, picture.upper, strict=True)]
    )
    assert len(picture.coordinates) - len(picture.at) <= 2
    if not on_a_mesh(problem):
        points = np.asarray(problem.norms.x)
        assert points.shape[1] == len(x)
        assert np.all((points >= picture.lower) & (points <= picture.upper))
    for select, exact in picture.fields.values():
        assert jax.eval_shape(select(network), x).shape == ()
        if exact is not None:
            shown, wanted = jax.jit(lambda x: (select(exact_network(benchmark))(x), exact(x)))(x)  # noqa: B023
            assert jnp.shape(wanted) == ()
            assert abs(shown - wanted) < 1e-12


@pytest.mark.slow
def test_small_preset_reaches_its_error(benchmark):
    preset, steps = benchmark.preset("small"), benchmark.preset("small").steps["ngd"]
    how = {"key": jax.random.fold_in(jax.random.key(0), 1), "progress": False}
    solver = optimizers.build("nystrom", "default", preset.solver, steps)
    if preset.windows is None:
        solution = ng.solve(benchmark.problem(jax.random.key(0), "small"), solver, steps=steps, **how)
    else:
        solution = ng.march(benchmark.windows(jax.random.key(0), "small"), solver, preset.windows, steps, **how)
    print(f"{benchmark.name}: {solution.errors}, {solution.steps} steps in {solution.time:.0f} s")
    assert solution.errors[benchmark.norm] <= preset.error


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_papers_networks(name):
    sizes = {k: 20 for k in zoo.get(name).options if k in ("interior", "boundary", "initial")}
    assert zoo.get(name).build(jax.random.key(0), **sizes).num_parameters == PAPER[name]


def test_papers_presets():
    """Points and budgets: Appendix B of the paper."""
    for name in PAPER:
        preset = zoo.get(name).presets["paper"]
        defaults = {key: parameter.default for key, parameter in zoo.get(name).options.items()}
        for recipe in ("published", "default"):
            options = defaults | preset.build_options(recipe)
            points = [options[key] for key in ("interior", "boundary", "initial") if key in options]
            assert sum(points) == 11_000
            assert recipe == "default" or points[0] == 10_000
        assert preset.steps["ngd"] == (2_000 if name == "kovasznay" else 1_000)
    assert zoo.get("kovasznay").presets["paper"].published["damping"] is ng.damping.LevenbergMarquardt


@pytest.mark.slow
@pytest.mark.parametrize("dim", [10, 100])
def test_poisson_in_many_dimensions(dim):
    benchmark = zoo.get("poisson_nd")
    problem = tiny(benchmark, dim=dim)
    exact = benchmark.fields({"dim": dim}).fields["u"][1]
    assert np.isfinite(problem.loss(problem.params))
    for values in residuals(problem, exact).values():
        np.testing.assert_allclose(values, 0, atol=1e-10)


def test_poisson_nd_refuses_one_dimension():
    with pytest.raises(ValueError, match="dim must be an integer from 2 to 1000, got 1"):
        zoo.get("poisson_nd").build(jax.random.key(0), dim=1)


@pytest.mark.slow
def test_references_agree_with_finer_ones():
    z = jax.random.uniform(jax.random.key(0), (50, 2), minval=jnp.array([0.01, -1]), maxval=1.0)
    for coarse, fine in (
        (_reference.allen_cahn(1e-3, 5.0), _reference.allen_cahn(1e-3, 5.0, modes=320, times=80)),
        (_reference.condensate(1.0, 5.0, 4.0), _reference.condensate(1.0, 5.0, 4.0, modes=30)),
    ):
        np.testing.assert_allclose(jax.vmap(coarse)(z), jax.vmap(fine)(z), atol=1e-9)


@pytest.mark.slow
def test_references_hold_at_the_ends_of_the_ranges_of_their_options():
    z = jax.random.uniform(jax.random.key(0), (500, 2), minval=jnp.array([0.01, -1]), maxval=1.0)
    for coarse, fine in (
        (_reference.allen_cahn(1e-3, 10.0), _reference.allen_cahn(1e-3, 10.0, modes=320, times=80)),
        (_reference.allen_cahn(2e-2, 10.0), _reference.allen_cahn(2e-2, 10.0, modes=320, times=80)),
        (_reference.condensate(1.0, 2.1, 4.0), _reference.condensate(1.0, 2.1, 4.0, modes=30)),
        (_reference.condensate(1.0, 10.0, 4.0), _reference.condensate(1.0, 10.0, 4.0, modes=30)),
    ):
        np.testing.assert_allclose(jax.vmap(coarse)(z), jax.vmap(fine)(z), atol=2e-5)
