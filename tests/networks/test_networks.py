import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import natgrad as ng
from natgrad.calculus import laplacian
from natgrad.networks import MLP, Fields, FourierFeatures, HardBoundary, Periodic, num_parameters

KEY = jax.random.key(0)


def test_mlp_shapes_and_sizes():
    x = np.ones(3)
    assert jax.eval_shape(lambda x: MLP(3, 1, 8, 2, key=KEY)(x), x).shape == ()
    assert jax.eval_shape(lambda x: MLP(3, 2, 8, 2, key=KEY)(x), x).shape == (2,)
    assert num_parameters(MLP(3, 1, 64, 3, key=KEY)) == 8641
    assert num_parameters(MLP(3, 1, (8, 4), key=KEY)) == 3 * 8 + 8 + 8 * 4 + 4 + 4 + 1
    assert num_parameters(MLP(3, 8, 64, 0, key=KEY)) == 32


def test_mlp_is_the_formula():
    u = MLP(3, 1, (4, 5), activation=jnp.sin, key=KEY)
    x = np.array([0.1, 0.2, 0.3])
    expected = x
    for layer in u.layers[:-1]:
        expected = np.sin(layer.weight @ expected + layer.bias)
    expected = u.layers[-1].weight @ expected + u.layers[-1].bias
    np.testing.assert_allclose(u(x), expected[0], rtol=1e-14)


def test_glorot_normal_start():
    u = MLP(100, 300, 400, 1, key=KEY)
    for layer in u.layers:
        out, n = layer.weight.shape
        std = np.sqrt(2 / (out + n))
        np.testing.assert_allclose(jnp.std(layer.weight), std, rtol=0.02)
        np.testing.assert_allclose(jnp.mean(layer.weight), 0, atol=0.02 * std)
        assert not jnp.any(layer.bias)


def test_sines_start_with_waves_and_keep_their_variance():
    """The first layer has angular frequencies about ω; what enters the later sines has a variance of 0.8 to 1 at any
    depth, where with Glorot's start it dies out; and the derivative along the input keeps its size, too."""
    u = MLP(2, 1, 400, 8, activation=jnp.sin, frequency=6.0, key=KEY)
    np.testing.assert_allclose(jnp.std(u.layers[0].weight), 6.0, rtol=0.05)
    assert 0.9 < float(jnp.abs(u.layers[0].bias).max()) / (6 / np.sqrt(2)) <= 1
    x = np.random.default_rng(0).uniform(-1, 1, (200, 2))

    def variances(u):
        z, found = x, []
        for layer in u.layers[:-1]:
            z = z @ layer.weight.T + layer.bias
            found.append(float(jnp.var(z)))
            z = jnp.sin(z)
        return found

    assert all(0.75 < v < 1.1 for v in variances(u)[1:])
    assert variances(MLP(2, 1, 400, 8, key=KEY))[-1] < 0.05
    assert 0.1 < float(jnp.var(jax.vmap(u)(x))) < 1
    default = MLP(2, 1, 400, 1, activation=jnp.sin, key=KEY)
    np.testing.assert_allclose(jnp.std(default.layers[0].weight), 2.0, rtol=0.05)
    assert (
        MLP(2, 1, 4, 2, activation=jnp.sin, key=KEY, dtype=jnp.float32)(jnp.ones(2, jnp.float32)).dtype == jnp.float32
    )


def test_parameters_are_ordered_layer_by_layer():
    u = MLP(3, 2, 4, 1, key=KEY)
    u = eqx.tree_at(lambda n: [layer.bias for layer in n.layers], u, [jnp.ones(4), jnp.full(2, 2.0)])
    flat, unravel = ravel_pytree(u)
    w0, w1 = (np.ravel(layer.weight) for layer in u.layers)
    np.testing.assert_array_equal(flat, np.concatenate([w0, np.ones(4), w1, np.full(2, 2.0)]))
    assert eqx.tree_equal(unravel(flat), u)


