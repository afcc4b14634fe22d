"""Weights that balance the blocks: their formula, that units do not matter, and that every solver can have them."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.optim import balance
from natgrad.plan import plan
from tests.helpers import FAST, dense_gramian, relative

SQUARE = ng.Box([0.0, 0.0], [1.0, 1.0])
pytestmark = pytest.mark.usefixtures("quick_compilation")


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def poisson(u, x, units=1.0):
    """−Δu = f in any units."""
    return units * (ng.laplacian(u, x) + 2 * jnp.pi**2 * exact(x))


def fixed(u, x, units=1.0):
    """u = exact in any units."""
    return units * (u(x) - exact(x))


def problem(pde=1.0, boundary=1.0, weight="auto", weights=None):
    """Two blocks with residuals in the given units, which are data, so that one program has all of them."""
    units = lambda value: lambda points: jnp.full(len(points), value)
    inside = SQUARE.interior(30, key=jax.random.key(1))
    rim = SQUARE.boundary(12, key=jax.random.key(2))
    return ng.LeastSquares(
        ng.MLP(2, 1, 5, 1, key=jax.random.key(0)),
        weights=weights,
        pde=ng.Residual(poisson, inside, data=units(pde)),
        boundary=ng.Residual(fixed, rim, weight=weight, data=units(boundary)),
    )


def spectral(**options):
    return ng.FullNGD(damping=ng.damping.Guarded(ng.damping.Spectral(1e6)), **options)


def steps(problem, solver, count, every=2):
    """Parameters, state and infos of some steps by a loop of one's own."""
    solver = ng.Balanced(solver, every=every)
    params, told = problem.params, []
    state, step = solver.init(problem, params, jax.random.key(0)), jax.jit(solver.step, compiler_options=FAST)
    for _ in range(count):
        params, state, info = step(problem, params, state)
        told.append(info)
    assert step._cache_size() == 1
    return params, state, told


def block_traces(problem, params):
    """tr G_b from the dense Gramians of the blocks."""
    alone = lambda block: eqx.tree_at(lambda p: p.features, problem, (block,))
    return np.asarray([np.trace(dense_gramian(alone(block), params)) for block in problem.features])


def test_traces_are_those_of_the_dense_gramians(monkeypatch):
    made, key = problem(), jax.random.key(0)
    truth = block_traces(made, made.params)
    found = np.asarray(balance.traces(made, made.params, key))
    assert np.all((truth / 2 < found) & (found < 2 * truth))
    monkeypatch.setattr(balance, "PROBES", 4000)
    np.testing.assert_allclose(balance.traces(made, made.params, key), truth, rtol=0.1)


def test_shares_are_equal_at_the_start():
    """With the weights found, both blocks have the share of the one whose weight is a number."""
    made = problem()
    state = ng.Balanced(spectral()).init(made, made.params, jax.random.key(0))
    assert state.weights[0] == 1
    shares = balance.traces(made.with_weights(state.weights), made.params, state.key)
    assert relative(shares[1], shares[0]) < 1e-12


def test_a_number_stays_and_several_are_averaged():
    rim = SQUARE.boundary(12, key=jax.random.key(2))
    made = ng.LeastSquares(
        ng.MLP(2, 1, 5, 1, key=jax.random.key(0)),
        pde=ng.Residual(poisson, SQUARE.interior(30, key=jax.random.key(1)), weight=3.0),
        left=ng.Residual(fixed, rim, weight="auto"),
        right=ng.Residual(fixed, rim, weight=7.0),
    )
    state = ng.Balanced(spectral()).init(made, made.params, jax.random.key(0))
    assert (state.weights[0], state.weights[2]) == (3, 7)
    shares = balance.traces(made.with_weights(state.weights), made.params, state.key)
    assert relative(shares[1], (shares[0] + shares[2]) / 2) < 1e-12


@pytest.mark.parametrize("units", [{"boundary": 1024.0}, {"pde": 2.0**-7, "boundary": 2.0**-7}, {"pde": 64.0}])
@pytest.mark.parametrize("solver", [spectral, partial(ng.NystromNGD, max_rank=10, damping=ng.damping.Spectral(1e4))])
def test_units_do_not_matter(units, solver):
    """Of one block or of all of them: steps, ranks and inner iterations are the same, and the rest but for round-off
    (powers of two round nothing; another order of operations may)."""
    params, state, told = steps(problem(), solver(), 6)
    others, theirs, infos = steps(problem(**units), solver(), 6)
    assert len({float(info.weights["boundary"]) for info in told}) == 3
    for ours, info in zip(told, infos, strict=True):
        assert (ours.step_size, ours.rank, ours.inner_iterations) == (info.step_size, info.rank, info.inner_iterations)
    assert relative(ravel_pytree(others)[0], ravel_pytree(params)[0]) < 1e-7
    times = (units.get("pde", 1.0) / units["boundary"]) ** 2 if "boundary" in units else units["pde"] ** 2
    np.testing.assert_allclose(theirs.weights[1], times * state.weights[1], rtol=1e-7)


