"""The loss at points nobody trained on: ½ Σ w |r(u_θ, x')|² with x' drawn independently of the x of training.

A network with more freedom than its points hold it by makes the residual small at the points and lets it peak between
them. The training loss cannot see that; a mean square over independent points of the same sets can. Every block draws
its own, as its `Points` say how (`Points.redraw`). Blocks that cannot be drawn again, points given by hand or data that
belong to their own points alone, are left out, and the comparison is with the training loss of the others.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.backend.parallel import total
from natgrad.domains import Points
from natgrad.problem.base import Features, Network

LEAST = 1_000  # points a block: a layer of a thousandth of the domain is then seen more often than not
MOST = 20_000  # a mean square is known to a few percent long before; larger blocks pay less than once more their loss

Sample = tuple[tuple[Array, ...], Float[Array, " n"]]  # the inputs of a block, and its weights


def independent(
    points: Points,
    tabulate: Callable[[Points], tuple[Array, ...]] | None,
    weight: float,
    key: PRNGKeyArray,
) -> Sample | None:
    """A block's inputs and weights at other points, `LEAST` to `MOST`, their data by `tabulate`; None without any."""
    fresh = None if tabulate is None else points.redraw(min(max(len(points), LEAST), MOST), key)
    if fresh is None or tabulate is None:
        return None
    try:
        data = tabulate(fresh)
    except Exception:  # a function of these very points, which holds arrays of their number, say
        return None
    return (fresh.x, *data), host.array(weight * host.numpy(fresh.weights))


class Validation(eqx.Module):
    """The blocks of a least-squares problem that can be drawn again, at independent points."""

    blocks: tuple[Features, ...]
    #: Whether these are all blocks of the problem.
    complete: bool = eqx.field(static=True)

    def scaled(self, factors: Mapping[str, Array]) -> "Validation":
        """The validation with the weights of the blocks multiplied."""
        blocks = tuple(dataclasses.replace(b, weights=factors[b.name] * b.weights) for b in self.blocks)
        return Validation(blocks, self.complete)

    def loss(self, u: Network) -> Float[Array, ""]:
        """½ Σ w |r|² there."""
        residuals = [block.at(u, u, block.inputs) for block in self.blocks]
        squares = [0.5 * jnp.sum(b.weights[:, None] * r**2) for b, r in zip(self.blocks, residuals, strict=True)]
        return total(sum(squares[1:], start=squares[0]))

    def __call__(self, u: Network, losses: Callable[[], Mapping[str, Array]]) -> dict[str, Float[Array, ""]]:
        """The `validation` loss, and, where it leaves blocks out, the `training` loss of the same blocks."""
        if self.complete:
            return {"validation": self.loss(u)}
        known = losses()
        own = [known[block.name] for block in self.blocks]
        return {"validation": self.loss(u), "training": sum(own[1:], start=own[0])}


def validation(
    features: Sequence[Features], others: Sequence[Callable[[PRNGKeyArray], Sample | None]], dtype: Any
) -> Validation | None:
    """The validation of a problem with these blocks, and how each is drawn again; None where none can be."""
    blocks = []
    for block, other, key in zip(features, others, host.split(host.key(host.VALIDATION), len(features)), strict=True):
        if (sample := other(key)) is not None:
            inputs, weights = tuple(host.array(a, dtype) for a in sample[0]), host.array(sample[1], dtype)
            blocks.append(Features(block.name, inputs, weights, block.size, block.evaluate))
    return Validation(tuple(blocks), len(blocks) == len(features)) if blocks else None