def test_dtype():
    x = np.ones(3, np.float32)
    assert MLP(3, 1, 4, 1, key=KEY)(np.ones(3)).dtype == jnp.float64
    assert MLP(3, 1, 4, 1, key=KEY, dtype=jnp.float32)(x).dtype == jnp.float32


def flow():
    k1, k2 = jax.random.split(KEY)
    return Fields(u=MLP(2, 2, 8, 2, key=k1), p=MLP(2, 1, 6, 1, key=k2))


def test_fields():
    net, x = flow(), np.array([0.1, 0.2])
    assert net.u(x).shape == (2,)
    assert net.p(x).shape == ()
    np.testing.assert_array_equal(net(x), np.concatenate([net.u(x), [net.p(x)]]))
    with pytest.raises(AttributeError, match="no field 'q'; the fields are u, p"):
        _ = net.q
    with pytest.raises(ValueError, match="'names' is taken"):
        Fields(names=net.u)


def test_fields_flatten_into_one_vector():
    net, x = flow(), np.array([0.1, 0.2])
    flat, unravel = ravel_pytree(net)
    # as given, not by name
    np.testing.assert_array_equal(flat, np.concatenate([ravel_pytree(net.u)[0], ravel_pytree(net.p)[0]]))
    again = unravel(flat)
    np.testing.assert_array_equal(again(x), net(x))
    grad = jax.jit(jax.grad(lambda theta: laplacian(unravel(theta).p, x)))(flat)
    assert not jnp.any(grad[: num_parameters(net.u)])
    assert jnp.any(grad[num_parameters(net.u) :])


def test_hard_boundary():
    net = MLP(2, 1, 8, 2, key=KEY)
    u = HardBoundary(net, lambda x: jnp.prod(x * (1 - x)))
    t = np.linspace(0, 1, 11)
    sides = np.concatenate([np.stack(s, 1) for s in ((t, 0 * t), (t, 0 * t + 1), (0 * t, t), (0 * t + 1, t))])
    np.testing.assert_array_equal(jax.vmap(u)(sides), 0)
    assert abs(u(np.array([0.3, 0.4]))) > 0
    lifted = HardBoundary(net, lambda x: jnp.prod(x * (1 - x)), lift=jnp.sum)
    np.testing.assert_allclose(jax.vmap(lifted)(sides), sides.sum(1), rtol=1e-15)
    assert num_parameters(lifted) == num_parameters(net)
    with pytest.raises(ValueError, match="lift must be a function without parameters"):
        HardBoundary(net, jnp.sum, lift=net)


def test_fourier_features_are_no_parameters(tmp_path):
    net = MLP(8, 1, 6, 1, key=KEY)
    u = FourierFeatures(net, 3, 4, scale=0.5, key=jax.random.key(1))
    x = np.array([0.1, 0.2, 0.3])
    phase = 2 * np.pi * np.array(u.frequencies) @ x
    np.testing.assert_allclose(u(x), net(jnp.concatenate([jnp.sin(phase), jnp.cos(phase)])), rtol=1e-14)
    assert num_parameters(u) == num_parameters(net)
    np.testing.assert_array_equal(ravel_pytree(u)[0], ravel_pytree(net)[0])
    np.testing.assert_allclose(jax.jit(lambda u, x: u(x))(u, x), u(x), rtol=1e-14)
    eqx.tree_serialise_leaves(tmp_path / "u.eqx", u)
    zeros = jax.tree.map(jnp.zeros_like, u)
    assert eqx.tree_deserialise_leaves(tmp_path / "u.eqx", zeros)(x) == u(x)


