"""Whether a network sees its points at a size it can work with; NumPy on the host, before anything is compiled.

Points outside the box of an `ng.Normalized` are an error. Of an MLP with the first layer W, b, that sees the points of
all blocks as z, two things are worth a warning:

    |Wz + b| > 4 for a quarter of units and points         tanh is flat there: 1 − tanh² < 2e-3
    max_j |W_ji| · (max z_i − min z_i) < 0.03 for an i     the network hardly depends on z_i

In the zoo the share is 0 and the other number 0.1 to 5; lengths a hundred times as long or as short are beyond both.
Networks with periodic activations are as sensitive as they were made to be, and are not looked at.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Array

from natgrad.backend import host
from natgrad.networks import MLP, Fields, FourierFeatures, HardBoundary, Normalized, Periodic
from natgrad.problem.base import Network
from natgrad.problem.window import Window
from natgrad.unknowns import Unknown

FLAT, SHARE, LEAST = 4.0, 0.25, 0.03
ENOUGH = 1000  # points, to know a share by
PERIODIC = ("sin", "cos")

#: The name of a block, its function of (u, *row), and its inputs: points first.
Block = tuple[str, Callable, tuple[Array, ...]]


def check_units(network: Network, blocks: Iterable[Block]) -> None:
    """Raises where points are outside the domain of a network that is evaluated there; warns as the header says."""
    seen: dict[str, tuple[MLP, list[tuple[Block, np.ndarray]]]] = {}
    for block in blocks:
        name, _, inputs = block
        if host.traced((network, inputs)):
            continue
        for field, part, z in _walk(network, np.asarray(inputs[0])):
            if z.shape[1:] != (part.in_size,):
                continue  # the block makes other points of these
            if isinstance(part, MLP):
                seen.setdefault(field, (part, []))[1].append((block, z))
            elif (where := _outside(part, z)) and _reaches(part, network, block):
                whose = f"the Normalized field {field!r}" if field else "the Normalized network"
                raise ValueError(f"{where} of block {name!r} lie outside the box of {whose}, {_box(part)}")
    for field, (part, views) in seen.items():
        if _strange(part, [z for _, z in views]) is None:
            continue
        if reason := _strange(part, [z for block, z in views if _reaches(part, network, block)]):
            name = f"the MLP of the field {field!r}" if field else "the MLP"
            warnings.warn(f"{name} {reason}; ng.Normalized(network, domain) brings lengths to order one", stacklevel=5)


def _walk(network: Any, z: np.ndarray, field: str = "") -> Iterator[tuple[str, Any, np.ndarray]]:
    """The networks with bounds or with a first layer, by field, each with the points as it sees them."""
    if isinstance(network, Fields):
        for name, part in zip(network.names, network.networks, strict=True):
            yield from _walk(part, z, name)
    elif isinstance(network, Unknown):
        yield from _walk(network.free, z, field)
    elif isinstance(network, MLP):
        yield field, network, z
    elif isinstance(network, Normalized):
        yield field, network, z
        lower, upper = np.array(network.lower), np.array(network.upper)
        if z.shape[1:] == lower.shape:
            yield from _walk(network.network, (2 * z - lower - upper) / (upper - lower), field)
    elif isinstance(network, HardBoundary | Window):  # the blocks of a window have its own time
        yield from _walk(network.network, z, field)
    elif isinstance(network, FourierFeatures) and z.shape[1:] == (network.in_size,):
        phase = 2 * np.pi * z @ np.array(network.frequencies).T
        yield from _walk(network.network, np.concatenate([np.sin(phase), np.cos(phase)], axis=1), field)
    elif isinstance(network, Periodic) and z.shape[1:] == (len(network.periods),):
        periodic, rates, others = network.waves()
        phase = z[:, periodic] * rates
        yield from _walk(network.network, np.concatenate([np.sin(phase), np.cos(phase), z[:, others]], axis=1), field)


def _outside(part: Normalized, z: np.ndarray) -> str:
    """How many points are outside, beyond round-off, and the first of them; empty where there is none."""
    lower, upper = np.array(part.lower), np.array(part.upper)
    tol = 64 * np.finfo(z.dtype).eps * np.maximum(np.abs(lower), np.abs(upper)).max()
    found = np.flatnonzero(((z < lower - tol) | (z > upper + tol)).any(axis=1))
    if not found.size:
        return ""
    first = ", ".join(f"{float(c):.6g}" for c in z[found[0]])
    return f"{found.size} of {len(z)} points (the first: {first})"


def _box(part: Normalized) -> str:
    return " × ".join(f"[{a:.6g}, {b:.6g}]" for a, b in zip(part.lower, part.upper, strict=True))


def _strange(part: MLP, views: list[np.ndarray]) -> str | None:
    """What is wrong with the size of the inputs of an MLP, if anything is."""
    if not views or len(part.layers) < 2 or getattr(part.activation, "__name__", "") in PERIODIC:
        return None
    z = np.concatenate(views)
    W, b = np.asarray(part.layers[0].weight), np.asarray(part.layers[0].bias)
    some = z[:: -(-len(z) // ENOUGH)]
    flat = np.mean(np.abs(some @ W.T + b) > FLAT)
    if flat > SHARE:
        return f"sees inputs as large as {np.abs(z).max():.3g}, which saturate {flat:.0%} of its first layer"
    ranges = np.ptp(z, axis=0)
    reach = np.where(ranges > 0, ranges * np.abs(W).max(axis=0), np.inf)  # a coordinate that is fixed is no length
    i = int(np.argmin(reach))
    if reach[i] < LEAST:
        return f"is nearly constant in x[{i}], of which it sees a range of {ranges[i]:.3g}"
    return None


def _reaches(part: Network, network: Network, block: Block) -> bool:
    """Whether a block evaluates a part of the network, by the parameters its trace reads."""
    _, fn, inputs = block
    own = {id(leaf) for leaf in jax.tree.leaves(part)}
    arrays, rest = eqx.partition(network, eqx.is_inexact_array)
    leaves, structure = jax.tree.flatten(arrays)

    def trace(leaves: list[Array], *row: Array) -> Any:
        return fn(eqx.combine(jax.tree.unflatten(structure, leaves), rest), *row)

    jaxpr = jax.make_jaxpr(trace)(leaves, *map(host.row, inputs)).jaxpr
    read = {id(v) for equation in jaxpr.eqns for v in equation.invars if not isinstance(v, Literal)}
    return any(id(v) in read for v, leaf in zip(jaxpr.invars, leaves, strict=False) if id(leaf) in own)