def test_any_other_units():
    params, _, told = steps(problem(), spectral(), 4)
    others, _, infos = steps(problem(boundary=1e-3), spectral(), 4)
    assert [float(info.step_size) for info in told] == [float(info.step_size) for info in infos]
    assert relative(ravel_pytree(others)[0], ravel_pytree(params)[0]) < 1e-6


def test_weights_change_every_so_many_steps_by_the_geometric_mean():
    made = problem()
    _, state, told = steps(made, spectral(), 4, every=3)
    weights = [float(info.weights["boundary"]) for info in told]
    assert weights[0] == weights[1] == weights[2] != weights[3] == state.weights[1]
    before, _, _ = steps(made, spectral(), 3, every=3)
    shares = balance.traces(made, before, state.key)
    np.testing.assert_allclose(weights[3], np.sqrt(weights[0] * shares[0] / shares[1]), rtol=1e-10)


def test_all_blocks_is_all_but_the_first():
    one, other = problem(), problem(weight=1.0, weights="auto")
    assert one.auto == other.auto == problem(weights="auto").auto == ("boundary",)


SOLVERS = {
    "kernel": lambda: ng.KernelNGD(),
    "adam": lambda: ng.Adam(total=10),
    "lbfgs": lambda: ng.LBFGS(),
    "bfgs": lambda: ng.BFGS(),
    "ssbroyden": lambda: ng.SSBroyden(),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver(name):
    """The loss in the history is the weighted one; quasi-Newton methods keep the weights of the start."""
    made = problem()
    solution = ng.solve(made, ng.Balanced(SOLVERS[name]()), 22, progress=False)
    weights = solution.history.weights
    assert set(weights) == {"pde", "boundary"}
    assert np.all(weights["pde"] == 1)
    assert len(set(weights["boundary"])) == (2 if name in ("kernel", "adam") else 1)
    last = made.with_weights({name: values[-1] for name, values in weights.items()})
    np.testing.assert_allclose(solution.loss, last.loss(solution.params), rtol=1e-8)
    assert solution.loss < float(last.loss(made.params))


def test_solve_is_the_loop_with_the_balanced_solver():
    made = problem()
    params, _, told = steps(made, spectral(), 5, every=2)
    solver = ng.Balanced(spectral(), every=2)
    whole = ng.solve(made, solver, 5, progress=False, key=jax.random.key(0))
    np.testing.assert_allclose(whole.history.weights["boundary"], [info.weights["boundary"] for info in told])
    assert relative(ravel_pytree(whole.params)[0], ravel_pytree(params)[0]) < 1e-8
    part = ng.solve(made, solver, 2, progress=False, key=jax.random.key(0))
    rest = ng.solve(made, solver, 3, progress=False, resume=part)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), rest.params, whole.params))
    assert [r["weights"] for r in rest.history.records] == [r["weights"] for r in whole.history.records]


def test_solve_balances_by_itself():
    made = problem()
    solution = ng.solve(made, spectral(), 3, progress=False)
    shares = balance.traces(made, made.params, solution.state.key)
    np.testing.assert_allclose(solution.history.weights["boundary"], 3 * [shares[0] / shares[1]], rtol=1e-12)


def test_a_block_without_a_share_keeps_its_weight():
    """One that sees no parameter has no trace."""
    made = ng.LeastSquares(
        ng.MLP(2, 1, 3, 1, key=jax.random.key(0)),
        pde=ng.Residual(fixed, SQUARE.interior(9, key=jax.random.key(1))),
        nothing=ng.Residual(lambda u, x: x[0], SQUARE.interior(9, key=jax.random.key(1)), weight="auto"),
    )
    state = ng.Balanced(spectral()).init(made, made.params, jax.random.key(0))
    np.testing.assert_array_equal(state.weights, [1.0, 1.0])


def test_memory_is_planned_for_the_solver_inside():
    solver, budget = ng.NystromNGD(max_rank=30), 10**9
    fitted = plan(ng.Balanced(solver), problem(), budget)
    assert fitted == ng.Balanced(plan(solver, problem(), budget))
    assert fitted.solver.gramian == "assembled"
    with pytest.raises(ValueError, match="more than the 1 kB it may"):
        plan(ng.Balanced(solver), problem(), 1000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ng.Balanced(ng.Balanced(ng.FullNGD())), "balanced already"),
        (lambda: ng.Balanced(3), "takes a solver such as ng.NystromNGD.., got int"),
        (lambda: ng.Balanced(ng.FullNGD(), every=-1), "every must be a non-negative integer or None, got -1"),
        (lambda: ng.Balanced(ng.FullNGD(), every=2.5), "every must be a non-negative integer or None, got 2.5"),
        (lambda: ng.Balanced(ng.LBFGS(), 5), "LBFGS compares the gradients of two steps.* every=0"),
        (lambda: ng.solve(problem(weight=2.0), ng.Balanced(ng.FullNGD()), 1), "nothing to balance"),
        (lambda: ng.FullNGD().step(problem(), problem().params, None), "'boundary' is \"auto\", which ng.solve and"),
        (lambda: ng.Adam().step(problem(), problem().params, None), "'boundary' is \"auto\", which ng.solve and"),
        (lambda: ng.BFGS().step(problem(), problem().params, None), "'boundary' is \"auto\", which ng.solve and"),
    ],
)
def test_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)