def test_fourier_frequencies_given():
    b = np.array([[1.0, 0.0], [0.0, 2.0]])
    u = FourierFeatures(MLP(4, 1, 6, 1, key=KEY), 2, b)
    np.testing.assert_allclose(u(np.array([0.3, 0.2])), u(np.array([1.3, 0.7])), rtol=1e-12)
    lap, hess = jax.jit(lambda x: (laplacian(u, x), jax.hessian(u)(x)))(np.array([0.3, 0.2]))
    np.testing.assert_allclose(lap, jnp.trace(hess), rtol=1e-12)


def test_periodic():
    u = Periodic(MLP(3, 2, 6, 1, key=KEY), (None, 2.0))
    np.testing.assert_allclose(u(np.array([0.1, 0.3])), u(np.array([0.1, 2.3])), rtol=1e-12)
    assert not np.allclose(u(np.array([0.1, 0.3])), u(np.array([2.1, 0.3])))
    assert num_parameters(u) == num_parameters(u.network)


def test_several_harmonics():
    v = Periodic(MLP(7, 1, 5, 1, key=KEY), (None, 2.0), harmonics=3)
    t, x = 0.3, 0.7
    phase = np.pi * x * np.arange(1, 4)
    seen = np.concatenate([np.sin(phase), np.cos(phase), [t]])
    np.testing.assert_allclose(v(np.array([t, x])), v.network(seen), rtol=1e-13)
    w = Periodic(MLP(6, 1, 5, 1, key=KEY), (1.0, 2.0), harmonics=[1, 2])
    np.testing.assert_allclose(w(np.array([t, x])), w(np.array([t + 1, x - 2])), rtol=1e-11)
    np.testing.assert_allclose(
        ng.laplacian(w, np.array([t, x])), jnp.trace(jax.hessian(w)(np.array([t, x]))), rtol=1e-11
    )


