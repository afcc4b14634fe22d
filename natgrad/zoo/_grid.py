"""Regular grids of space and time, where publications measure errors of evolution problems."""

from collections.abc import Sequence

import numpy as np

from natgrad.backend import host
from natgrad.domains import Points, SpaceTime


def grid(domain: SpaceTime, times: int, positions: int) -> Points:
    """`times` × `positions` points (t, x), first and last ones on the boundary, all with the same weight."""
    (start, left), (end, right) = domain.bounds()
    axes = np.meshgrid(np.linspace(start, end, times), np.linspace(left, right, positions), indexing="ij")
    z = np.stack(axes, axis=-1).reshape(-1, 2)
    return Points(host.array(z), host.array(np.full(len(z), domain.measure / len(z))))


def regular(cylinder: SpaceTime, times: int, cells: int, within: Sequence[tuple[float, float]] | None = None) -> Points:
    """The middles of `times` equal parts of the time and of `cells` parts of each axis of space (or of the box `within`
    it), all of the same weight."""
    (start, *lower), (end, *upper) = cylinder.bounds()
    box = list(zip(lower, upper, strict=True)) if within is None else within
    axes = [middles(start, end, times), *(middles(a, b, cells) for a, b in box)]
    x = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    measure = (end - start) * float(np.prod([b - a for a, b in box]))
    return Points(host.array(x), host.array(np.full(len(x), measure / len(x))))


def middles(a: float, b: float, n: int) -> np.ndarray:
    return a + (b - a) * (np.arange(n) + 0.5) / n
