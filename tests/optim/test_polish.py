"""`Polish` against the dense formulas, at the edges, and against natural gradients where these stall."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from tests.helpers import FAST, energy, flow, poisson, relative

KEY = jax.random.key(3)


def curved(scale=1.0):
    """Rosenbrock's valley, r = (1 − x, 10³ (y − x²)): its floor is a parabola, which no straight step follows."""
    return ng.ResidualFunction(
        lambda z: scale * jnp.stack([1 - z[0], 1e3 * (z[1] - z[0] ** 2)]), jnp.asarray([-1.2, 1.44])
    )


def stepped(problem, solver, steps):
    step = jax.jit(solver.step, compiler_options=FAST)
    params, state, infos = problem.params, solver.init(problem, problem.params, KEY), []
    for _ in range(steps):
        params, state, info = step(problem, params, state)
        infos.append(info)
    return params, state, infos


@pytest.mark.parametrize("make", [lambda: poisson(width=4), flow], ids=["scalar", "vector"])
def test_the_passes_are_those_of_the_dense_formula(make):
    """δ ← αd − S N(δ), with S from the singular values of A."""
    problem = make()
    theta, unravel = ravel_pytree(problem.params)
    G = ng.gramian(problem, problem.params, "jacobian")
    A, r = np.asarray(G.jacobian), np.asarray(problem.covector(problem.params))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    params, _, (info,) = stepped(problem, ng.Polish(start=1e-2, passes=3, decrease=0.01), 1)
    mu, alpha = float(info.mu), float(info.step_size)
    solve = lambda b: Vt.T @ (s / (s**2 + mu) * (U.T @ b))
    first, tried = -alpha * solve(r), []
    delta = first
    for _ in range(3):
        value = np.asarray(problem.covector(unravel(theta + delta)))
        tried.append((0.5 * (value @ value - r @ r), delta))
        delta = first - solve(value - r - A @ delta)
    change, best = min(tried, key=lambda pair: pair[0])
    assert relative(ravel_pytree(params)[0] - theta, best) < 1e-8
    np.testing.assert_allclose(info.change, change, rtol=1e-8)


def test_a_bent_valley_is_followed_in_a_few_steps():
    """All orders at once: one step to the end, where straight ones take dozens."""
    bent = stepped(curved(), ng.Polish(start=1e-20), 3)[2]
    straight = stepped(curved(), ng.Polish(start=1e-20, passes=1), 3)[2]
    assert bent[0].step_size == 1
    assert bent[-1].loss < 1e-20
    assert straight[-1].loss > 1.0


def test_steps_have_no_units():
    one, many = (stepped(curved(scale), ng.Polish(), 6) for scale in (1.0, 1e5))
    np.testing.assert_allclose(one[0], many[0], rtol=1e-6)


def test_the_loss_never_rises_and_a_solution_stays_one():
    infos = stepped(poisson(width=4), ng.Polish(), 12)[2]
    assert all(info.change <= 0 for info in infos)
    assert infos[-1].loss < 0.1 * infos[0].loss
    done = ng.ResidualFunction(lambda z: z, jnp.zeros(3))
    params, state, infos = stepped(done, ng.Polish(), 2)
    np.testing.assert_array_equal(params, np.zeros(3))
    assert infos[0].converged
    assert not infos[0].accepted
    assert state.relative == ng.Polish().start


def test_more_parameters_than_rows_and_directions_nobody_sees():
    problem = poisson(points=9, boundary=4)
    assert problem.num_rows < problem.num_parameters
    assert stepped(problem, ng.Polish(), 15)[2][-1].loss < 1e-12
    blind = ng.ResidualFunction(lambda z: jnp.stack([jnp.sin(z[0]), z[0] ** 3, z[0]]), jnp.ones(4))
    params = stepped(blind, ng.Polish(), 8)[0]
    assert abs(params[0]) < 1e-12
    np.testing.assert_array_equal(params[1:], np.ones(3))


def test_energies_and_too_little_memory_are_refused():
    with pytest.raises(ValueError, match=r"ng\.Polish is for sums of squares"):
        ng.solve(energy(), ng.Polish(), steps=1, progress=False)
    with pytest.raises(ValueError, match=r"factoring the rows of the Jacobian takes .* use ng\.NystromNGD"):
        ng.plan(ng.Polish(), poisson(), memory=1000)


def test_a_run_goes_on_bit_for_bit():
    problem = curved()
    whole, half = (ng.solve(problem, ng.Polish(), steps=steps, progress=False) for steps in (4, 2))
    again = ng.solve(problem, ng.Polish(), steps=2, resume=half, progress=False)
    np.testing.assert_array_equal(again.history.loss, whole.history.loss)
    assert jax.tree.all(jax.tree.map(np.array_equal, again.params, whole.params))


@pytest.mark.slow
def test_it_goes_on_where_natural_gradients_stall():
    """Sines in one dimension, 81 parameters: what 150 steps of the default leave, and 30 of these after it."""
    exact = lambda x: jnp.sin(3 * jnp.pi * x[0]) + jnp.sin(jnp.pi * x[0])
    force = lambda x: 9 * jnp.pi**2 * jnp.sin(3 * jnp.pi * x[0]) + jnp.pi**2 * jnp.sin(jnp.pi * x[0])
    line = ng.Box([0.0], [1.0])
    problem = ng.LeastSquares(
        ng.MLP(1, 1, 7, 2, activation=jnp.sin, frequency=4.0, key=jax.random.key(0)),
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) + force(x), line.interior(200, key=jax.random.key(1))),
        ends=ng.Residual(lambda u, x: u(x), jnp.asarray([[0.0], [1.0]]), weight=1e4),
        exact=exact,
    )
    before = ng.solve(problem, ng.FullNGD(), steps=150, progress=False)
    after = ng.solve(problem, ng.Polish(start=1e-14), steps=30, params=before.params, progress=False)
    assert after.history.loss[-1] < 1e-2 * before.history.loss[-1]
    assert after.errors["l2"] < 0.3 * before.errors["l2"]


def test_polish_takes_over_where_the_first_solver_stalls():
    """Within one run: steps of the first one until it stalls, then those of `Polish`; bit for bit if it is resumed."""
    problem, solver = curved(), ng.Polished(ng.FullNGD(damping=ng.damping.Spectral(1e13)), window=4, fall=0.9)
    whole = ng.solve(problem, solver, steps=30, progress=False)
    second = whole.history.inner_iterations > 0  # Cholesky has none
    taken = int(np.argmax(second))
    assert 4 <= taken < 30
    assert np.all(second[taken:])
    loss = whole.history.loss
    assert loss[taken - 1] > 0.9 * loss[taken - 5]
    assert loss[-1] < 1e-6 * loss[taken - 1]
    half = ng.solve(problem, solver, steps=taken + 1, progress=False)
    again = ng.solve(problem, solver, steps=29 - taken, resume=half, progress=False)
    np.testing.assert_array_equal(again.history.loss, loss)


def test_what_cannot_be_taken_over_from_is_refused():
    with pytest.raises(ValueError, match="Polished takes a natural gradient such as"):
        ng.Polished(ng.Adam())
    with pytest.raises(ValueError, match="factoring the rows of the Jacobian"):
        ng.plan(ng.Polished(ng.NGD()), poisson(), memory=1000)
