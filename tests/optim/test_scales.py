"""Nothing that depends on units: residuals times a constant make the same steps, with every solver.

By a power of two nothing is rounded, and all is the same to the last bit. By a power of ten round-off differs, which
the weak directions of a system near 1/eps amplify: there γ is as large as it takes for 30 steps to be determined.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

KEY = jax.random.split(jax.random.key(0), 4)
SQUARE = ng.Box([0.0, 0.0], [1.0, 1.0])
STRETCH, VALUE = ng.Metric(lambda u, v, x: ng.gradient(v, x)), ng.Metric(lambda u, v, x: 10 * v(x))
STEPS = 30


def exact(x):
    return jnp.prod(jnp.sin(jnp.pi * x))


def load(x):
    return 2 * jnp.pi**2 * exact(x)


def network():
    return ng.MLP(2, 1, 8, 2, key=KEY[0])


def squares(s):
    """Residuals times s, which comes as data, so that all scales share one program."""
    inside, rim = SQUARE.interior(60, key=KEY[1]), SQUARE.boundary(30, key=KEY[2])
    factor = lambda points: jnp.full(len(points), s)
    return ng.LeastSquares(
        network(),
        pde=ng.Residual(lambda u, x, s: s * (ng.laplacian(u, x) + load(x)), inside, data=factor),
        boundary=ng.Residual(lambda u, x, s: s * (u(x) - exact(x)), rim, data=factor, weight=3.0),
        exact=exact,
        evaluation=SQUARE.interior(200, key=KEY[3]),
    )


def energy(s):
    """The energy and its metric times s², by the weights of the points."""
    scaled = lambda points: ng.Points(points.x, s**2 * points.weights)
    density = lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - load(x) * u(x)
    return ng.EnergyMinimization(
        network(),
        interior=ng.Energy(density, scaled(SQUARE.interior(200, rule="gauss")), metric=STRETCH),
        boundary=ng.Energy(lambda u, x: 50 * u(x) ** 2, scaled(SQUARE.boundary(40, rule="gauss")), metric=VALUE),
        exact=exact,
        evaluation=SQUARE.interior(200, key=KEY[3]),
    )


def elements(s):
    space, form = ng.fem.rectangle((6, 6), degree=2), ng.fem.Form(diffusion=s**2)
    return ng.FEINNEnergy(network(), space, form, load=lambda x: s**2 * load(x), dirichlet=0.0, exact=exact)


SOLVERS = {
    "nystrom": lambda **options: ng.NystromNGD(max_rank=40, **options),
    "rpcholesky": lambda **options: ng.RPCholNGD(max_rank=60, block=20, **options),
    "rpcholesky_30": lambda **options: ng.RPCholNGD(max_rank=30, block=10, maxiter=200, **options),
    "full": ng.FullNGD,
    "kernel": ng.KernelNGD,
}
GAMMA = {squares: 1e6, energy: 1e5, elements: 1e7}
# `Kernel` has no metric that couples its rows, and the nodal values of this network have 30 directions above round-off.
PAIRS = [(kind, name) for kind in (squares, energy) for name in ("nystrom", "rpcholesky", "full", "kernel")]
PAIRS += [(elements, name) for name in ("nystrom", "rpcholesky_30", "full")]


def run(problem, solver):
    return ng.solve(problem, solver, STEPS, progress=False, evaluate_every=STEPS)


def same_steps(one, other):
    np.testing.assert_array_equal(other.history.step_size, one.history.step_size)
    np.testing.assert_array_equal(other.history["rank"], one.history["rank"])


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(("kind", "name"), PAIRS, ids=lambda part: getattr(part, "__name__", part))
def test_scaled_residuals_make_the_same_steps(kind, name):
    solver = SOLVERS[name](gamma=GAMMA[kind])
    one = run(kind(1.0), solver)
    assert one.errors["h1"] < 0.1
    for s in (1e-6, 1e-3, 1e3, 1e6):
        other = run(kind(s), solver)
        same_steps(one, other)
        assert 0.5 < other.errors["h1"] / one.errors["h1"] < 2
        np.testing.assert_allclose(other.history.mu[:10], s**2 * one.history.mu[:10], rtol=1e-2)


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(("kind", "name"), [(squares, "nystrom"), (elements, "nystrom"), (energy, "rpcholesky")])
def test_by_a_power_of_two_all_is_the_same_to_the_last_bit(kind, name):
    one = run(kind(1.0), SOLVERS[name]())
    for power in (-20, 20):
        other = run(kind(2.0**power), SOLVERS[name]())
        same_steps(one, other)
        np.testing.assert_array_equal(other.history.loss, 4.0**power * one.history.loss)
        np.testing.assert_array_equal(other.history.mu, 4.0**power * one.history.mu)
        assert other.errors == one.errors
