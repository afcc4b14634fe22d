"""How the points of a block move during training: parts that are fresh or adaptive are drawn anew, others stay.

Adaptive points are drawn from a pool of candidates x_j with quadrature weights v_j. With the density p of
`natgrad.domains.moving`, a candidate comes with probability q_j = v_j p(x_j) / Σ v p, by systematic sampling (the
n points at (i + ξ)/n of the cumulative sum, ξ uniform: each candidate comes n q_j times up to one), and with the weight
v_j / (n q_j). The weights of a part are scaled to the sum they had, so that the integral of 1 stays exact.
"""

from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad.backend.parallel import gather, own_rows
from natgrad.domains import ByResidual, Points
from natgrad.domains.pieces import Drawn

#: inputs of a block ↦ how much is wrong there (n,).
Score = Callable[[tuple[Array, ...]], Float[Array, " n"]]


class Placed(eqx.Module):
    """Where the points of a block are, on all devices: what its function takes there, and quadrature weights."""

    inputs: tuple[Array, ...]
    weights: Float[Array, " n"]

    def own_rows(self, rows: int) -> "Placed":
        """This device's share, `rows` of them."""
        return Placed(tuple(own_rows(a, rows, fill="edge") for a in self.inputs), own_rows(self.weights, rows))


@dataclass(frozen=True)
class Moves:
    """How some points move, part by part in their order; `tabulate` gives the data of others."""

    parts: tuple[Drawn, ...]
    tabulate: Callable[[Points], tuple[Array, ...]]

    def placed(self, inputs: tuple[Array, ...], weights: Float[Array, " n"]) -> Placed:
        """The place of all points, from the rows that each device has."""
        count = sum(part.count for part in self.parts)
        with_dtype = lambda a: jnp.asarray(gather(a, count), a.dtype)  # no weak types, which a step would not give back
        return Placed(tuple(map(with_dtype, inputs)), with_dtype(weights))

    def __call__(self, now: Placed, key: PRNGKeyArray, iteration: Int[Array, ""], score: Score) -> Placed:
        """Where the points are in a step."""
        ends = np.cumsum([part.count for part in self.parts])
        keys = jax.random.split(key, len(self.parts))
        moved = []
        for part, end, sub in zip(self.parts, ends, keys, strict=True):
            piece = jax.tree.map(lambda a, start=end - part.count, end=end: a[start:end], now)
            moved.append(self._part(part, piece, sub, iteration, score))
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), *moved)

    def _part(self, part: Drawn, now: Placed, key: PRNGKeyArray, iteration: Int[Array, ""], score: Score) -> Placed:
        rule = part.policy
        if rule is None:
            return now
        if not isinstance(rule, ByResidual):
            return self._drawn(part, part.count, key, now)
        due = (iteration > 0) & (iteration % rule.every == 0)
        return jax.lax.cond(due, lambda: self._adapted(part, rule, now, key, score), lambda: now)

    def _adapted(self, part: Drawn, rule: ByResidual, now: Placed, key: PRNGKeyArray, score: Score) -> Placed:
        draw, pick = jax.random.split(key)
        pool = self._drawn(part, rule.pool * part.count, draw, now)
        density = relative_density(score(pool.inputs), pool.weights, rule)
        offset = jax.random.uniform(pick, (), density.dtype)
        chosen, weights = systematic(pool.weights, density, part.count, offset)
        return _scaled(Placed(tuple(a[chosen] for a in pool.inputs), weights), now)

    def _drawn(self, part: Drawn, n: int, key: PRNGKeyArray, like: Placed) -> Placed:
        """n points spread evenly."""
        points = part.anew(n, key)
        arrays = (points.x, *self.tabulate(points))
        inputs = tuple(a.astype(b.dtype) for a, b in zip(arrays, like.inputs, strict=True))
        return _scaled(Placed(inputs, points.weights.astype(like.weights.dtype)), like)


def moves(points: Points, tabulate: Callable[[Points], tuple[Array, ...]] | None) -> Moves | None:
    """How points move; None where they stay."""
    if not points.moving or points.origin is None or tabulate is None:
        return None
    if sum(part.count for part in points.origin) != len(points):
        raise ValueError("points that are fresh or adaptive were picked by hand, and cannot be drawn anew: take all")
    return Moves(points.origin, tabulate)


def relative_density(score: Float[Array, " n"], weights: Float[Array, " n"], rule: ByResidual) -> Float[Array, " n"]:
    """p at candidates; 1 where nothing is wrong, or nothing finite."""
    peak = jnp.max(jnp.where(jnp.isfinite(score), score, 0.0))
    share = jnp.where(jnp.isfinite(score) & (peak > 0), score / jnp.where(peak > 0, peak, 1.0), 1.0) ** rule.power
    mean = weights @ share / jnp.sum(weights)
    return (share / mean + rule.floor) / (1 + rule.floor)


def systematic(
    weights: Float[Array, " m"], density: Float[Array, " m"], n: int, offset: Float[Array, ""]
) -> tuple[Int[Array, " n"], Float[Array, " n"]]:
    """n of the candidates, in their order, and their weights: Σ w f over them has the mean Σ v f over all."""
    share = weights * density / (weights @ density)
    total = jnp.cumsum(share)
    chosen = jnp.searchsorted(total / total[-1], (jnp.arange(n) + offset) / n, side="right")
    chosen = jnp.minimum(chosen, len(weights) - 1)
    return chosen, weights[chosen] / (n * share[chosen])


def _scaled(drawn: Placed, like: Placed) -> Placed:
    """The drawn points, with weights of the same sum as before."""
    return Placed(drawn.inputs, drawn.weights * (jnp.sum(like.weights) / jnp.sum(drawn.weights)))
