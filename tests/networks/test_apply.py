"""`ng.Apply`: networks of other libraries, and of none, train as one of ours with the same weights does."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.networks import Apply, HardBoundary, num_parameters
from tests.helpers import FAST

MLP = ng.MLP(2, 1, 5, 1, key=jax.random.key(0))
FIRST, LAST = MLP.layers


def ours():
    return MLP


def equinox():
    net = eqx.nn.MLP(2, "scalar", 5, 1, jnp.tanh, key=jax.random.key(1))
    where = lambda n: [n.layers[0].weight, n.layers[0].bias, n.layers[1].weight, n.layers[1].bias]
    return eqx.tree_at(where, net, [FIRST.weight, FIRST.bias, LAST.weight, LAST.bias])


def plain():
    params = {"hidden": (np.asarray(FIRST.weight), np.asarray(FIRST.bias)), "out": [LAST.weight[0], LAST.bias[0]]}

    def apply(params, x):
        (W, b), (v, c) = params["hidden"], params["out"]
        return v @ jnp.tanh(W @ x + b) + c

    return Apply(apply, params)


def linen():
    nn = pytest.importorskip("flax.linen")
    layers = [nn.Dense(5, param_dtype=float), jnp.tanh, nn.Dense(1, param_dtype=float)]
    model = nn.Sequential(layers)
    params = model.init(jax.random.key(0), jnp.zeros(2))
    params["params"]["layers_0"] = {"kernel": FIRST.weight.T, "bias": FIRST.bias}
    params["params"]["layers_2"] = {"kernel": LAST.weight.T, "bias": LAST.bias}
    return Apply(lambda params, x: model.apply(params, x)[0], params)


def nnx():
    nnx = pytest.importorskip("flax.nnx")

    class Network(nnx.Module):
        def __init__(self, rngs):
            self.hidden = nnx.Linear(2, 5, param_dtype=float, rngs=rngs)
            self.out = nnx.Linear(5, 1, param_dtype=float, rngs=rngs)

        def __call__(self, x):
            return self.out(jnp.tanh(self.hidden(x)))

    model = Network(nnx.Rngs(0))
    model.hidden.kernel[...], model.out.kernel[...] = FIRST.weight.T, LAST.weight.T
    graph, state = nnx.split(model)
    return Apply(lambda state, x: nnx.merge(graph, state)(x)[0], state)


def problem(network):
    square = ng.Box([0.0, 0.0], [1.0, 1.0])
    f = lambda x: jnp.sin(3 * x[0]) * x[1]
    return ng.LeastSquares(
        network,
        pde=ng.Residual(lambda u, x: ng.laplacian(u, x) - f(x), square.interior(20, key=jax.random.key(1))),
        boundary=ng.Residual(lambda u, x: u(x), square.boundary(8, key=jax.random.key(2))),
    )


def losses(network, steps=4):
    train, solver = problem(network), ng.FullNGD(damping=ng.damping.LossPower(), gramian="jacobian")
    params, state = train.params, solver.init(train, train.params, jax.random.key(0))
    step, out = jax.jit(solver.step, compiler_options=FAST), []
    for _ in range(steps):
        params, state, info = step(train, params, state)
        out.append(float(info.loss + info.change))
    return train, params, out


EXPECTED: list[float] = []


@pytest.mark.parametrize("make", [equinox, plain, linen, nnx], ids=lambda make: make.__name__)
def test_every_library_trains_alike(make):
    """The step does not depend on how the parameters are ordered or laid out (but λ̂₁ does, by its random start)."""
    if not EXPECTED:
        EXPECTED.extend(losses(ours())[2])
    network = make()
    assert num_parameters(network) == 21
    np.testing.assert_allclose(network(jnp.ones(2)), MLP(jnp.ones(2)), rtol=1e-12)
    train, params, found = losses(network)
    np.testing.assert_allclose(found, EXPECTED, rtol=1e-6)
    trained = train.solution(params)
    assert jax.tree.structure(eqx.filter(trained, eqx.is_array)) == jax.tree.structure(
        eqx.filter(network, eqx.is_array)
    )
    assert abs(trained(jnp.ones(2)) - network(jnp.ones(2))) > 1e-3


def test_fields_of_equinox_networks():
    """Attributes are reached although the activations among the leaves are out of JAX's sight."""
    flow = ng.Fields(u=equinox(), p=plain())
    train = ng.LeastSquares(flow, fit=ng.Residual(lambda w, x: w.u(x) - 2 * w.p(x), jnp.ones((3, 2))))
    step = jax.jit(lambda train: ng.gramian(train, strategy="linearized").loss_gradient())
    assert step(train).shape == (42,)
    assert train.solution(train.params).u.activation is equinox().activation
    with pytest.raises(AttributeError, match="no field 'q'"):
        train.network(train.params).q(jnp.ones(2))


def test_only_floating_point_arrays_are_parameters():
    u = Apply(lambda p, x: p["w"] @ x ** p["n"] + p["c"], {"w": np.ones(3), "n": np.array(2), "c": 0.5})
    assert num_parameters(u) == 4
    np.testing.assert_allclose(u(jnp.array([1.0, 2.0, 3.0])), 14.5)
    params, _ = eqx.partition(u, eqx.is_inexact_array)
    assert params.params["n"] is None


def test_apply_is_a_network_like_others():
    u = HardBoundary(plain(), distance=lambda x: x[0])
    assert u(jnp.array([0.0, 0.4])) == 0
    assert num_parameters(u) == 21


def test_the_order_of_the_arguments_is_told():
    with pytest.raises(ValueError, match=r"Apply takes a function of \(params, x\) first, got dict"):
        Apply({"w": jnp.ones(3)}, lambda p, x: p["w"] @ x)
    with pytest.raises(ValueError, match="has no parameters"):
        problem(lambda x: x[0])
