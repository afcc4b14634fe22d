"""Networks u_θ: (d,) -> () or (m,), as Equinox modules, on one point at a time.

The floating-point arrays of a module are its parameters θ, in the order of `jax.flatten_util.ravel_pytree`;
all else (activations, sizes, the frequencies of Fourier features) is static, so that a network goes through
`jax.jit`, `jax.grad` and `jax.tree` as it is. A network with one output returns a scalar.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.options import Count, Positive, Whole, checked

Function = Callable[[Array], Array]
COPIES = 4  # of the weights of a layer, while they are drawn


class Linear(eqx.Module):
    """x ↦ W x + b, with W from the Glorot normal distribution (variance 2 / (in_size + out_size)), b = 0."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]

    def __init__(self, in_size: int, out_size: int, *, key: PRNGKeyArray, dtype=None):
        dtype = jnp.result_type(float) if dtype is None else dtype
        host.afford(COPIES * in_size * out_size, f"a layer of {out_size}×{in_size} weights")
        self.weight = host.glorot_normal(key, (out_size, in_size), dtype)
        self.bias = host.zeros(out_size, dtype)

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return self.weight @ x + self.bias


class MLP(eqx.Module):
    """A fully connected network with `depth` hidden layers of `width`, or of the widths in a sequence.

    It returns a scalar when `out_size` is 1. Weights start from the Glorot normal distribution, biases from
    zero; the parameters are ordered layer by layer, weight (out, in) and bias (out,).

    >>> u = MLP(in_size=3, out_size=1, width=64, depth=3, key=jax.random.key(0))
    >>> u(jnp.ones(3)).shape, num_parameters(u)
    ((), 8641)
    """

    layers: tuple[Linear, ...]
    activation: Function = eqx.field(static=True)
    in_size: int = eqx.field(static=True)
    out_size: int = eqx.field(static=True)

    @checked
    def __init__(
        self,
        in_size: Count,
        out_size: Count,
        width: Count | Sequence[Count],
        depth: Whole | None = None,
        *,
        activation: Function = jnp.tanh,
        key: PRNGKeyArray,
        dtype=None,
    ):
        sizes = (in_size, *_hidden_sizes(width, depth), out_size)
        if not callable(activation):
            raise ValueError(f"activation must be a function such as jnp.tanh, got {activation!r}")
        keys = host.split(key, len(sizes) - 1)
        self.layers = tuple(
            Linear(m, n, key=k, dtype=dtype) for m, n, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )
        self.activation = activation
        self.in_size = in_size
        self.out_size = out_size

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = _point(x, self.in_size)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        y = self.layers[-1](x)
        return y[0] if self.out_size == 1 else y


class Fields(eqx.Module):
    """Several named networks in one parameter vector, in the order given.

    Each is an attribute; called, the whole returns the outputs of all as one vector.

    >>> k1, k2 = jax.random.split(jax.random.key(0))
    >>> flow = Fields(u=MLP(2, 2, 32, 2, key=k1), p=MLP(2, 1, 32, 2, key=k2))
    >>> x = jnp.ones(2)
    >>> flow.u(x).shape, flow.p(x).shape, flow(x).shape
    ((2,), (), (3,))
    """

    networks: tuple[Function, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, **networks: Function):
        if not networks:
            raise ValueError("Fields takes at least one named network, such as Fields(u=MLP(...))")
        for name in networks:
            if name in ("networks", "names") or name.startswith("_"):
                raise ValueError(f"{name!r} is taken; give the field another name")
        self.networks = tuple(networks.values())
        self.names = tuple(networks)

    def __getattr__(self, name: str) -> Function:
        # Reached only for what is not an attribute; while a copy is being built, `names` is not one either.
        names = self.__dict__.get("names", ())
        if name in names:
            return self.networks[names.index(name)]
        raise AttributeError(f"no field {name!r}; the fields are {', '.join(names)}")

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, " m"]:
        return jnp.concatenate([jnp.atleast_1d(network(x)) for network in self.networks])


class HardBoundary(eqx.Module):
    """u(x) = lift(x) + distance(x) N(x): equal to `lift` (default: 0) where `distance` vanishes, whatever θ.

    `distance` and `lift` are fixed functions without parameters.

    >>> N = MLP(2, 1, 16, 2, key=jax.random.key(0))
    >>> u = HardBoundary(N, distance=lambda x: jnp.prod(x * (1 - x)))
    >>> u(jnp.array([0.0, 0.3]))
    Array(0., dtype=float32)
    """

    network: Function
    distance: Function = eqx.field(static=True)
    lift: Function | None = eqx.field(static=True)

    def __init__(self, network: Function, distance: Function, lift: Function | None = None):
        for name, function in (("distance", distance), ("lift", lift)):
            if not (callable(function) or (name == "lift" and function is None)):
                raise ValueError(f"{name} must be a function of one point, got {type(function).__name__}")
            if jax.tree.leaves(eqx.filter(function, eqx.is_array)):
                raise ValueError(f"{name} must be a function without parameters, such as lambda x: f(x)")
        self.network = network
        self.distance = distance
        self.lift = lift

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        y = jnp.asarray(self.network(x))
        u = _like("distance", self.distance(x), y) * y
        return u if self.lift is None else _like("lift", self.lift(x), y) + u


