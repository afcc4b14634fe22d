import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad import calculus
from natgrad.calculus import (
    derivatives,
    divergence,
    gradient,
    hessian,
    laplacian,
    partial,
    value_gradient_laplacian,
)
from natgrad.networks import MLP, HardBoundary, Periodic

# Compile time is nearly all the time these tests take.
jit = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})

X = np.array([0.3, -0.2, 0.7])
W = np.random.default_rng(0).normal(size=(5, 3))


@jax.custom_jvp
def doubled_slope(x):
    return x**3


@doubled_slope.defjvp
def _(primals, tangents):
    return doubled_slope(*primals), 2 * 3 * primals[0] ** 2 * tangents[0]


@functools.cache
def net(out_size=1, activation=jnp.tanh):
    return MLP(3, out_size, 12, 2, activation=activation, key=jax.random.key(1))


def scanned(x):
    return lax.scan(lambda c, w: (jnp.tanh(w * c + c.sum()), c[0]), x, jnp.arange(3.0))[0]


FUNCTIONS = {
    "sines": lambda x: jnp.prod(jnp.sin(jnp.pi * x)),
    "norm": jnp.linalg.norm,
    "tanh net": net(),
    "vector net": net(4),
    "gelu net": net(2, jax.nn.gelu),
    "softplus": lambda x: jax.nn.softplus(W @ x),
    "silu": lambda x: jax.nn.silu(W @ x),
    "erf": lambda x: lax.erf(W @ x),
    "relu cubed": lambda x: jax.nn.relu(W @ x) ** 3,
    "softmax": lambda x: jax.nn.softmax(W @ x),
    "logsumexp": lambda x: jax.scipy.special.logsumexp(W @ x),
    "hard boundary": HardBoundary(net(), lambda x: jnp.prod(x * (1 - x)), jnp.sum),
    "quadratic form": lambda x: x @ (W.T @ W) @ x,
    "matrix product": lambda x: jnp.outer(x, x**2) @ jnp.sin(jnp.outer(x, x)),
    "quotient": lambda x: jnp.sin(x[0]) / x[1] + 1 / x[2],
    "powers": lambda x: x[0] ** 2.5 * x[1] ** 3 + x[2] ** x[0],
    "constant": lambda x: jnp.ones(2),
    "number": lambda x: 3.0,
    "scatter": lambda x: jnp.zeros(4).at[1:].set(x**2),
    "where": lambda x: jnp.where(x > 0, x**2, x**3),
    "stop_gradient": lambda x: lax.stop_gradient(x) * x**2,
    "remat": lambda x: jax.checkpoint(lambda y: jnp.sin(W @ y))(x),
    "jit": jax.jit(lambda x: jnp.sin(W @ x)),
    "custom_jvp": lambda x: doubled_slope(W @ x),
    "complex": lambda x: jnp.abs(jnp.exp(1j * x[0]) * x[1] + x[2]),
    # no rule of their own
    "atan2": lambda x: jnp.arctan2(x[0], x[1]),
    "sort": lambda x: jnp.sort(jnp.sin(x)),
    "solve": lambda x: jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(3), x),
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(jnp.outer(x, x) + jnp.diag(jnp.arange(3.0))),
    "fft": lambda x: jnp.abs(jnp.fft.fft(x**2)),
    "scan": scanned,
    "cond": lambda x: lax.cond(x[0] > 0, lambda y: jnp.sin(y).sum(), lambda y: jnp.cos(y).sum(), x),
    "fori_loop": lambda x: lax.fori_loop(0, 4, lambda i, c: jnp.sin(c) * x + i, x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x))[1],
    "laplacian": lambda x: laplacian(lambda y: jnp.prod(jnp.sin(y)), x),
}


def close(actual, expected, tol=1e-12):
    assert jnp.shape(actual) == jnp.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=tol, atol=tol)


