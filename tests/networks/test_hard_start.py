"""`hard_start`: values, velocities and sides hold for every θ, at the corners too, to round-off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng

PLATE = ng.Interval(1.0, 3.0) * ng.Box([-1, 0], [1, 4])
LINE = ng.Interval(0.5, 2.0) * ng.Interval(-1, 1)


def net(inputs, outputs=1):
    return ng.MLP(inputs, outputs, 6, 2, key=jax.random.key(0))


def on(domain):
    """The first time with its corners, and the sides with theirs."""
    x = domain.space.interior(20, rule="sobol").x
    rim = domain.space.boundary(40, rule="sobol").x
    first = jnp.concatenate([x, rim])
    times = jnp.linspace(domain.time.a, domain.time.b, len(rim))
    return jnp.insert(first, 0, domain.time.a, axis=1), jnp.column_stack([times, rim])


def in_time(u):
    return lambda z: ng.partial(u, z, 0)


@pytest.mark.parametrize("domain", [pytest.param(PLATE, marks=pytest.mark.slow), LINE])
def test_values_velocities_and_sides_are_exact(domain):
    beta = lambda z: z[0] ** 2 * jnp.sum(z[1:]) + 1
    a, size = domain.time.a, domain.dim
    lower, upper = (np.array(corner[1:]) for corner in domain.bounds())
    inside = lambda x: jnp.prod((x - lower) * (upper - x))
    g = lambda x: beta(jnp.append(a, x)) + jnp.sin(3 * x[0]) * inside(x)
    h = lambda x: 2 * a * jnp.sum(x) + inside(x)
    first, sides = on(domain)
    at = lambda f, z: np.array(jax.vmap(f)(z))
    u = ng.hard_start(net(size), domain, g, velocity=h, boundary=beta)
    np.testing.assert_allclose(at(u, first), at(g, first[:, 1:]), rtol=0, atol=1e-13)
    np.testing.assert_allclose(at(in_time(u), first), at(h, first[:, 1:]), rtol=0, atol=1e-13)
    np.testing.assert_allclose(at(u, sides), at(beta, sides), rtol=0, atol=1e-13)
    free = ng.hard_start(net(size), domain, g, boundary=beta)  # of first order: u_t is the network's
    np.testing.assert_allclose(at(free, first), at(g, first[:, 1:]), rtol=0, atol=1e-13)
    np.testing.assert_allclose(at(free, sides), at(beta, sides), rtol=0, atol=1e-13)
    x = domain.interior(5, key=jax.random.key(1)).x
    assert np.abs(at(in_time(free), first[:20]) - at(h, first[:20, 1:])).min() > 1e-3
    assert np.abs(at(u, x) - at(free, x)).min() > 1e-3


def test_the_distance_is_of_order_one():
    u = ng.hard_start(lambda z: 1.0, ng.Interval(0, 1e4) * ng.Box([0], [1e-3]), 0.0, boundary=0)
    np.testing.assert_allclose(u(jnp.array([1e4, 0.5e-3])), 1.0)
    wave = ng.hard_start(lambda z: 1.0, ng.Interval(0, 1e4) * ng.Box([0], [1e-3]), 0.0, velocity=0.0)
    np.testing.assert_allclose(wave(jnp.array([5e3, 0.5e-3])), 0.25)


def test_some_sides_alone_and_none():
    channel = ng.hard_start(lambda z: 1.0, LINE, 0.0, boundary=0, faces=[(0, "lower")])
    np.testing.assert_allclose([channel(jnp.array([2.0, x])) for x in (-1.0, 0.0, 1.0)], [0, 0.5, 1])
    ball = ng.hard_start(lambda z: 1.0, ng.Interval(0, 2) * ng.Ball([0, 0], 1), lambda x: x @ x)
    np.testing.assert_allclose(ball(jnp.array([1.0, 0.6, 0.8])), 1.5)
    decay = ng.hard_start(net(1), ng.Interval(0, 2), 3.0, velocity=-1.0)
    np.testing.assert_allclose(decay(jnp.zeros(1)), 3.0)
    np.testing.assert_allclose(ng.partial(decay, jnp.zeros(1), 0), -1.0)


def test_several_components_start_at_their_own_values():
    u = ng.hard_start(net(2, 2), LINE, lambda x: jnp.array([1 - x[0] ** 2, 0.0]), boundary=lambda z: jnp.zeros(2))
    np.testing.assert_allclose(u(jnp.array([0.5, 0.5])), [0.75, 0.0])
    np.testing.assert_array_equal(u(jnp.array([1.3, -1.0])), [0.0, 0.0])


def test_equal_ones_compile_once():
    g, traces = (lambda x: 1 - x[0] ** 2), 0

    @jax.jit
    def value(u, x):
        nonlocal traces
        traces += 1
        return u(x)

    for _ in range(2):
        value(ng.hard_start(net(2), LINE, g, boundary=0), jnp.ones(2))
    assert traces == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ng.hard_start(net(2), ng.Box([0, 0], [1, 1]), 0), "takes a domain with time, such as"),
        (lambda: ng.hard_start(net(2), LINE, 1.0, boundary=0), r"initial and boundary must agree .* by 1 at x = \["),
        (
            lambda: ng.hard_start(net(2), LINE, 0, velocity=lambda x: x[0], boundary=0),
            "velocity and boundary must agree where they meet",
        ),
        (lambda: ng.hard_start(net(2), LINE, None), "initial must be a function .*, got None"),
        (lambda: ng.hard_start(net(2), LINE, "zero"), "initial must be a finite number, got 'zero'"),
        (lambda: ng.hard_start(net(2), LINE, net(1)), "initial must be a function without parameters"),
        (lambda: ng.hard_start(net(2), LINE, 0, faces=[(0, "lower")]), "give boundary, too"),
        (lambda: ng.hard_start(net(2), LINE, 0, boundary=0, faces=[(1, "lower")]), r"unknown face \(1, 'lower'\)"),
        (lambda: ng.hard_start(net(3), ng.Interval(0, 1) * ng.Ball([0, 0], 1), 0, boundary=0), "sides of a box"),
        (lambda: ng.hard_start(net(1), ng.Interval(0, 1), 0, boundary=0), "sides of a box or an interval, not of None"),
    ],
)
def test_wrong_input_is_refused_in_one_line(make, message):
    with pytest.raises(ValueError, match=message) as error:
        make()
    assert "\n" not in str(error.value)
