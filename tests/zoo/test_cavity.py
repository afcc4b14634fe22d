"""The lid-driven cavity: its reference against refinement and known numbers, its network against the walls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial import chebyshev

import natgrad as ng
from natgrad import zoo
from natgrad.zoo import _reference
from natgrad.zoo import cavity as problem_file

S = np.linspace(0.05, 0.95, 19)
TOLERANCES = [
    (100.0, "parabola", 1e-7),
    (100.0, "constant", 1e-5),
    (1000.0, "parabola", 1e-5),
    (1000.0, "constant", 4e-4),
]
LID = {"parabola": 4 * S * (1 - S), "constant": np.ones_like(S)}


def line(x, y):
    return jnp.asarray(np.stack(np.broadcast_arrays(x, y), axis=1).astype(float))


def test_derivatives_of_the_stream_function_are_those_of_nested_ones():
    psi = lambda x: jnp.sin(2 * x[0] + x[1] ** 2) * jnp.exp(x[1])
    bend = lambda x: ng.laplacian(psi, x)
    x = jnp.array([0.3, 0.8])
    wanted = [*jax.grad(psi)(x), *jax.grad(bend)(x), ng.laplacian(bend, x)]
    np.testing.assert_allclose(problem_file.slopes(psi, x), wanted, rtol=1e-12)


@pytest.mark.parametrize("lid", ["parabola", "constant"])
def test_walls_have_their_velocity(lid):
    velocity = jax.jit(jax.vmap(lambda x: problem_file.turned(jax.grad(_reference.walls(100.0, lid))(x))))
    top = velocity(line(S, 1.0))
    np.testing.assert_allclose(top, np.stack([LID[lid], 0 * S], axis=1), atol=1e-11)
    for side in (line(0.0, S), line(1.0, S), line(S, 0.0)):
        np.testing.assert_allclose(velocity(side), 0, atol=1e-11)


def test_tables_of_the_walls_are_their_derivatives():
    walls, x = _reference.walls(50.0, "constant"), np.array([0.2, 0.7])
    np.testing.assert_allclose(walls.slopes(x[None])[0], jax.jit(lambda x: problem_file.slopes(walls, x))(x), rtol=1e-8)


def test_the_singular_terms_solve_the_equation_near_the_corners():
    """What is left of ν Δ²ψ − u·∇Δψ is O(1/r) at a constant lid, where the terms of the equation are O(r⁻³)."""
    reynolds = 100.0
    for corner in (0.0, 1.0):
        for r in (1e-2, 1e-3):
            x = np.array([[abs(corner - 0.6 * r), 1 - 0.8 * r]])
            (d,) = _reference.walls(reynolds, "constant").slopes(x)
            left = d[4] / reynolds - (d[1] * d[2] - d[0] * d[3])
            assert abs(left) < 10 * r * np.hypot(*d[:2]) * np.hypot(*d[2:4])


def test_the_reference_is_a_flow_between_its_walls():
    """The walls' velocities; in the middle ∇·u = 0 and the equation of the vorticity."""
    velocity = _reference.cavity(100.0, "parabola")
    top = jax.jit(jax.vmap(velocity))
    np.testing.assert_allclose(top(line(S, 1.0)), np.stack([LID["parabola"], 0 * S], axis=1), atol=1e-11)
    np.testing.assert_allclose(top(line(1.0, S)), 0, atol=1e-11)

    n, half = 14, 0.1  # interpolated in a patch around (0.5, 0.7)
    nodes = chebyshev.chebpts1(n)
    grid = np.stack(np.meshgrid(0.5 + half * nodes, 0.7 + half * nodes, indexing="ij"), axis=-1)
    to_coefficients = np.linalg.inv(chebyshev.chebvander(nodes, n - 1))
    values = np.asarray(top(jnp.asarray(grid.reshape(-1, 2)))).reshape(n, n, 2)
    u, v = np.einsum("ai,bj,ijk->kab", to_coefficients, to_coefficients, values)
    partial = lambda c, i, j=0: np.pad(
        chebyshev.chebder(chebyshev.chebder(c, i, half**-1, axis=0), j, half**-1, axis=1), ((0, i), (0, j))
    )
    vorticity = partial(v, 1) - partial(u, 0, 1)
    at = lambda c: chebyshev.chebval2d(0.1, -0.2, c)
    diffusion = at(partial(vorticity, 2) + partial(vorticity, 0, 2)) / 100
    inertia = at(u) * at(partial(vorticity, 1)) + at(v) * at(partial(vorticity, 0, 1))
    assert abs(at(partial(u, 1) + partial(v, 0, 1))) < 1e-8
    assert abs(diffusion - inertia) < 1e-4 * abs(inertia)


@pytest.mark.slow
@pytest.mark.parametrize(("reynolds", "lid", "tolerance"), TOLERANCES)
def test_the_reference_agrees_with_a_finer_one(reynolds, lid, tolerance):
    points = jnp.asarray(problem_file.GRID[::7])
    coarse, fine = (jax.vmap(_reference.cavity(reynolds, lid, modes))(points) for modes in (48, 64))
    assert np.linalg.norm(coarse - fine) < tolerance * np.linalg.norm(fine)


@pytest.mark.slow
def test_the_reference_has_the_known_extremes():
    """Botella and Peyret (1998), Re = 1000 with a constant lid, on the lines through the centre."""
    velocity = jax.jit(jax.vmap(_reference.cavity(1000.0, "constant")))
    s = np.linspace(0, 1, 4001)[1:-1]
    u, v = velocity(line(0.5, s))[:, 0], velocity(line(s, 0.5))[:, 1]
    np.testing.assert_allclose([-u.min(), v.min(), v.max()], [0.3885698, -0.5270771, 0.3769447], rtol=1e-4)


def test_the_network_keeps_its_walls_and_has_no_divergence():
    problem = zoo.get("cavity").problem(0, width=4, depth=1, interior=10)
    flow = problem.network(problem.params)
    velocity, gradient = jax.jit(jax.vmap(flow)), jax.jit(jax.jacfwd(flow))
    np.testing.assert_allclose(velocity(line(S, 1.0)), np.stack([LID["parabola"], 0 * S], axis=1), atol=1e-11)
    np.testing.assert_allclose(velocity(line(0.0, S)), 0, atol=1e-11)
    assert abs(jnp.trace(gradient(jnp.array([0.4, 0.6])))) < 1e-11


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((100.0, "round"), "lid of cavity must be one of parabola, constant, got 'round'"), ((1e5, "parabola"), "≤ 1500")],
)
def test_what_the_reference_does_not_resolve_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        _reference.cavity(*arguments)