def compare(cases):
    functions, expected = zip(*cases, strict=True)
    for actual, value in zip(jit(lambda x: [f(x) for f in functions])(X), expected, strict=True):
        close(actual, value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_forward_pass_agrees_with_the_hessian(name):
    def u(x):
        return jnp.asarray(FUNCTIONS[name](x))

    @jit
    def both(x):
        actual = laplacian(FUNCTIONS[name], x), *value_gradient_laplacian(FUNCTIONS[name], x, dims=(2, 0))
        return actual, (u(x), jax.jacfwd(u)(x), jax.jacfwd(jax.jacfwd(u))(x))

    (lap, value, grad, part), (value_, grad_, hess) = both(X)
    close(lap, jnp.trace(hess, axis1=-2, axis2=-1))
    close(value, value_)
    close(grad, grad_)
    close(part, hess[..., 0, 0] + hess[..., 2, 2])


def nested(u, x, i, k):
    derivative = lambda x: jnp.asarray(u(x))
    for _ in range(k):
        derivative = lambda x, d=derivative: jax.jvp(d, (x,), (jnp.eye(x.size)[i],))[1]
    return derivative(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_taylor_mode_agrees_with_nested_jvps(name):
    u, order = FUNCTIONS[name], 2 if name == "eigenvalues" else 3  # to compile it takes long
    ours, expected = jit(lambda x: (derivatives(u, x, 1, order), [nested(u, x, 1, k) for k in range(order + 1)]))(X)
    for actual, value in zip(ours, expected, strict=True):
        close(actual, value, 1e-11)


@pytest.mark.parametrize("activation", [jnp.tanh, jnp.sin, jax.nn.silu])
def test_high_derivatives_of_networks_in_their_wrappings(activation):
    domain = ng.Interval(0, 2) * ng.Box([-1], [1])
    inner = MLP(3, 1, 4, 1, activation=activation, key=jax.random.key(1))
    u = HardBoundary(ng.Normalized(Periodic(inner, (None, 2.0)), domain, 3.0), lambda x: x[0] * (1 - x[1] ** 2))
    theta, unravel = ravel_pytree(u)
    x = X[:2]
    close(jit(lambda x: partial(u, x, 1, 1, 1, 1))(x), jit(lambda x: nested(u, x, 1, 4))(x), 1e-10)
    ours = jit(jax.jacrev(lambda t: partial(unravel(t), x, 1, 1, 1)))(theta)
    close(ours, jit(jax.jacrev(lambda t: nested(unravel(t), x, 1, 3)))(theta), 1e-10)
    with calculus.products_together():
        close(jit(jax.jacrev(lambda t: partial(unravel(t), x, 1, 1, 1)))(theta), ours, 1e-10)


def test_taylor_mode_is_one_pass_without_nested_derivatives(monkeypatch):
    """No equation of a network goes to nested jvps, and the number of products grows with the order alone."""
    calls = []

    def u(x):
        calls.append(1)
        return net(1, jnp.sin)(x)

    def refuse(*_):
        raise AssertionError("an equation went to nested jvps")

    monkeypatch.setattr(calculus.taylor.Taylor, "other", refuse)
    monkeypatch.setattr(calculus.taylor, "_jvps", refuse)
    text = str(jax.make_jaxpr(lambda x: partial(u, x, 0, 0, 0, 0))(X))
    assert len(calls) == 1
    assert text.count("dot_general") == 3 + 1 + 4 + 4  # u itself; three layers, the first with one derivative


def test_closed_forms():
    def u(x):
        return x[0] ** 3 * x[1] + jnp.sin(x[2])

    x0, x1, x2 = X
    swap = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    slope = np.array([3 * x0**2 * x1, x0**3, np.cos(x2)])
    cases = [
        (lambda x: gradient(u, x), slope),
        (lambda x: laplacian(u, x), 6 * x0 * x1 - np.sin(x2)),
        (lambda x: laplacian(u, x, dims=2), -np.sin(x2)),
        (lambda x: laplacian(u, x, dims=(0, 1)), 6 * x0 * x1),
        (lambda x: laplacian(u, x, dims=[-1]), -np.sin(x2)),
        (lambda x: partial(u, x, 0), 3 * x0**2 * x1),
        (lambda x: partial(u, x, 0, 0), 6 * x0 * x1),
        (lambda x: partial(u, x, 0, 1), 3 * x0**2),
        (lambda x: partial(u, x, 0, 1, 0), 6 * x0),
        (lambda x: partial(u, x, 0, 0, 0), 6 * x1),
        (lambda x: partial(u, x, 0, 0, 0, 1), 6.0),
        (lambda x: partial(u, x, -1, 2, -1, 2), np.sin(x2)),
        (lambda x: jnp.stack(derivatives(u, x, -1, 3)[1:]), np.array([np.cos(x2), -np.sin(x2), -np.cos(x2)])),
        (lambda x: partial(u, x, -1), np.cos(x2)),
        (lambda x: hessian(u, x), np.diag([6 * x0 * x1, 0, -np.sin(x2)]) + 3 * x0**2 * swap),
    ]
    compare(cases)


def test_vector_fields():
    def u(x):
        return jnp.stack([x[0] * x[1], x[1] ** 2, jnp.exp(x[2])])

    x0, x1, x2 = X
    cases = [
        (lambda x: gradient(u, x), np.array([[x1, x0, 0], [0, 2 * x1, 0], [0, 0, np.exp(x2)]])),
        (lambda x: laplacian(u, x), np.array([0, 2, np.exp(x2)])),
        (lambda x: partial(u, x, 1), np.array([x0, 2 * x1, 0])),
        (lambda x: hessian(u, x)[0], np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])),
        (lambda x: divergence(u, x), x1 + 2 * x1 + np.exp(x2)),
        (lambda x: divergence(u, x, dims=(1, 0)), x0),
        (lambda x: divergence(lambda y: y[1:] ** 2, x, dims=(1, 2)), 2 * x1 + 2 * x2),
    ]
    compare(cases)


