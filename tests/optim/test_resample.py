"""Fresh points every step: drawn from the step's key, the same in every run, and compiled once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.optim import KernelNGD

square = ng.Box([0.0, 0.0], [1.0, 1.0])


def exact(x):
    return jnp.sin(x[0]) * jnp.exp(x[1])


def harmonic(u, x):
    return ng.laplacian(u, x)


def slope(u, x, normal, target):
    return ng.gradient(u, x) @ normal - target


def inside(key):
    return square.interior(20, key=key)


def rim(key):
    return square.boundary(12, key=key)


def outward(points):
    return points.normals, jax.vmap(lambda x, n: ng.gradient(exact, x) @ n)(points.x, points.normals)


def problem():
    return ng.LeastSquares(
        ng.MLP(2, 1, 6, 2, key=jax.random.key(0)),
        pde=ng.Residual(harmonic, inside),
        values=ng.Residual(lambda u, x: u(x) - exact(x), square.boundary(10, key=jax.random.key(5))),
        slopes=ng.Residual(slope, rim, data=outward, weight=2.0),
        exact=exact,
    )


PROBLEM = problem()
SOLVER = KernelNGD(acceleration=0.0, momentum=0.5)


def test_the_blocks_that_draw_have_fresh_points():
    one, other = (PROBLEM.resample(jax.random.key(seed)).features for seed in (1, 2))
    same = [np.array_equal(a.inputs[0], b.inputs[0]) for a, b in zip(one, other, strict=True)]
    assert same == [False, True, False]
    assert [f.weights.sum() for f in one] == pytest.approx([1.0, 4.0, 8.0])
    x, normals, targets = one[2].inputs
    assert np.all(square.on_boundary(x))
    np.testing.assert_allclose(np.sum(np.abs(normals), axis=1), 1.0)
    assert targets.shape == (12,)


def test_resampling_is_part_of_the_step_and_compiles_once():
    traces = 0

    @jax.jit
    def step(problem, params, state):
        nonlocal traces
        traces += 1
        return SOLVER.step(problem, params, state)

    params, state = PROBLEM.params, SOLVER.init(PROBLEM, PROBLEM.params, jax.random.key(0))
    losses = []
    for _ in range(3):
        _, state, info = step(PROBLEM, params, state)  # the same parameters: other points, another loss
        losses.append(float(info.loss))
    assert traces == 1
    assert len(set(losses)) == 3


def test_a_run_repeats_itself_and_goes_on_bit_for_bit():
    train = lambda steps, **more: ng.solve(PROBLEM, SOLVER, steps=steps, progress=False, **more)
    whole, half = train(6, key=jax.random.key(3)), train(3, key=jax.random.key(3))
    rest = train(3, resume=half)
    np.testing.assert_array_equal(whole.history.loss, rest.history.loss)
    for a, b in zip(jax.tree.leaves(whole.params), jax.tree.leaves(rest.params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_adam_draws_fresh_points_too():
    solver = ng.Adam(total=10, peak=1e-12, start=1e-12, end=1e-12)  # so slow that only the points change the loss
    losses = ng.solve(PROBLEM, solver, steps=3, progress=False).history.loss
    assert np.ptp(losses) > 1e-3 * losses[0]


def test_a_problem_without_draws_is_itself():
    fixed = ng.LeastSquares(
        ng.MLP(2, 1, 4, 1, key=jax.random.key(0)), pde=ng.Residual(harmonic, inside(jax.random.key(0)))
    )
    assert fixed.resample(jax.random.key(1)) is fixed


def test_data_of_fresh_points_must_follow_them():
    with pytest.raises(ValueError, match="function of the points"):
        ng.Residual(slope, rim, data=(jnp.zeros((12, 2)), jnp.zeros(12)))


@pytest.mark.slow
def test_it_learns_from_points_it_never_sees_twice():
    solution = ng.solve(PROBLEM, SOLVER, steps=60, progress=False, evaluate_every=60)
    assert solution.errors["l2"] < 2e-3  # six keys ended between 1.4e-4 and 1.1e-3
