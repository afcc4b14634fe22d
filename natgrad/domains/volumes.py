"""Measures of combinations that are not in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from natgrad.domains import rules
from natgrad.domains.pieces import Pieces

if TYPE_CHECKING:
    from natgrad.domains.combined import Combined

SAMPLES = 2**18


def estimated(pieces: Pieces) -> np.ndarray:
    """The measures of pieces that are parts of their images, by the share of a Sobol sequence that they keep."""
    if pieces.dim == 0:
        u = np.full((1, pieces.cube_dim), 0.5)
    else:
        u = rules.sobol(SAMPLES, pieces.cube_dim).astype(float)
    shares = [np.mean(pieces.keep(np.full(len(u), i), u)) for i in range(len(pieces.sizes))]
    return pieces.sizes * np.array(shares)
