"""Axis-parallel boxes in any dimension."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import equinox as eqx
import numpy as np

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.domain import Domain, as_vector
from natgrad.domains.pieces import Pieces, sample
from natgrad.domains.points import Points

Face = tuple[int, str]  # (axis, "lower" or "upper")
SIDES = ("lower", "upper")


class Box(Domain):
    """The box ∏ᵢ (lowerᵢ, upperᵢ).

        cube = Box([0, 0, 0], [1, 1, 1])
        cube.interior(1000, key=jax.random.key(0)).x.shape      # (1000, 3)
        cube.boundary(600, rule="gauss").measure                # 6.0
        cube.boundary(100, rule="sobol", faces=[(0, "lower")])  # the face x₀ = 0

    The boundary of a one-dimensional box is its two ends, each with weight 1, for every n and rule.
    """

    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, lower, upper):
        self.lower, self.upper = as_vector(lower, "lower"), as_vector(upper, "upper")
        if len(self.lower) != len(self.upper):
            raise ValueError(f"lower and upper must have the same length, got {len(self.lower)} and {len(self.upper)}")
        for i, (a, b) in enumerate(zip(self.lower, self.upper, strict=True)):
            if a >= b:
                raise ValueError(f"lower must be less than upper, got {a} ≥ {b} along axis {i}")

    def __repr__(self) -> str:
        return f"Box({list(self.lower)}, {list(self.upper)})"

    @property
    def dim(self) -> int:
        return len(self.lower)

    def contains(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        lower, upper = np.array(self.lower, x.dtype), np.array(self.upper, x.dtype)
        return host.array(((x >= lower - tol) & (x <= upper + tol)).all(axis=-1))

    def on_boundary(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        lower, upper = np.array(self.lower, x.dtype), np.array(self.upper, x.dtype)
        outside = ((x < lower - tol) | (x > upper + tol)).any(axis=-1)
        return host.array(~outside & ((x <= lower + tol) | (x >= upper - tol)).any(axis=-1))

    def boundary(
        self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, faces: Sequence[Face] | None = None
    ) -> Points:
        """n points on the boundary, or on some of its faces, given as pairs (axis, "lower" or "upper").

        With a tuple n, Gauss rules take n[i] points along axis i on every face that extends along this axis.
        """
        return sample(self.boundary_pieces(faces), n, key, rule, fresh, adaptive)

    def interior_pieces(self) -> Pieces:
        return BoxPieces(self.lower, self.upper, (None,))

    def boundary_pieces(self, faces: Sequence[Face] | None = None) -> Pieces:
        if faces is None:
            faces = [(axis, side) for axis in range(self.dim) for side in SIDES]
        return BoxPieces(self.lower, self.upper, tuple(_check_faces(faces, self.dim)))

    def bounds(self):
        return self.lower, self.upper


@dataclass(frozen=True)
class BoxPieces(Pieces):
    """The box itself (None) or faces of it. The cube of a face keeps all d axes, and one of them is pinned."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    faces: tuple[Face | None, ...]

    @property
    def dim(self) -> int:  # type: ignore[override]
        return len(self.lower) - (self.faces[0] is not None)

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return len(self.lower)

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        sides = np.subtract(self.upper, self.lower)
        return np.array([np.prod(np.delete(sides, face[0]) if face else sides) for face in self.faces])

    def place(self, piece, u):
        xp = rules.namespace(u)
        lower, upper = np.array(self.lower, u.dtype), np.array(self.upper, u.dtype)
        x = xp.clip(lower + u * (upper - lower), lower, upper)
        if self.dim == self.cube_dim:
            return x, None
        normals = np.zeros((len(self.faces), self.cube_dim), u.dtype)
        for i, face in enumerate(self.faces):
            if face is not None:
                normals[i, face[0]] = -1 if face[1] == "lower" else 1
        outward = xp.asarray(normals)[piece]
        return xp.where(outward < 0, lower, xp.where(outward > 0, upper, x)), outward

    def axis_counts(self, n, piece):
        if not isinstance(n, tuple):
            n = (rules.per_axis(n, self.dim),) * self.cube_dim
        face = self.faces[piece]
        return n if face is None else tuple(1 if axis == face[0] else m for axis, m in enumerate(n))


def _check_faces(faces: Sequence[Face], dim: int) -> list[Face]:
    known = f"an axis from 0 to {dim - 1} with 'lower' or 'upper', for example (0, 'lower')"
    if isinstance(faces, str) or not isinstance(faces, Iterable):
        raise ValueError(f"faces must be a list, got {faces!r}, a face is {known}")
    checked: list[Face] = []
    for face in faces:
        try:
            axis, side = face
            right = axis in range(dim) and side in SIDES
        except (TypeError, ValueError):
            right = False
        if not right:
            raise ValueError(f"unknown face {face!r}, a face is {known}")
        if (axis, side) in checked:
            raise ValueError(f"face {face!r} is given twice")
        checked.append((int(axis), side))
    if not checked:
        raise ValueError(f"faces must not be empty, a face is {known}")
    return checked
