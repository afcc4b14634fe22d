"""The equations in time of the zoo: their points, networks and errors, and what a run on too few points says."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad import zoo
from natgrad.zoo._grid import grid
from natgrad.zoo._shock import Graded, layered, shock_of


def test_errors_are_measured_on_a_regular_grid_with_its_ends():
    points = grid(ng.Interval(0, 2) * ng.Interval(-1, 3), times=3, positions=5)
    np.testing.assert_array_equal(points.x[:5], [[0, -1], [0, 0], [0, 1], [0, 2], [0, 3]])
    np.testing.assert_array_equal(points.x[-1], [2, 3])
    np.testing.assert_allclose(points.weights, 8 / 15)


@pytest.mark.parametrize("nu", [1e-3, 0.01 / np.pi, 1.0])
@pytest.mark.parametrize("start", [False, True])
def test_half_of_the_points_are_at_the_shock(nu, start):
    points = layered(400, jax.random.key(0), shock=shock_of(nu), start=start)
    t, x = np.asarray(points.x).T
    assert np.sum(np.abs(x) < shock_of(nu)) == 200
    assert abs(len(x) - 400) <= 8
    assert np.all(t == 0) == start
    np.testing.assert_allclose(points.measure, 2)
    np.testing.assert_allclose(points.integrate(points.x[:, 1] ** 2), 2 / 3, rtol=0.02)


def test_odd_functions_see_points_on_one_side():
    points = layered(400, jax.random.key(0), shock=0.1, odd=True)
    assert np.asarray(points.x)[:, 1].min() > 0
    np.testing.assert_allclose(points.measure, 1)
    u = zoo.get("burgers").windows(0, width=4, depth=1, interior=8).network
    z = jnp.array([0.4, 0.3])
    assert abs(u(z)) > 1e-6
    assert u(z * jnp.array([1, -1])) == -u(z)


def test_a_graded_network_is_saved(tmp_path):
    network = Graded(ng.MLP(3, 1, 4, 1, key=jax.random.key(0)), 0.1)
    ng.save(tmp_path / "u.ng", network)
    z = jnp.array([0.3, 0.02])
    assert ng.load(tmp_path / "u.ng")(z) == network(z)


def test_the_ends_of_burgers_are_exact_and_so_is_the_start_of_one_network():
    benchmark = zoo.get("burgers")
    sizes = {"width": 4, "depth": 1, "interior": 8}
    whole = benchmark.problem(0, **sizes)
    u, window = whole.network(whole.params), benchmark.windows(0, **sizes).network
    for network in (u, window):
        assert max(abs(network(jnp.array([0.7, x]))) for x in (-1.0, 1.0)) < 1e-15
    assert abs(u(jnp.array([0.0, 0.3])) + jnp.sin(0.3 * jnp.pi)) < 1e-15


def test_four_waves_hold_the_solution():
    """½ sin π(x ± 2t) + ¼ sin 4π(x ± 2t), in the coordinates 2t − 1 and 2x − 1 of the network."""
    problem = zoo.get("wave").problem(0, width=4, interior=50, initial=20, boundary=20)
    k = np.pi * np.array([1.0, 1.0, 4.0, 4.0])
    frequencies, size = np.stack([k * np.array([1, -1, 1, -1]), k / 2], axis=1), np.array([0.5, 0.5, 0.25, 0.25])
    phase = frequencies.sum(axis=1)
    where = lambda p: [p.network.network.frequencies, p.network.network.sines, p.network.network.cosines]
    values = (frequencies, [size * np.cos(phase)], [size * np.sin(phase)])
    params = eqx.tree_at(where, problem.params, [jnp.asarray(value) for value in values])
    assert jax.jit(lambda problem, params: problem.loss(params))(problem, params) < 1e-26
    assert jax.jit(lambda problem, params: problem.loss(params))(problem, problem.params) > 1e-2


def test_the_first_frequencies_of_the_wave_go_beyond_those_of_its_solution():
    problem = zoo.get("wave").problem(0, interior=50, initial=20, boundary=20)
    greatest = np.abs(np.asarray(problem.params.network.network.frequencies)).max(axis=0)
    assert np.all(greatest > np.array([4 * np.pi, 2 * np.pi]))
    assert np.all(greatest < 1.2 * np.array([4 * np.pi, 2 * np.pi]))


@pytest.mark.usefixtures("quick_compilation")
def test_one_network_on_too_few_points_says_so():
    """Advection, c = 80: a network that fits its 60 points, and is wrong everywhere else."""
    problem = zoo.get("advection").problem(0, interior=60, initial=20, boundary=10, width=12, depth=2, frequency=20.0)
    solution = ng.solve(problem, ng.FullNGD(), steps=20, evaluate_every=20, progress=False)
    assert solution.loss < 1e-6
    assert solution.errors["l2"] > 0.5
    assert solution.diagnosis[0].startswith("points exhausted: the loss at other points")


def test_measurements_are_exact_or_have_the_noise_that_is_said():
    benchmark = zoo.get("inverse_burgers")
    sizes = {"width": 4, "depth": 1, "interior": 8, "sensors": 500}
    exact, noisy = benchmark.problem(0, **sizes), benchmark.problem(0, noise=0.02, **sizes)
    clean, data = (next(b for b in problem.features if b.name == "data") for problem in (exact, noisy))
    difference = np.asarray(data.inputs[1] - clean.inputs[1])
    assert abs(np.std(difference) - 0.02) < 0.002
    np.testing.assert_allclose(data.weights, 1 / 0.02**2)