def test_one_coordinate_and_many():
    close(jit(lambda x: laplacian(lambda y: jnp.sin(y[0]), x))(np.array([0.3])), -np.sin(0.3))
    x = np.linspace(-1, 1, 7)
    u = MLP(7, 1, 8, 1, key=jax.random.key(0))
    close(jit(lambda x: laplacian(u, x))(x), jit(lambda x: jnp.trace(jax.hessian(u)(x)))(x))


@pytest.mark.parametrize(("activation", "dims"), [(jnp.tanh, None), (jax.nn.gelu, (1, 2))])
def test_derivatives_in_the_parameters(activation, dims):
    theta, unravel = ravel_pytree(net(1, activation))
    direction = np.random.default_rng(1).normal(size=theta.shape)
    points = np.random.default_rng(2).normal(size=(4, 3))

    def forward(theta, x):
        return laplacian(unravel(theta), x, dims)

    def reference(theta, x):
        h = jax.hessian(lambda y: unravel(theta)(y))(x)
        return sum(h[i, i] for i in dims or range(3))

    def reverse(f):
        return jit(jax.vmap(jax.jacrev(f), (None, 0)))(theta, points)

    def twice(f):
        def once(t):
            return jax.jvp(lambda s: f(s, points[0]), (t,), (direction,))[1]

        return jit(lambda t: jax.jvp(once, (t,), (direction,)))(theta)

    close(reverse(forward), reverse(reference))
    for actual, expected in zip(twice(forward), twice(reference), strict=True):
        close(actual, expected, 1e-10)

    def loss(f):
        return jit(jax.grad(lambda t: jnp.sum(jax.vmap(lambda x: f(t, x))(points) ** 2)))(theta)

    close(loss(forward), loss(reference), 1e-11)


