"""Whole steps: they lower the loss, are pure, compile once, and are the algorithm of the paper."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from tests.helpers import FAST, energy, poisson, relative

STEPS = 20
PROBLEMS = {"poisson": poisson, "energy": energy}
SOLVERS = {
    "gaussian": functools.partial(ng.NystromNGD, max_rank=60),
    "sampling": functools.partial(ng.NystromNGD, max_rank=60, test="sampling"),
    "uniform": functools.partial(ng.NystromNGD, max_rank=60, test="uniform"),
    "rpcholesky": functools.partial(ng.RPCholNGD, max_rank=60),
    "full": ng.FullNGD,
    "matrix-free": functools.partial(ng.MatrixFreeNGD, maxiter=60),
}
RUNS = [
    *[("poisson", name, "default") for name in SOLVERS],
    *[("poisson", name, "published") for name in ("gaussian", "rpcholesky", "full")],
    ("energy", "full", "default"),
    ("energy", "gaussian", "published"),
]


@functools.cache
def problem(name):
    return PROBLEMS[name]()


class Run:
    """Steps of a solver, with everything they reported and how often they were traced."""

    def __init__(self, case, solver, steps=STEPS):
        self.traces = 0

        def step(case, params, state):
            self.traces += 1
            return solver.step(case, params, state)

        self.step = jax.jit(step, compiler_options=FAST)
        self.start = case.params, solver.init(case, case.params, jax.random.key(0))
        params, state = self.start
        self.infos = []
        for _ in range(steps):
            params, state, info = self.step(case, params, state)
            self.infos.append(info)
        self.params, self.state = params, state

    def __getitem__(self, name):
        return np.asarray([getattr(info, name) for info in self.infos])


@functools.cache
def run(case, name, recipe):
    return Run(problem(case), SOLVERS[name](recipe=recipe))


@pytest.mark.parametrize(("case", "name", "recipe"), RUNS)
def test_the_loss_falls_at_every_step(case, name, recipe):
    done = run(case, name, recipe)
    loss, change = done["loss"], done["change"]
    assert np.all(change <= 0)
    assert np.all(np.diff(loss) < 0)
    np.testing.assert_allclose(loss[1:], (loss + change)[:-1], rtol=1e-9)
    assert loss[-1] < 0.1 * loss[0]
    assert np.all(done["accepted"])
    assert np.all((done["step_size"] > 0) & (done["step_size"] <= 1))
    assert np.all(done["mu"] > 0)


@pytest.mark.parametrize(("case", "name", "recipe"), RUNS)
def test_a_run_is_traced_once(case, name, recipe):
    assert run(case, name, recipe).traces == 1


@pytest.mark.parametrize(("recipe", "ranks"), [("default", 2), ("published", 4)])
def test_the_rank_changes_along_the_way(recipe, ranks):
    """What makes tracing once worth a test."""
    assert len(set(run("poisson", "gaussian", recipe)["rank"])) >= ranks


@pytest.mark.parametrize("name", ["gaussian", "rpcholesky", "full"])
def test_a_step_is_pure(name):
    """Same inputs, same outputs, to the last bit; and the inputs are left as they were."""
    done = run("poisson", name, "default")
    params, state = done.start
    before = np.asarray(ravel_pytree(params)[0]).copy()
    one, two = done.step(problem("poisson"), params, state), done.step(problem("poisson"), params, state)
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(before, ravel_pytree(params)[0])
    assert not np.array_equal(before, ravel_pytree(one[0])[0])


def test_acceleration_gets_further_in_the_same_number_of_steps():
    """Both are FullNGD with the same damping and search; only the default follows the curvature."""
    with_it, without = run("poisson", "full", "default"), Run(problem("poisson"), ng.FullNGD(acceleration=0.0))
    assert with_it["loss"][14] < 0.5 * without["loss"][14]
    assert np.all(without["acceleration"] == 0)
    assert np.all(with_it["acceleration"] > 0)


def test_published_preconditioners_walk_the_path_of_the_direct_solver():
    """With an exact inner solve all published optimizers are one algorithm; λ̂₁ and round-off part them later."""
    direct = run("poisson", "full", "published")["loss"][:5]
    for name in ("gaussian", "rpcholesky"):
        np.testing.assert_allclose(run("poisson", name, "published")["loss"][:5], direct, rtol=1e-3)


def test_the_first_published_step_is_the_paper_by_hand():
    """μ = max(10·eps·λ̂₁, 1e-4 L²), d = (G + μI)⁻¹∇L, α by halving until L(θ − αd) ≤ L − 1e-4 α ∇Lᵀd, in NumPy."""
    case = problem("poisson")
    theta, unravel = ravel_pytree(case.params)
    root = np.sqrt(np.concatenate([block.weights for block in case.features]))

    @functools.partial(jax.jit, compiler_options=FAST)
    def residuals(theta):
        return jnp.concatenate([r[:, 0] for r in case.residuals(unravel(theta)).values()])

    J = root[:, None] * np.asarray(jax.jit(jax.jacfwd(residuals.__wrapped__), compiler_options=FAST)(theta))
    loss = lambda theta: 0.5 * np.sum((root * np.asarray(residuals(theta))) ** 2)
    L, gradient = loss(theta), J.T @ (root * np.asarray(residuals(theta)))

    info = run("poisson", "full", "published").infos[0]
    top = np.linalg.norm(J, 2) ** 2
    assert 0.5 * top < float(info.largest) <= top * (1 + 1e-12)
    mu = max(10 * np.finfo(float).eps * float(info.largest), 1e-4 * L**2)
    np.testing.assert_allclose(info.mu, mu, rtol=1e-12)
    np.testing.assert_allclose(info.loss, L, rtol=1e-12)
    np.testing.assert_allclose(info.gradient_norm, np.linalg.norm(gradient), rtol=1e-10)

    d = np.linalg.solve(J.T @ J + mu * np.eye(theta.size), gradient)
    alpha = 1.0
    while loss(theta - alpha * d) > L - 1e-4 * alpha * gradient @ d:
        alpha /= 2
    assert float(info.step_size) == alpha
    done = run("poisson", "full", "published")
    new, _, _ = done.step(case, *done.start)
    assert relative(ravel_pytree(new)[0] - theta, -alpha * d) < 1e-8


def test_grid_search_and_momentum_lower_the_loss_too():
    solver = ng.FullNGD(search=ng.GridSearch(points=12), momentum=0.9, damping=ng.damping.LevenbergMarquardt())
    done = Run(problem("poisson"), solver, steps=10)
    assert np.all(done["change"] <= 0)
    assert done["loss"][-1] < 0.5 * done["loss"][0]
    assert done.traces == 1


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ng.NystromNGD(recipe="mine"), "unknown recipe 'mine': choose default or published"),
        (lambda: ng.FullNGD(gamma=0.0), "gamma must be a positive finite number, got 0"),
        (lambda: ng.RPCholNGD(gamma=-1.0), "gamma must be a positive finite number, got -1"),
        (lambda: ng.MatrixFreeNGD(gamma=float("nan")), "gamma must be a positive finite number, got nan"),
        (lambda: ng.NystromNGD(maxrank=3), "unknown option 'maxrank': did you mean max_rank"),
        (lambda: ng.NystromNGD(momentum=1.0), r"momentum must be a number in \[0, 1\), got 1"),
        (lambda: ng.NystromNGD(momentum=-0.1), r"momentum must be a number in \[0, 1\), got -0.1"),
        (lambda: ng.FullNGD(acceleration=-1.0), "acceleration must be a non-negative finite number, got -1"),
        (
            lambda: ng.FullNGD(gramian="dense"),
            "gramian must be one of 'auto', .*, got 'dense'",
        ),
        (lambda: ng.FullNGD(batch=0), "batch must be a positive integer or None, got 0"),
        (lambda: ng.NystromNGD(gramian="jacobian", batch=5), "batch does nothing with gramian='jacobian'"),
        (lambda: ng.NystromNGD(maxiter=0), "maxiter must be a positive integer, got 0"),
        (lambda: ng.NystromNGD(max_rank=0), "max_rank must be a positive integer or None, got 0"),
        (lambda: ng.NystromNGD(test="normal"), "test must be one of 'signs', .*, got 'normal'"),
    ],
)
def test_bad_options(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)
