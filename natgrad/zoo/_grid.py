"""Regular grids in space and time, where publications measure their errors."""

import numpy as np

from natgrad.backend import host
from natgrad.domains import Points, SpaceTime


def grid(domain: SpaceTime, times: int, positions: int) -> Points:
    """`times` × `positions` points (t, x), first and last ones on the boundary, all with the same weight."""
    (start, left), (end, right) = domain.bounds()
    axes = np.meshgrid(np.linspace(start, end, times), np.linspace(left, right, positions), indexing="ij")
    z = np.stack(axes, axis=-1).reshape(-1, 2)
    return Points(host.array(z), host.array(np.full(len(z), domain.measure / len(z))))
