"""The inside of a combination in the plane: cells {left < x < right, bottom(x) < y < top(x)} between its curves.

Vertical lines through the ends of the curves, and through the leftmost and rightmost points of arcs, cut the plane into
slabs. Within a slab curves do not meet; from below to above, every other gap between them is inside. Neighbours between
the same two curves are one cell.

The cube maps onto a cell by the inverse of its area to the left of x, by bisection, and then linearly from bottom to
top. Gauss rules are Gauss-Legendre in x between segments. Between arcs, which may be vertical at the ends, they are
Gauss-Legendre in s with x = middle - half cos(π s), where everything is smooth.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from natgrad.domains import rules
from natgrad.domains.arrangement import ROUND_OFF, TANGENT, Curves, visible
from natgrad.domains.pieces import Frozen, Pieces

if TYPE_CHECKING:
    from natgrad.domains.combined import Combined


@dataclass(frozen=True)
class Cells(Pieces):
    """Cells as rows (left, right, bottom…, top…); a curve is (side, c₁, c₂, r): the line y = c₂ + r (x - c₁) where side
    is 0, the arc y = c₂ ± √(r² - (x - c₁)²) where it is ±1."""

    table: Frozen

    dim = 2
    cube_dim = 2

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        rows = self.table.values
        return _area(rows, rows[:, 1])

    def place(self, piece, u):
        xp = rules.namespace(u)
        rows = xp.asarray(self.table.values)[piece]  # in double precision where there is some: areas cancel
        target = u[:, 0] * xp.asarray(self.measures)[piece]

        def halve(_, ends):
            low, high = ends
            middle = (low + high) / 2
            left = _area(rows, middle) < target
            return xp.where(left, middle, low), xp.where(left, high, middle)

        ends = (rows[:, 0], rows[:, 1])
        count = jnp.finfo(rows.dtype).nmant + 2
        if xp is jnp:
            ends = jax.lax.fori_loop(0, count, halve, ends)
        else:
            for i in range(count):
                ends = halve(i, ends)
        x = (ends[0] + ends[1]) / 2
        bottom, top = _height(rows[:, 2:6], x), _height(rows[:, 6:], x)
        return xp.stack([x, bottom + u[:, 1] * (top - bottom)], axis=1), None

    def axis_counts(self, n, piece):
        return n if isinstance(n, tuple) else (rules.per_axis(n, 2),) * 2

    def axis_rules(self, counts, piece):
        row = self.table.values[piece]
        s, weights = rules.gauss_legendre(counts[0])
        if row[2] or row[6]:
            s, weights = (1 - np.cos(np.pi * s)) / 2, weights * np.sin(np.pi * s)
        x = row[0] + s * (row[1] - row[0])
        weights = weights * (_height(row[6:], x) - _height(row[2:6], x))
        u = _area(row, x) / _area(row, row[1])
        return [(u, weights / weights.sum()), rules.gauss_legendre(counts[1])]


def inside(domain: Combined, curves: Curves | None = None) -> Cells:
    """The cells of a combination, between the curves of its boundary."""
    if curves is None:
        curves = visible(domain, tuple((i, part.boundary_pieces()) for i, part in enumerate(domain.primitives)))
    if not len(curves.measures):
        return Cells(Frozen(np.zeros((0, 10))))
    ends, graphs, names = _graphs(curves)
    size = domain.scale()
    breaks = _breaks(ends.ravel(), ROUND_OFF * size)
    first, last = (np.abs(breaks[:, None] - end).argmin(axis=0) for end in ends.T)
    cells: list[list] = []  # [left, right, bottom's number, top's number]
    open_cells: dict[tuple, list] = {}
    for i, (left, right) in enumerate(pairwise(breaks)):
        here = np.flatnonzero((first <= i) & (i < last))
        here = here[np.argsort(_height(graphs[here], np.full(len(here), (left + right) / 2)), kind="stable")]
        if len(here) % 2:
            if right - left < TANGENT * size:
                continue
            raise ValueError(f"the boundary of {domain} does not close: its parts nearly touch; move them a little")
        still = {}
        for bottom, top in zip(here[::2], here[1::2], strict=True):
            name = (names[bottom], names[top])
            cell = open_cells.get(name, [left, right, bottom, top])
            if cell[1] == right:
                cells.append(cell)
            cell[1] = right
            still[name] = cell
        open_cells = still
    rows = [np.concatenate([cell[:2], graphs[cell[2]], graphs[cell[3]]]) for cell in cells]
    table = np.array(rows).reshape(-1, 10)
    return Cells(Frozen(table[_area(table, table[:, 1]) > (ROUND_OFF * size) ** 2]))


def _graphs(curves: Curves) -> tuple[np.ndarray, np.ndarray, list[tuple]]:
    """The curves as graphs over x: their ends (m, 2), their rows (m, 4), and what tells them apart."""
    ends, graphs, names = [], [], []
    for radius, *four, _, curve, _ in curves.table.values:
        if radius == 0:
            ax, ay, bx, by = four
            slope = (by - ay) / (bx - ax) if ax != bx else 0.0
            ends.append(sorted((ax, bx)))
            graphs.append((0.0, ax, ay, slope))
            names.append((curve, 0))
            continue
        cx, cy, start, sweep = four
        turns = np.pi * np.arange(np.ceil(start / np.pi), np.floor((start + sweep) / np.pi) + 1)
        angles = np.unique(np.concatenate([[start], turns, [start + sweep]]))
        for one, other in pairwise(angles):
            side = np.sign(np.sin((one + other) / 2))
            ends.append(sorted(cx + radius * np.cos([one, other])))
            graphs.append((side, cx, cy, radius))
            names.append((curve, side))
    return np.array(ends).reshape(-1, 2), np.array(graphs).reshape(-1, 4), names


def _breaks(x: np.ndarray, tol: float) -> np.ndarray:
    x = np.sort(x)
    return x[np.append(True, np.diff(x) > tol)]


def _height(graph, x):
    """y at x."""
    xp = rules.namespace(x)
    side, c, y, r = graph[..., 0], graph[..., 1], graph[..., 2], graph[..., 3]
    arc = side * xp.sqrt(xp.maximum((r - x + c) * (r + x - c), 0))
    return y + xp.where(side == 0, r * (x - c), arc)


def _primitive(graph, x):
    """∫ y dx up to x, from the centre of an arc or the start of a line."""
    xp = rules.namespace(x)
    side, c, y, r = graph[..., 0], graph[..., 1], graph[..., 2], graph[..., 3]
    t = x - c
    height = xp.sqrt(xp.maximum((r - t) * (r + t), 0))
    arc = side / 2 * (t * height + r**2 * xp.arctan2(t, height))
    return y * t + xp.where(side == 0, r * t**2 / 2, arc)


def _area(rows, x):
    """The area of cells to the left of x."""
    left, bottom, top = rows[..., 0], rows[..., 2:6], rows[..., 6:]
    parts = [_primitive(graph, end) for graph in (top, bottom) for end in (x, left)]
    return (parts[0] - parts[1]) - (parts[2] - parts[3])
