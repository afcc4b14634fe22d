"""`Normalized` against the composition written by hand: values, derivatives, parameters, and what its trace holds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad import calculus
from tests.helpers import relative

DOMAINS = {
    "box": (ng.Box([0, 100], [250, 180]), [0, 100], [250, 180]),
    "interval": (ng.Interval(-3, 5), [-3], [5]),
    "ball": (ng.Ball([10, -20, 0], 5), [5, -25, -5], [15, -15, 5]),
    "polygon": (ng.Polygon([(0, 0), (30, 0), (30, 10), (10, 10), (10, 20), (0, 20)]), [0, 0], [30, 20]),
    "space-time": (ng.Interval(0, 1800) * ng.Ball([0, 0], 0.5), [0, -0.5, -0.5], [1800, 0.5, 0.5]),
}


def mlp(dim, outputs=1, **options):
    return ng.MLP(dim, outputs, 7, 2, key=jax.random.key(0), **options)


def by_hand(network, lower, upper, scale):
    lower, upper = jnp.asarray(lower, float), jnp.asarray(upper, float)
    return lambda x: jnp.asarray(scale) * network(2 * (x - lower) / (upper - lower) - 1)


@pytest.mark.parametrize("name", DOMAINS)
def test_the_box_around_a_domain_becomes_the_unit_one(name):
    domain, lower, upper = DOMAINS[name]
    assert domain.bounds() == (tuple(map(float, lower)), tuple(map(float, upper)))
    seen = ng.Normalized(lambda z: z, domain)
    np.testing.assert_allclose(seen(jnp.asarray(lower, float)), -1.0)
    np.testing.assert_allclose(seen(jnp.asarray(upper, float)), 1.0)
    x = domain.interior(50, key=jax.random.key(1)).x
    assert np.abs(jax.vmap(seen)(x)).max() <= 1


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_derivatives_are_those_of_the_composition(name, scale):
    domain, lower, upper = DOMAINS[name]
    net = mlp(domain.dim)
    u, v = ng.Normalized(net, domain, scale), by_hand(net, lower, upper, scale)
    x = domain.interior(1, key=jax.random.key(2)).x[0]
    assert u(x).shape == ()
    for ours, theirs in zip(ng.value_gradient_laplacian(u, x), (v(x), jax.grad(v)(x), None), strict=True):
        if theirs is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_allclose(ng.laplacian(u, x), jnp.trace(jax.hessian(v)(x)), rtol=1e-11)
    np.testing.assert_allclose(ng.partial(u, x, 0, 0), jax.hessian(v)(x)[0, 0], rtol=1e-11)


def test_each_component_has_its_size():
    box, lower, upper = DOMAINS["box"]
    net = mlp(2, 2)
    u, v = ng.Normalized(net, box, scale=(3.0, 1e-3)), by_hand(net, lower, upper, (3.0, 1e-3))
    x = jnp.array([17.0, 150.0])
    np.testing.assert_allclose(u(x), v(x), rtol=1e-12)
    np.testing.assert_allclose(ng.gradient(u, x), jax.jacfwd(v)(x), rtol=1e-12)
    np.testing.assert_allclose(ng.divergence(u, x), jnp.trace(jax.jacfwd(v)(x)), rtol=1e-12)


def test_parameters_are_those_of_the_network():
    box, lower, upper = DOMAINS["box"]
    net = mlp(2)
    u = ng.Normalized(net, box, scale=30.0)
    assert ng.num_parameters(u) == ng.num_parameters(net)
    theta, unravel = ravel_pytree(eqx.filter(u, eqx.is_inexact_array))
    np.testing.assert_array_equal(theta, ravel_pytree(eqx.filter(net, eqx.is_inexact_array))[0])
    x, rest = jnp.array([17.0, 150.0]), eqx.filter(u, eqx.is_inexact_array, inverse=True)
    inner = lambda theta: eqx.combine(unravel(theta), rest)
    ours = jax.grad(lambda theta: ng.laplacian(inner(theta), x))(theta)
    theirs = jax.grad(lambda theta: jnp.trace(jax.hessian(by_hand(inner(theta).network, lower, upper, 30.0))(x)))(theta)
    assert relative(ours, theirs) < 1e-11


def test_it_is_hashable_and_compiles_once():
    box = DOMAINS["box"][0]
    traces = 0

    @jax.jit
    def value(u, x):
        nonlocal traces
        traces += 1
        return u(x)

    for scale in (2.0, 2.0):
        value(ng.Normalized(mlp(2), box, scale), jnp.ones(2))
    assert traces == 1


def test_leaves_are_saved_and_loaded(tmp_path):
    box = DOMAINS["box"][0]
    u = ng.Normalized(mlp(2), box, scale=3.0)
    eqx.tree_serialise_leaves(tmp_path / "u.eqx", u)
    other = ng.Normalized(ng.MLP(2, 1, 7, 2, key=jax.random.key(5)), box, scale=3.0)
    x = jnp.array([17.0, 150.0])
    assert other(x) != u(x)
    assert eqx.tree_deserialise_leaves(tmp_path / "u.eqx", other)(x) == u(x)


def test_single_precision_stays_single():
    u = ng.Normalized(mlp(2, 2, dtype=jnp.float32), DOMAINS["box"][0], scale=(3.0, 5.0))
    assert u(jnp.ones(2, jnp.float32)).dtype == jnp.float32
    assert ng.laplacian(u, jnp.ones(2, jnp.float32)).dtype == jnp.float32


def primitives(jaxpr):
    """The names of all operations, those of inner functions too."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            if hasattr(inner := getattr(value, "jaxpr", value), "eqns"):
                yield from primitives(inner)