class Bounded(Protocol):
    """What `Normalized` asks of a domain."""

    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]: ...


class Normalized(eqx.Module):
    """u(x) = scale · N(2 (x − c) / (b − a)): N sees the box (a, b) around a domain, centre c, as [−1, 1]ᵈ.

    This is where units belong: lengths and times into `domain` (time first, as in its points), the size of u into
    `scale`, a positive number or one for each component of u. The parameters are those of the network. Of several
    fields each has its own: `Fields(u=Normalized(…), p=Normalized(…))`. What stands inside, `Periodic` for one, is in
    coordinates of [−1, 1]; what stands outside, the distance of a `HardBoundary`, in those of the domain.

    >>> from natgrad.domains import Box
    >>> plate = Box([0, 0], [250, 80])  # millimetres
    >>> u = Normalized(MLP(2, 1, 16, 2, key=jax.random.key(0)), plate, scale=300.0)  # kelvins
    >>> u(jnp.array([125.0, 40.0])), num_parameters(u) == num_parameters(u.network)  # the centre is 0
    (Array(0., dtype=float32), True)
    """

    network: Function
    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)
    scale: float | tuple[float, ...] = eqx.field(static=True)

    def __init__(self, network: Function, domain: Bounded, scale: float | Sequence[float] = 1.0):
        if isinstance(network, Fields):
            raise ValueError("each field has a size of its own: write Fields(u=Normalized(…), p=Normalized(…))")
        if not callable(network):
            raise ValueError(f"Normalized takes a network first, got {type(network).__name__}")
        if not callable(getattr(domain, "bounds", None)):
            raise ValueError(f"Normalized takes a domain such as ng.Box(lower, upper), got {type(domain).__name__}")
        self.lower, self.upper = domain.bounds()
        _check_input(network, len(self.lower), f"points of {domain}")
        self.network = network
        self.scale = _scale(scale, getattr(network, "out_size", None))

    @property
    def in_size(self) -> int:
        return len(self.lower)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = _point(x, self.in_size)
        a, b = np.array(self.lower), np.array(self.upper)
        y = self.network((x - ((a + b) / 2).astype(x.dtype)) * (2 / (b - a)).astype(x.dtype))
        if self.scale == 1.0:
            return y
        return y * (self.scale if isinstance(self.scale, float) else np.array(self.scale, y.dtype))


class FourierFeatures(eqx.Module):
    """N([sin 2πBx, cos 2πBx]), the rows of B being frozen frequencies, which are not parameters.

    `frequencies` is B / scale itself, (f, d), or the number f of rows to draw from N(0, scale²) with `key`;
    the network takes 2f inputs. `ng.save` keeps B; saving the leaves alone does not.

    >>> N = MLP(32, 1, 64, 2, key=jax.random.key(0))
    >>> u = FourierFeatures(N, in_size=3, frequencies=16, scale=0.5, key=jax.random.key(1))
    >>> u(jnp.ones(3)).shape, num_parameters(u) == num_parameters(N)
    ((), True)
    """

    network: Function
    frequencies: tuple[tuple[float, ...], ...] = eqx.field(static=True)
    in_size: int = eqx.field(static=True)

    @checked
    def __init__(
        self,
        network: Function,
        in_size: Count,
        frequencies: Count | Float[Array, "f d"],
        *,
        scale: Positive = 1.0,
        key: PRNGKeyArray | None = None,
    ):
        if np.ndim(frequencies) == 0:
            if key is None:
                raise ValueError("frequencies drawn at random take a key, such as key=jax.random.key(0)")
            frequencies = jax.random.normal(host.as_key(key), (int(frequencies), in_size))
        b = scale * np.asarray(frequencies, dtype=float)
        if b.ndim != 2 or b.shape[1] != in_size:
            raise ValueError(f"frequencies must have shape (f, {in_size}), got {b.shape}")
        if not np.isfinite(b).all():
            raise ValueError("frequencies must be finite, got some that are NaN or infinite")
        _check_input(network, 2 * len(b), f"{len(b)} frequencies")
        self.network = network
        self.frequencies = tuple(tuple(row) for row in b.tolist())  # hashable, as static fields must be
        self.in_size = in_size

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = _point(x, self.in_size)
        phase = (2 * np.pi * np.asarray(self.frequencies)).astype(x.dtype) @ x
        return self.network(jnp.concatenate([jnp.sin(phase), jnp.cos(phase)]))


