"""Whether a form may be an energy or a metric: u ↦ a(u, u) must be bounded below, and so not fall with the slope of u.

A diffusion that is negative somewhere makes it fall without bound, on any mesh. A negative reaction may be made up for
by the diffusion: then the signs of the pivots of LDLᵀ, which are those of the eigenvalues, decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from natgrad.fem.base import BaseSpace
from natgrad.fem.forms import Form
from natgrad.fem.riesz import INDEFINITE, Factor

ROUND = 1e-12  # of the largest coefficient


def check_definite(
    what: str, space: BaseSpace, form: Any, matrix: scipy.sparse.csr_array, free: np.ndarray, linear: bool = True
) -> None:
    """Refuses a symmetric form, assembled as `matrix`, that has negative eigenvalues on the free nodes.

    Where it is not `linear`, a nonlinear term beside the form may make up for a negative reaction.
    """
    if isinstance(form, Form):
        points = space.cells(2 * space.degree if form.order is None else form.order).points.reshape(-1, space.dim)
        points = points[:1] if form.constant else points
        C = form.matrix(points)
        least = np.linalg.eigvalsh((C + np.swapaxes(C, 1, 2))[:, 1:, 1:] / 2).min(axis=1)
        worst = int(np.argmin(least))
        if least[worst] < -ROUND * np.abs(C).max():
            where = "" if form.constant else f" at x = ({', '.join(f'{c:.3g}' for c in points[worst])})"
            raise ValueError(f"{what} needs a diffusion that is not negative, got {least[worst]:.3g}{where}")
        if C[:, 0, 0].min() >= 0:
            return
    if not linear:
        return
    try:
        Factor(matrix[free][:, free])
    except ValueError as error:
        if str(error) == INDEFINITE:
            raise ValueError(
                f"{what} needs a form without negative eigenvalues, {form} has some on the free nodes: its reaction is "
                "too negative"
            ) from None
