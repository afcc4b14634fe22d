"""Fully connected networks."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.networks.base import Function, point
from natgrad.options import Count, Positive, Whole, checked

FREQUENCY = 2.0  # of sines, where none is given
COPIES = 4  # of the weights of a layer, while they are drawn


class Linear(eqx.Module):
    """x ↦ W x + b, with W from the Glorot normal distribution (variance 2 / (in_size + out_size)) and b = 0; or with
    W of standard deviation `std`, b uniform between −`bias` and `bias`."""

    weight: Float[Array, "out in"]
    bias: Float[Array, " out"]

    def __init__(self, in_size: int, out_size: int, *, key: PRNGKeyArray, dtype=None, std=None, bias=0.0):
        dtype = jnp.result_type(float) if dtype is None else dtype
        host.afford(COPIES * in_size * out_size, f"a layer of {out_size}×{in_size} weights")
        shape, glorot = (out_size, in_size), math.sqrt(2 / (in_size + out_size))
        if std is None:
            self.weight, self.bias = host.glorot_normal(key, shape, dtype), host.zeros(out_size, dtype)
            return
        weight, shift = host.split(key)
        self.weight = std / glorot * host.glorot_normal(weight, shape, dtype)
        self.bias = host.array(bias * (2 * host.uniform(shift, (out_size,), dtype) - 1), dtype)

    def __call__(self, x: Float[Array, " in"]) -> Float[Array, " out"]:
        return self.weight @ x + self.bias


class MLP(eqx.Module):
    """A fully connected network with `depth` hidden layers of `width`, or of the widths in a sequence.

    It returns a scalar when `out_size` is 1. The parameters are ordered layer by layer, weight (out, in) and bias
    (out,). Weights start from the Glorot normal distribution, biases from zero; with `activation=jnp.sin` as
    `sine_start` says, where `frequency` is the angular frequency ω of the first layer (default: 2).

    >>> from natgrad.networks import num_parameters
    >>> u = MLP(in_size=3, out_size=1, width=64, depth=3, key=jax.random.key(0))
    >>> u(jnp.ones(3)).shape, num_parameters(u)
    ((), 8641)
    >>> waves = MLP(in_size=2, out_size=1, width=40, depth=3, activation=jnp.sin, frequency=6.0, key=jax.random.key(0))
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
        frequency: Positive | None = None,
        key: PRNGKeyArray,
        dtype=None,
    ):
        sizes = (in_size, *_hidden_sizes(width, depth), out_size)
        if not callable(activation):
            raise ValueError(f"activation must be a function such as jnp.tanh, got {activation!r}")
        if frequency is not None and (activation is not jnp.sin or len(sizes) < 3):
            raise ValueError("frequency is that of the first of several layers with activation=jnp.sin")
        starts = sine_start(sizes, frequency or FREQUENCY) if activation is jnp.sin else [{}] * (len(sizes) - 1)
        keys = host.split(key, len(sizes) - 1)
        self.layers = tuple(
            Linear(m, n, key=k, dtype=dtype, **start)
            for m, n, k, start in zip(sizes[:-1], sizes[1:], keys, starts, strict=True)
        )
        self.activation = activation
        self.in_size = in_size
        self.out_size = out_size

    def __call__(self, x: Float[Array, " d"]) -> Float[Array, "*m"]:
        x = point(x, self.in_size)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        y = self.layers[-1](x)
        return y[0] if self.out_size == 1 else y


def sine_start(sizes: Sequence[int], frequency: float) -> list[dict[str, float]]:
    """Where the layers of a network with sines start, after SIREN (Sitzmann et al., 2020), for inputs of order one.

    The first layer has weights of standard deviation ω, so that its units are waves of angular frequencies about ω in
    each coordinate, and biases up to ω/√d, their phases; later ones have weights of variance 2/n and biases up to 1/√n,
    the last one variance 1/n and no bias. For z ~ N(0, σ²), E sin² z = (1 − exp(−2σ²))/2. The variance of what enters
    the next sine is thus 1 − exp(−2σ²) up to O(1/n): at most 1, and 0.80 at the fixed point, which attracts, at any
    depth. With Glorot's 1/n it is half of that, which has the fixed point 0 alone: deep networks start linear.
    """
    starts = []
    for i, n in enumerate(sizes[:-1]):
        std, bias = (frequency, frequency / math.sqrt(n)) if i == 0 else (math.sqrt(2 / n), 1 / math.sqrt(n))
        starts.append({"std": std, "bias": bias})
    return [*starts[:-1], {"std": 1 / math.sqrt(sizes[-2]), "bias": 0.0}]


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
