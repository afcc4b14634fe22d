"""Modules and states described and made again, without their constructors and without code in the file."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.storage.trees import Describer, Nameless, function_name, rebuild
from natgrad.zoo.gross_pitaevskii import bubble
from natgrad.zoo.inverse_poisson import temperature

KEY = jax.random.key(0)


def mlp(inputs=2, outputs=1, **options):
    return ng.MLP(inputs, outputs, 4, 1, key=KEY, **options)


NETWORKS = {
    "mlp": mlp(),
    "two widths": ng.MLP(2, 3, (5, 4), activation=jax.nn.gelu, key=KEY),
    "float32": mlp(dtype="float32"),
    "sine": mlp(activation=jnp.sin),
    "fields": ng.Fields(u=mlp(outputs=2), p=mlp()),
    "hard": ng.HardBoundary(mlp(), bubble, temperature),
    "normalized": ng.Normalized(mlp(outputs=2), ng.Box([0, 0], [250, 80]), scale=(300.0, 2.0)),
    "fourier": ng.FourierFeatures(mlp(6), in_size=2, frequencies=3, key=KEY),
    "periodic": ng.Periodic(mlp(3), periods=(None, 2.0)),
    "series": ng.FourierSeries((None, 2.0), modes=2, width=3, key=KEY),
    "waves": ng.Waves(2, 1, 4, up_to=(1.0, 2.0), key=KEY),
    "equinox": eqx.nn.Sequential([eqx.nn.Linear(2, 3, key=KEY), eqx.nn.Lambda(jax.nn.softplus)]),
    "nested": ng.Normalized(ng.Periodic(mlp(3), periods=(None, 1.0)), ng.Interval(0, 1) * ng.Box([0], [3])),
}


def described(value):
    """Once into a description and back."""
    describe = Describer()
    text = describe(value, "it")
    return rebuild(text, [np.asarray(array) for array in describe.arrays])


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_what_they_were(name):
    network = NETWORKS[name]
    again = described(network)
    assert jax.tree.structure(again) == jax.tree.structure(network)
    for ours, theirs in zip(jax.tree.leaves(network), jax.tree.leaves(again), strict=True):
        if eqx.is_array(ours):
            assert (ours.dtype, np.asarray(ours).tobytes()) == (theirs.dtype, np.asarray(theirs).tobytes())
        else:
            assert ours is theirs
    x = jnp.array([0.3, 0.6])
    np.testing.assert_array_equal(network(x), again(x))


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "x"], "b": ()},
        {"mu": np.float64("nan"), "loss": np.float32(1 / 3), "rank": np.int64(3), "on": np.bool_(True)},
        ng.NystromNGD(max_rank=7),
        ng.FullNGD(damping=ng.damping.Guarded(ng.damping.Spectral(10.0))),
        ng.Adam(100),
    ],
    ids=str,
)
def test_records_and_solvers(value):
    again = described(value)
    if isinstance(value, dict):
        value = {key: entry.item() if isinstance(entry, np.generic) else entry for key, entry in value.items()}
        assert repr(again) == repr(value)  # NaN is not itself
    else:
        assert again == value


def test_keys_of_each_kind():
    for kind in ("threefry2x32", "rbg"):
        key = jax.random.split(jax.random.key(3, impl=kind), 2)
        describe = Describer()
        text = describe(key, "key")
        again = rebuild(text, [np.asarray(jax.random.key_data(array)) for array in describe.arrays])
        assert again.dtype == key.dtype
        np.testing.assert_array_equal(jax.random.key_data(again), jax.random.key_data(key))


def test_an_array_is_kept_once():
    array = jnp.ones(3)
    describe = Describer([array])
    assert describe({"a": array, "b": array}, "it") == {"dict": {"a": {"array": 0}, "b": {"array": 0}}}
    assert len(describe.arrays) == 1


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (ng.HardBoundary(mlp(), distance=lambda x: x[0]), r"it\.distance is a function, which a file cannot hold"),
        (ng.Fields(u=mlp(), k=ng.Apply(lambda p, x: p, jnp.ones(2))), r"it\.networks\[1\]\.apply is a function"),
        (mlp(activation=lambda x: x), r"it\.activation is a function"),
        (object(), "it is of the class object, which is not natgrad's"),
        ({1: 2}, "it is of the class dict"),
    ],
)
def test_what_only_its_code_can_make(value, reason):
    describe = Describer()
    with pytest.raises(Nameless, match=reason):
        describe(value, "it")
    count = len(describe.arrays)
    assert describe.try_to((jnp.ones(2), value), "it")["missing"]
    assert len(describe.arrays) == count


@pytest.mark.parametrize(
    "forged",
    [
        {"function": "os.system"},
        {"function": "jax.numpy.no_such"},
        {"function": "natgrad.zoo.registry.importlib.import_module"},
        {"function": "natgrad.zoo.registry.field"},
        {"function": "natgrad.cli.main"},
        {"class": "subprocess.Popen", "fields": {}},
        {"class": "natgrad.zoo.registry.Path", "fields": {}},
        {"class": "natgrad.networks.MLP", "fields": {"layers": None}},
        {"class": "natgrad.networks.NoSuch", "fields": {}},
        {"code": "1 + 1"},
    ],
    ids=str,
)
def test_a_description_names_natgrads_own_alone(forged):
    with pytest.raises(ValueError, match=r"no function|another version of the class|does not know"):
        rebuild(forged, [])


def test_functions_have_their_public_names():
    assert function_name(jnp.tanh) == "jax.numpy.tanh"
    assert function_name(jax.nn.silu) in ("jax.nn.silu", "jax.nn.swish")
    assert function_name(bubble) == "natgrad.zoo.gross_pitaevskii.bubble"
    assert function_name(lambda x: x) is None
    assert function_name(np.tanh) is None