def test_fourier_features_of_several_scales():
    u = FourierFeatures(MLP(16, 1, 6, 1, key=KEY), 3, 8, scale=(8.0, 0.5, 2.0), key=jax.random.key(1))
    plain = FourierFeatures(MLP(16, 1, 6, 1, key=KEY), 3, 8, key=jax.random.key(1))
    ratios = np.array(u.frequencies)[:, 0] / np.array(plain.frequencies)[:, 0]
    np.testing.assert_allclose(ratios, [0.5] * 3 + [2] * 2 + [8] * 3)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MLP(0, 1, 4, 1, key=KEY), "in_size must be a positive integer, got 0"),
        (lambda: MLP(3, 0, 4, 1, key=KEY), "out_size must be a positive integer, got 0"),
        (lambda: MLP(3, 1, 0, 1, key=KEY), "width must be a positive integer or a sequence.*, got 0"),
        (lambda: MLP(3, 1, (4, 0), key=KEY), r"width must be a positive integer .*, got \(4, 0\)"),
        (lambda: MLP(3, 1, 4, -1, key=KEY), "depth must be a non-negative integer or None, got -1"),
        (lambda: MLP(3, 1, 4, key=KEY), "depth must be the number of hidden layers"),
        (lambda: MLP(3, 1, (4, 4), 3, key=KEY), "depth must be the number of widths, 2, or left out, got 3"),
        (lambda: MLP(3, 1, 4.0, 1, key=KEY), "width must be a positive integer .*, got 4.0"),
        (lambda: MLP(3, 1, True, 1, key=KEY), "width must be .*, got True"),
        (lambda: MLP(3, 1, 4, "two", key=KEY), "depth must be .*, got 'two'"),
        (lambda: MLP(3, 1, 4, 1, key="a"), "key must be a JAX random key .*, got 'a'"),
        (lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, 0, key=KEY), "frequencies must be a positive integer"),
        (lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, 4, scale=0, key=KEY), "scale must be a positive finite"),
        (lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, np.full((4, 3), np.nan)), "frequencies must be finite"),
        (lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, 4, scale=(1, 0), key=KEY), "scale must be .*, got"),
        (lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, 4, scale=(1,) * 5, key=KEY), "at most 4 .*, got 5"),
        (lambda: MLP(3, 1, 4, 1, frequency=3.0, key=KEY), "frequency is that of .* with activation=jnp.sin"),
        (lambda: MLP(3, 1, 4, 1, activation=jnp.sin, frequency=-1, key=KEY), "frequency must be a positive"),
        (lambda: Periodic(MLP(3, 1, 4, 1, key=KEY), (None, 1.0), 0), "harmonics must be a positive integer"),
        (lambda: Periodic(MLP(3, 1, 4, 1, key=KEY), (None, 1.0), (2, 2)), "or one for each period of"),
        (lambda: Periodic(MLP(3, 1, 4, 1, key=KEY), (None, 1.0), 2), "5 inputs .* got one with in_size=3"),
        (lambda: Fields(), "at least one named network"),
        (
            lambda: FourierFeatures(MLP(3, 1, 4, 1, key=KEY), 3, 4, key=KEY),
            "8 inputs .* got one with in_size=3",
        ),
        (lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, 4), "take a key"),
        (
            lambda: FourierFeatures(MLP(8, 1, 4, 1, key=KEY), 3, np.ones((4, 2))),
            r"shape \(f, 3\), got \(4, 2\)",
        ),
        (lambda: Periodic(MLP(3, 1, 4, 1, key=KEY), (1.0, 1.0)), "4 inputs"),
        (
            lambda: Periodic(MLP(3, 1, 4, 1, key=KEY), (None, -1.0)),
            "periods must be a sequence, each .* or None, got",
        ),
        (
            lambda: MLP(3, 1, 4, 1, key=KEY)(np.ones((10_000, 3))),
            r"u takes one point of shape \(3,\), got \(10000, 3\); use jax.vmap",
        ),
        (lambda: MLP(3, 1, 4, 1, key=KEY)(np.ones(2)), r"u takes one point of shape \(3,\), got \(2,\)$"),
    ],
)
def test_misuse_is_named(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("outputs", "part", "message"),
    [
        (1, {"distance": lambda x: x * (1 - x)}, r"distance must give a number at one point, got shape \(2,\)"),
        (1, {"distance": jnp.sum, "lift": lambda x: x[:1]}, r"lift must give a number at one point, got shape \(1,\)"),
        (3, {"distance": lambda x: x}, r"distance must give a number, or .* shape \(3,\), at one point, got .*\(2,\)"),
    ],
)
def test_a_distance_or_lift_of_the_wrong_shape_is_refused(outputs, part, message):
    part = {"distance": jnp.sum, "lift": None} | part
    u = HardBoundary(MLP(2, outputs, 4, 1, key=KEY), **part)
    with pytest.raises(ValueError, match=message):
        u(np.array([0.1, 0.2]))
    with pytest.raises(ValueError, match="residual 'pde' fails at a single point"):
        ng.LeastSquares(u, pde=ng.Residual(lambda u, x: jnp.sum(u(x)), np.ones((3, 2))))


def test_a_distance_and_a_lift_for_each_output():
    u = HardBoundary(MLP(2, 2, 4, 1, key=KEY), distance=lambda x: x * (1 - x), lift=lambda x: 3.0)
    np.testing.assert_array_equal(u(np.array([0.0, 1.0])), [3.0, 3.0])


def test_an_integer_is_a_key():
    for key, same in ((3, jax.random.key(3)), (np.int32(-1), jax.random.key(-1))):
        for a, b in zip(*(jax.tree.leaves(MLP(2, 1, 4, 1, key=k)) for k in (key, same)), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        ng.Box([0], [1]).interior(5, key=3).x, ng.Box([0], [1]).interior(5, key=jax.random.key(3)).x
    )


def test_goes_through_jit_and_vmap():
    u, x = flow(), np.random.default_rng(0).normal(size=(7, 2))
    batched = jax.jit(lambda u, x: jax.vmap(u)(x))(u, x)
    np.testing.assert_allclose(batched, np.stack([u(p) for p in x]), rtol=1e-13)
