"""The inside and the boundary of a combination that is not in the plane: points drawn by rejection."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from natgrad.domains import rules
from natgrad.domains.box import BoxPieces
from natgrad.domains.combined import across, sides
from natgrad.domains.pieces import Pieces

if TYPE_CHECKING:
    from natgrad.domains.combined import Combined

NO_GAUSS = "rule 'gauss' covers combinations in the plane, not {domain}; take rule='sobol'"


@dataclass(frozen=True)
class Inside(Pieces):
    """The inside of a domain as a part of the box around it."""

    domain: Combined

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.domain.dim

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return self.domain.dim

    @property
    def sizes(self) -> np.ndarray:
        return self._box.measures

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return _measures(self)

    @property
    def _box(self) -> BoxPieces:
        lower, upper = self.domain.bounds()
        return BoxPieces(lower, upper, (None,))

    def place(self, piece, u):
        return self._box.place(piece, u)

    def keep(self, piece, u):
        return sides(self.domain, self.place(piece, u)[0]) > 0

    def axis_counts(self, n, piece):
        raise ValueError(NO_GAUSS.format(domain=self.domain))


@dataclass(frozen=True)
class Visible(Pieces):
    """What remains of the boundaries of primitives, (number of the primitive, its pieces) each."""

    domain: Combined
    boundaries: tuple[tuple[int, Pieces], ...]

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.domain.dim - 1

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return max(pieces.cube_dim for _, pieces in self.boundaries)

    @property
    def sizes(self) -> np.ndarray:
        return np.concatenate([pieces.sizes for _, pieces in self.boundaries])

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return _measures(self)

    def place(self, piece, u):
        x, normals, sign = self._placed(piece, u)
        return x, normals * sign[:, None]

    def keep(self, piece, u):
        return self._placed(piece, u)[2] != 0

    def _placed(self, piece, u):
        """Points, the normals of their primitives, and whether these are the domain's (`combined.across`)."""
        xp, first = rules.namespace(u), 0
        x, normals = xp.zeros((2, len(u), self.domain.dim), u.dtype)
        sign = xp.zeros(len(u), u.dtype)
        for owner, pieces in self.boundaries:
            count = len(pieces.sizes)
            own, number = (piece >= first) & (piece < first + count), xp.clip(piece - first, 0, count - 1)
            first += count
            if xp is np:  # those alone
                here, outward = pieces.place(number[own], u[own, : pieces.cube_dim])
                x[own], normals[own], sign[own] = here, outward, across(self.domain, owner, here, outward)
                continue
            here, outward = pieces.place(number, u[:, : pieces.cube_dim])
            x, normals = xp.where(own[:, None], here, x), xp.where(own[:, None], outward, normals)
            sign = xp.where(own, across(self.domain, owner, here, outward), sign)
        return x, normals, sign

    def axis_counts(self, n, piece):
        raise ValueError(NO_GAUSS.format(domain=self.domain))


@functools.lru_cache(maxsize=256)
def _measures(pieces: Inside | Visible) -> np.ndarray:
    from natgrad.domains.volumes import measures

    return measures(pieces)