@pytest.mark.parametrize("together", [False, True])
def test_the_forward_pass_goes_through_it_by_the_chain_rule(monkeypatch, together):
    """The trace of the Laplacian has the products of the bare network's, and no equation is differentiated twice."""

    def refuse(*_):
        raise AssertionError("an equation went to nested jvps")

    monkeypatch.setattr(calculus.laplace.Laplacian, "other", refuse)
    net = mlp(2)
    u = ng.Normalized(net, DOMAINS["box"][0], scale=3.0)

    def counts(u):
        if not together:
            names = list(primitives(jax.make_jaxpr(lambda x: ng.value_gradient_laplacian(u, x))(jnp.ones(2)).jaxpr))
        else:
            with calculus.products_together():
                names = list(primitives(jax.make_jaxpr(lambda x: ng.value_gradient_laplacian(u, x))(jnp.ones(2)).jaxpr))
        return {name: names.count(name) for name in ("dot_general", "tanh")}, len(names)

    (bare, size), (ours, ours_size) = counts(net), counts(u)
    assert ours == bare
    assert ours_size - size < 20


def test_fields_have_sizes_of_their_own():
    box = DOMAINS["box"][0]
    flow = ng.Fields(u=ng.Normalized(mlp(2, 2), box, scale=0.1), p=ng.Normalized(mlp(2), box, scale=1e5))
    x = jnp.array([17.0, 150.0])
    np.testing.assert_allclose(flow.p(x), 1e5 * ng.Normalized(mlp(2), box)(x), rtol=1e-12)
    assert flow(x).shape == (3,)


def test_hard_boundaries_go_around_and_inside():
    line = ng.Interval(0, 40)
    net, x = mlp(1), jnp.array([10.0])
    around = ng.HardBoundary(ng.Normalized(net, line, 3.0), distance=lambda x: x[0] * (40 - x[0]))
    inside = ng.Normalized(ng.HardBoundary(net, distance=lambda z: 1 - z[0] ** 2), line, 3.0)
    np.testing.assert_allclose(around(x), 300 * 3 * net(jnp.array([-0.5])), rtol=1e-12)
    np.testing.assert_allclose(inside(x), 3 * 0.75 * net(jnp.array([-0.5])), rtol=1e-12)
    v = by_hand(lambda z: (1 - z[0] ** 2) * net(z), [0], [40], 3.0)
    np.testing.assert_allclose(ng.laplacian(inside, x), jax.hessian(v)(x)[0, 0], rtol=1e-11)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ng.Normalized(mlp(2), ng.Box([0, 0], [1, 1]), scale=0), "scale must be positive and finite"),
        (lambda: ng.Normalized(mlp(2), ng.Box([0, 0], [1, 1]), scale=-2.0), "scale must be positive and finite"),
        (lambda: ng.Normalized(mlp(2), ng.Box([0, 0], [1, 1]), scale=float("nan")), "scale must be positive"),
        (lambda: ng.Normalized(mlp(2, 2), ng.Box([0, 0], [1, 1]), scale=(1, float("inf"))), "positive and finite"),
        (lambda: ng.Normalized(mlp(2, 2), ng.Box([0, 0], [1, 1]), scale=(1, 2, 3)), "or 2 of them"),
        (lambda: ng.Normalized(mlp(2), ng.Box([0, 0], [1, 1]), scale=(1.0,)), "scale must be a number"),
        (lambda: ng.Normalized(mlp(2), ng.Box([0, 0], [1, 1]), scale="large"), "scale must be a number"),
        (lambda: ng.Normalized(mlp(2), ng.Interval(0, 1) * ng.Box([0, 0], [1, 1])), "3 inputs is needed for points of"),
        (lambda: ng.Normalized(mlp(2), (0, 1)), "takes a domain such as ng.Box"),
        (lambda: ng.Normalized(ng.Fields(u=mlp(2)), ng.Box([0, 0], [1, 1])), "each field has a size of its own"),
    ],
)
def test_wrong_input_is_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
