"""The loss at independent points: where they lie, which blocks have it, and what it is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.problem.validation import LEAST, MOST

SQUARE = ng.Box([0.0, 0.0], [1.0, 2.0])
KEY = jax.random.key(3)
EXACT = lambda x: jnp.sin(x[0]) * x[1]
RESIDUAL = lambda u, x, *data: u(x) - EXACT(x)


def problem(**blocks):
    return ng.LeastSquares(ng.MLP(2, 1, 4, 1, key=jax.random.key(0)), **blocks)


def inside(n=40, **how):
    return SQUARE.interior(n, **(how or {"key": KEY}))


def by_hand(problem, residual=lambda u, x: u(x) - EXACT(x)):
    """½ ∫ r² of the network as it is, on many points."""
    points = SQUARE.interior(200_000, key=jax.random.key(99))
    u = problem.network(problem.params)
    return 0.5 * float(points.integrate(jax.vmap(lambda x: residual(u, x) ** 2)(points.x)))


@pytest.mark.parametrize("rule", ["monte-carlo", "sobol", "gauss"])
def test_it_is_the_integral_of_the_residual_at_other_points(rule):
    how = {} if rule == "gauss" else {"key": KEY}
    built = problem(pde=ng.Residual(RESIDUAL, inside(rule=rule, **how), weight=3.0))
    found = built.validate(built.params)
    assert set(found) == {"validation"}
    assert float(found["validation"]) == pytest.approx(3 * by_hand(built), rel=0.15)
    (block,) = built.validation.blocks
    assert len(block.weights) == LEAST
    points = lambda block: {tuple(x) for x in np.asarray(block.inputs[0])}
    assert not points(block) & points(built.features[0])
    assert not points(block) & {tuple(x) for x in np.asarray(inside(LEAST, key=KEY).x)}


def test_as_many_points_as_the_block_within_bounds():
    sizes = [len(problem(pde=ng.Residual(RESIDUAL, inside(n))).validation.blocks[0].weights) for n in (2_500, 30_000)]
    assert sizes == [2_500, MOST]


def test_it_scales_with_the_residual():
    one, thousand = (problem(pde=ng.Residual(lambda u, x, c=c: c * RESIDUAL(u, x), inside())) for c in (1.0, 1000.0))
    small, large = (float(p.validate(p.params)["validation"]) for p in (one, thousand))
    assert large == pytest.approx(1e6 * small, rel=1e-12)


def test_data_of_the_points_follow_them():
    normal = lambda u, x, n: n @ ng.gradient(u, x) - x[0]
    rim = SQUARE.boundary(30, key=KEY)
    built = problem(side=ng.Residual(normal, rim, data=lambda points: points.normals))
    (block,) = built.validation.blocks
    x, normals = map(np.asarray, block.inputs)
    assert (np.where(normals[:, :1] != 0, np.isin(x[:, :1], (0, 1)), np.isin(x[:, 1:], (0, 2)))).all()
    assert float(built.validate(built.params)["validation"]) > 0


@pytest.mark.parametrize(
    "block",
    [
        lambda: ng.Residual(RESIDUAL, inside().x),
        lambda: ng.Residual(RESIDUAL, inside(), data=jnp.ones(40)),
        lambda: ng.Residual(RESIDUAL, inside(), data=lambda points: jnp.ones(40)),
        lambda: ng.Residual(RESIDUAL, inside(), data=lambda points: points.x[:, 0] * jnp.ones(40)),
    ],
    ids=["points by hand", "data by hand", "data of one size", "data that fail elsewhere"],
)
def test_blocks_that_cannot_be_drawn_again_are_left_out_on_both_sides(block):
    alone = problem(sensors=block())
    assert alone.validation is None
    assert not alone.validated
    assert alone.validate(alone.params) == {}
    both = problem(sensors=block(), pde=ng.Residual(RESIDUAL, inside()))
    found = both.validate(both.params)
    np.testing.assert_allclose(found["training"], both.losses(both.params)["pde"])
    assert float(found["validation"]) == pytest.approx(by_hand(both), rel=0.15)


def test_fresh_points_are_validated_by_other_keys():
    points = SQUARE.interior(30, key=jax.random.key(1), fresh=True)
    built = problem(pde=ng.Residual(RESIDUAL, points, data=lambda points: points.x[:, 0]))
    (block,) = built.validation.blocks
    assert len(block.weights) == LEAST
    assert len({tuple(x) for x in np.asarray(block.inputs[0])}) == len(block.weights)
    np.testing.assert_allclose(block.inputs[1], block.inputs[0][:, 0])
    np.testing.assert_allclose(jnp.sum(block.weights), SQUARE.measure)
    assert float(built.validate(built.params)["validation"]) == pytest.approx(by_hand(built), rel=0.15)


def quadratic(points, density=lambda u, x: u(x) ** 2 - u(x), **options):
    network = ng.MLP(2, 1, 4, 1, key=jax.random.key(0))
    return ng.EnergyMinimization(network, interior=ng.Energy(density, points, metric=ng.metrics.L2(), **options))


def test_what_has_no_points_to_draw_again_has_no_validation():
    function = ng.ResidualFunction(lambda theta: theta**2 - 1, jnp.ones(3))
    own = quadratic(inside(9).x)
    fed = lambda data: quadratic(inside(9), lambda u, x, f: u(x) ** 2 - f * u(x), data=data)
    for built in (function, own, fed(jnp.ones(9))):
        assert not built.validated
        assert built.validate(built.params) == {}
    assert "elsewhere" in fed(lambda points: jnp.ones(len(points))).validate(built.params)


def test_the_size_of_an_energy_is_compared_with_that_at_other_points():
    """1 for a density that its points resolve; far above where it vanishes at these alone."""
    points = SQUARE.interior(64, rule="gauss")
    built = quadratic(points)
    assert float(built.validate(built.params)["elsewhere"]) == pytest.approx(1.0, abs=0.05)
    comb = lambda u, x: -1e-3 - 1e3 * jnp.min(jnp.sum((x - points.x) ** 2, axis=1)) + 0 * u(x)
    built = quadratic(points, comb)
    values = jax.vmap(lambda x: abs(comb(lambda x: 0.0, x)))
    (block,) = built.elsewhere.blocks
    own, other = points.weights @ values(points.x), block.weights @ values(block.inputs[0])
    assert other > 10 * own
    assert float(built.validate(built.params)["elsewhere"]) == pytest.approx(float(other / own), rel=1e-10)


def test_a_peak_between_the_points_is_seen():
    """A residual that is zero at every point of training, and a spike elsewhere."""
    points = inside(20)
    spike = lambda u, x: 0 * u(x) + jnp.exp(-((x[0] - 0.5) ** 2) / 1e-3) * jnp.min(jnp.sum((x - points.x) ** 2, axis=1))
    built = problem(pde=ng.Residual(spike, points))
    assert float(built.loss(built.params)) == 0
    assert float(built.validate(built.params)["validation"]) == pytest.approx(by_hand(built, spike), rel=0.3)