@pytest.mark.parametrize("dims", [2, 6])
def test_products_taken_together_are_the_same(dims):
    """Value, gradient, Laplacian, and their derivatives in the parameters; outside of the block nothing has changed."""
    net, x = MLP(dims, 1, 5, 2, key=jax.random.key(1)), jnp.linspace(-0.4, 0.9, dims)
    flat, unravel = ravel_pytree(net)

    def everything(v):
        return jnp.hstack(value_gradient_laplacian(unravel(v), x))

    def traced():
        anew = lambda v: everything(v)  # of `everything` itself JAX keeps what it traced
        return str(jax.make_jaxpr(anew)(flat)).count("dot_general[")

    apart = traced()
    one_by_one = jit(lambda v: (everything(v), jax.jacrev(everything)(v)))(flat)
    with calculus.products_together():
        assert traced() < apart
        together = jit(lambda v: (everything(v), jax.jacrev(everything)(v)))(flat)
    assert traced() == apart
    for ours, expected in zip(together, one_by_one, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


def test_parameters_inside_control_flow():
    def u(theta, x):
        return lax.scan(lambda c, w: (jnp.tanh(w @ c), None), x, theta)[0].sum()

    theta = np.random.default_rng(0).normal(size=(3, 3, 3))
    expected = jit(jax.jacrev(lambda t: jnp.trace(jax.hessian(lambda y: u(t, y))(X))))(theta)
    close(jit(jax.jacrev(lambda t: laplacian(lambda y: u(t, y), X)))(theta), expected)


def test_custom_vjp_is_differentiated_through_its_definition():
    @jax.custom_vjp
    def f(x):
        return x**3

    f.defvjp(lambda x: (f(x), x), lambda x, g: (3 * x**2 * g,))
    close(laplacian(lambda x: f(x).sum(), X), 6 * X.sum())


def test_softplus_at_its_kink_keeps_the_rule_of_its_author():
    # The definition of softplus has |x| in it; only the custom rule knows that it is smooth at 0.
    close(laplacian(lambda x: jax.nn.softplus(x).sum(), np.zeros(3)), 0.75)


def test_one_pass_calls_u_once():
    calls = []

    def u(x):
        calls.append(1)
        return jnp.sin(x).sum()

    value_gradient_laplacian(u, X)
    assert len(calls) == 1


def test_the_program_does_not_grow_with_the_dimension():
    def size(d):
        u = MLP(d, 1, 8, 2, key=jax.random.key(0))
        return str(jax.make_jaxpr(lambda x: laplacian(u, x))(jnp.ones(d))).count("\n")

    assert size(40) == size(20)


def test_float32_stays_float32():
    u = MLP(3, 1, 8, 2, key=jax.random.key(0), dtype=jnp.float32)
    x = X.astype(np.float32)
    for f in (laplacian, gradient, lambda u, x: partial(u, x, 0, 0), lambda u, x: partial(u, x, 0, 0, 0)):
        assert jax.eval_shape(lambda x, f=f: f(u, x), x).dtype == jnp.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda u: laplacian(u, np.ones((5, 3))), r"one point of shape \(d,\), got \(5, 3\); use jax.vmap"),
        (lambda u: laplacian(u, X, dims=3), r"dims must name coordinates of a point with 3 .* got 3"),
        (lambda u: laplacian(u, X, dims=()), "dims must name coordinates"),
        (lambda u: laplacian(u, X, dims=(0, -3)), "each coordinate once"),
        (lambda u: laplacian(lambda x: (x, x), X), "u must return one array, got tuple"),
        (lambda u: partial(u, X), "at least one coordinate"),
        (lambda u: derivatives(u, X, 3, 2), "dims must name coordinates"),
        (lambda u: derivatives(u, X, 0, 0), "order must be a positive integer, got 0"),
        (lambda u: divergence(u, X), "as many components as x"),
        (lambda u: divergence(lambda x: x[:2], X), r"as many components as x \(3\), got 2"),
        (lambda u: divergence(lambda x: x[:1], X, dims=(0, 1)), "takes 2 components, u has 1"),
    ],
)
def test_misuse_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(net())


def test_module_goes_through_filter_jit():
    u = net()
    close(eqx.filter_jit(calculus.laplacian)(u, X), laplacian(u, X))