class Periodic(eqx.Module):
    """A network periodic in x_i with period `periods[i]`: it sees sin and cos of 2πx_i / periods[i].

    A coordinate whose period is None is passed on as it is; the network takes 2 inputs for a periodic
    coordinate, 1 for another: the sines, the cosines, then the others.

    >>> u = Periodic(MLP(3, 1, 16, 2, key=jax.random.key(0)), periods=(None, 1.0))  # (t, x), periodic in x
    >>> bool(jnp.allclose(u(jnp.array([0.2, 0.3])), u(jnp.array([0.2, 1.3])), atol=1e-5))
    True
    """

    network: Function
    periods: tuple[float | None, ...] = eqx.field(static=True)

    @checked
    def __init__(self, network: Function, periods: Sequence[Positive | None]):
        inputs = sum(1 if p is None else 2 for p in periods)
        _check_input(network, inputs, f"the periods {tuple(periods)}")
        self.network = network
        self.periods = tuple(None if p is None else float(p) for p in periods)

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = _point(x, len(self.periods))
        periodic = np.array([i for i, p in enumerate(self.periods) if p is not None], dtype=int)
        others = np.array([i for i, p in enumerate(self.periods) if p is None], dtype=int)
        rates = np.array([2 * np.pi / self.periods[i] for i in periodic])
        phase = x[periodic] * rates.astype(x.dtype)
        return self.network(jnp.concatenate([jnp.sin(phase), jnp.cos(phase), x[others]]))


class Apply(eqx.Module):
    """u(x) = apply(params, x): any function with any pytree of parameters, of Flax or of no library at all.

    The floating-point arrays among the leaves of `params` are the parameters. `apply` takes one point (d,) and gives a
    scalar or a vector (m,); a Flax network with one output gives (1,), so take its [0].

    >>> params = {"w": jnp.ones((8, 3)), "v": jnp.ones(8)}
    >>> u = Apply(lambda p, x: p["v"] @ jnp.tanh(p["w"] @ x), params)
    >>> u(jnp.ones(3)).shape, num_parameters(u)
    ((), 32)

    Flax Linen: `Apply(lambda p, x: model.apply(p, x)[0], model.init(key, x))`. Flax NNX:

        graph, state = nnx.split(model)
        u = Apply(lambda state, x: nnx.merge(graph, state)(x)[0], state)
    """

    params: PyTree
    apply: Callable[[PyTree, Array], Array] = eqx.field(static=True)

    def __init__(self, apply: Callable[[PyTree, Array], Array], params: PyTree):
        if not callable(apply):
            raise ValueError(f"Apply takes a function of (params, x) first, got {type(apply).__name__}")
        try:
            self.params = jax.tree.map(host.array, params)
        except TypeError as error:
            raise ValueError("the parameters of Apply must be arrays in dicts, lists or tuples") from error
        self.apply = apply

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        return self.apply(self.params, x)


def num_parameters(network) -> int:
    """The number p of entries of the parameter vector (p,): of all floating-point arrays in the network.

    >>> num_parameters(MLP(in_size=3, out_size=1, width=64, depth=3, key=jax.random.key(0)))
    8641
    """
    return sum(leaf.size for leaf in jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array)))


def _hidden_sizes(width: int | Sequence[int], depth: int | None) -> tuple[int, ...]:
    if np.ndim(width) == 0:
        if depth is None:
            raise ValueError("depth must be the number of hidden layers, which is missing: depth=3, say")
        host.afford(COPIES * int(width) ** 2 * int(depth), f"{depth} layers of width {width}")  # type: ignore[arg-type]
        return (int(width),) * depth  # type: ignore[arg-type]
    sizes = tuple(map(int, width))  # type: ignore[arg-type]
    if depth not in (None, len(sizes)):
        raise ValueError(f"depth must be the number of widths, {len(sizes)}, or left out, got {depth}")
    return sizes


def _point(x, in_size: int) -> Array:
    x = jnp.asarray(x)
    if x.shape != (in_size,):
        hint = "; use jax.vmap" if x.ndim > 1 and x.shape[-1] == in_size else ""
        raise ValueError(f"u takes one point of shape ({in_size},), got {x.shape}{hint}")
    return x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(float)


def _like(name: str, value: Any, y: Array) -> Array:
    """The value of a fixed function at one point: a number, or as many as the network gives there."""
    value = jnp.asarray(value)
    if value.shape not in ((), y.shape):
        right = "a number" if y.ndim == 0 else f"a number, or an array of the network's shape {y.shape},"
        raise ValueError(f"{name} must give {right} at one point, got shape {value.shape}")
    return value


def _scale(scale: float | Sequence[float], outputs: int | None) -> float | tuple[float, ...]:
    try:
        sizes = np.asarray(scale, float)
    except (TypeError, ValueError):
        raise ValueError(f"scale must be a number, or one for each output, got {scale!r}") from None
    if not (np.isfinite(sizes) & (sizes > 0)).all():
        raise ValueError(f"scale must be positive and finite, the size of u, got {scale}")
    if sizes.ndim == 0:
        return float(sizes)
    if sizes.ndim > 1 or (outputs is not None and (outputs == 1 or len(sizes) != outputs)):
        right = "a number" if outputs == 1 else f"a number or {outputs or 'several'} of them, one for each output"
        raise ValueError(f"scale must be {right}, got {scale}")
    return tuple(sizes.tolist())


def _check_input(network: Function, inputs: int, why: str) -> None:
    in_size = getattr(network, "in_size", inputs)
    if in_size != inputs:
        raise ValueError(f"a network with {inputs} inputs is needed for {why}, got one with in_size={in_size}")
