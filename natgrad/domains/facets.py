"""Domains bounded by many flat facets: segments in the plane, triangles in space.

A point is inside where the surface winds around it: where the angles that facets span as seen from there, with the sign
of their side, sum to 2π, in space the solid angles to 4π (Van Oosterom and Strackee, 1983). The sum is 0 outside, jumps
at the surface alone, and does not mind rounding. Its cost is that of points times facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from natgrad.backend import host
from natgrad.domains import rules
from natgrad.domains.box import BoxPieces
from natgrad.domains.domain import Domain
from natgrad.domains.pieces import Frozen, Pieces, sample
from natgrad.domains.points import Points
from natgrad.domains.simplices import Simplices

AnyArray = Array | np.ndarray
AT_ONCE = 2**18  # pairs of a point and a facet


class Faceted(Domain):
    """What is within a closed surface of facets, corners (m, d, d) with the normal outward, in the plane to the right.

    A part of the boundary is a name, a function of the facets' midpoints x (d, m) to booleans, or a list of these.
    """

    facets: eqx.AbstractVar[Frozen]
    parts: eqx.AbstractVar[tuple[tuple[str, Frozen], ...]]  # names, and the numbers of their facets

    @property
    def dim(self) -> int:
        return self.facets.values.shape[2]

    def contains(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        facets = self.facets.values.astype(x.dtype)
        inside = lambda x: winding(x, facets) > 0.5
        if tol > 0:
            inside = lambda x: (winding(x, facets) > 0.5) | (distance(x, facets) <= tol)
        return host.array(in_portions(inside, x, len(facets)))

    def on_boundary(self, x, tol=None):
        x, tol = self.as_coordinates(x, tol)
        facets = self.facets.values.astype(x.dtype)
        return host.array(in_portions(lambda x: distance(x, facets) <= tol, x, len(facets)))

    def boundary(self, n, *, key=None, rule="monte-carlo", fresh=False, adaptive=None, part: Any = None) -> Points:
        """n points on the boundary, or on a part of it."""
        return sample(self.boundary_pieces(part), n, key, rule, fresh, adaptive)

    def boundary_pieces(self, part: Any = None) -> Pieces:
        facets = self.facets.values[self._numbers(part)]
        return Simplices(Frozen(facets), Frozen(normals(facets)))

    def _numbers(self, part: Any) -> np.ndarray:
        """The numbers of the facets of a part."""
        known = dict(self.parts)
        if part is None:
            return np.arange(len(self.facets.values))
        if isinstance(part, list | tuple) and part:
            return np.unique(np.concatenate([self._numbers(one) for one in part]))
        if isinstance(part, str):
            if part not in known:
                raise ValueError(f"{self} has no boundary {part!r} (it has {', '.join(sorted(known)) or 'no names'})")
            return known[part].values
        if not callable(part):
            raise ValueError(f"a part of the boundary is a name, a function of x or a list of these, got {part!r}")
        found = np.flatnonzero(np.asarray(part(self.facets.values.mean(axis=1).T)))
        if not len(found):
            raise ValueError("no facet of the boundary belongs to this part")
        return found

    def bounds(self):
        corners = self.facets.values.reshape(-1, self.dim)
        return tuple(corners.min(axis=0).tolist()), tuple(corners.max(axis=0).tolist())


@dataclass(frozen=True)
class Filled(Pieces):
    """What is within closed facets, as a part of the box around them."""

    facets: Frozen

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.facets.values.shape[2]

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return self.dim

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        return np.array([volume(self.facets.values)])

    @property
    def sizes(self) -> np.ndarray:
        return self._box.measures

    @property
    def _box(self) -> BoxPieces:
        corners = self.facets.values.reshape(-1, self.dim)
        return BoxPieces(tuple(corners.min(axis=0).tolist()), tuple(corners.max(axis=0).tolist()), (None,))

    def place(self, piece, u):
        return self._box.place(piece, u)

    def keep(self, piece, u):
        facets = self.facets.values.astype(u.dtype)
        return in_portions(lambda x: winding(x, facets) > 0.5, self.place(piece, u)[0], len(facets))

    def axis_counts(self, n, piece):
        raise ValueError("rule 'gauss' needs the cells of a mesh, not a surface; take rule='sobol', or ng.Mesh")


def volume(facets: Float[np.ndarray, "m d d"]) -> float:
    """The area or volume within, by the divergence theorem; negative where the normals look inward."""
    d = facets.shape[2]
    local = facets - facets.reshape(-1, d).mean(axis=0)
    return float(np.sum(np.linalg.det(local)) / (2 if d == 2 else 6))


def normals(facets: Float[np.ndarray, "m d d"]) -> Float[np.ndarray, "m d"]:
    """Unit normals: to the right of segments, by the right-hand rule of triangles."""
    edges = facets[:, 1:] - facets[:, :1]
    if facets.shape[2] == 2:
        normal = np.stack([edges[:, 0, 1], -edges[:, 0, 0]], axis=1)
    else:
        normal = np.cross(edges[:, 0], edges[:, 1])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def winding(x: Float[AnyArray, "n d"], facets: Float[np.ndarray, "m d d"]) -> Float[AnyArray, " n"]:
    """How often the surface winds around points: 1 inside, 0 outside."""
    xp = rules.namespace(x)
    corners = [facets[:, i] - x[:, None, :] for i in range(facets.shape[1])]
    if len(corners) == 2:
        a, b = corners
        turn = xp.arctan2(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0], (a * b).sum(axis=-1))
        return turn.sum(axis=1) / (2 * np.pi)
    a, b, c = corners
    lengths = [xp.sqrt((v**2).sum(axis=-1)) for v in corners]
    dots = [(b * c).sum(axis=-1), (c * a).sum(axis=-1), (a * b).sum(axis=-1)]
    below = lengths[0] * lengths[1] * lengths[2] + sum(dot * size for dot, size in zip(dots, lengths, strict=True))
    angle = xp.arctan2((a * xp.cross(b, c)).sum(axis=-1), below)
    return angle.sum(axis=1) / (2 * np.pi)


def distance(x: Float[AnyArray, "n d"], facets: Float[np.ndarray, "m d d"]) -> Float[AnyArray, " n"]:
    """From points to the nearest facet."""
    xp, d = rules.namespace(x), facets.shape[1]
    near = []
    for i in range(d if d == 3 else 1):
        a, along = facets[:, i], facets[:, (i + 1) % d] - facets[:, i]
        offset = x[:, None, :] - a
        t = ((offset * along).sum(axis=-1) / (along**2).sum(axis=-1)).clip(0, 1)
        near.append(((offset - t[..., None] * along) ** 2).sum(axis=-1))
    if d == 3:
        normal, above = normals(facets), np.ones((1, 1), bool)
        for i in range(3):
            a, along = facets[:, i], facets[:, (i + 1) % 3] - facets[:, i]
            above = above & (((x[:, None, :] - a) * np.cross(normal, along)).sum(axis=-1) >= 0)
        height = ((x[:, None, :] - facets[:, 0]) * normal).sum(axis=-1) ** 2
        near.append(xp.where(above, height, np.inf))
    return xp.sqrt(xp.stack(near).min(axis=0).min(axis=1))


def in_portions(question, x, count: int):
    """The answers (…,) at points (…, d), some at a time, since each meets `count` facets."""
    flat, portion = x.reshape(-1, x.shape[-1]), max(1, AT_ONCE // count)
    if rules.namespace(x) is not np:
        answers = jax.lax.map(lambda one: question(one[None])[0], flat, batch_size=portion)
    else:
        answers = np.concatenate([question(flat[i : i + portion]) for i in range(0, len(flat), portion)] or [[]])
        answers = answers.astype(bool)
    return answers.reshape(x.shape[:-1])
