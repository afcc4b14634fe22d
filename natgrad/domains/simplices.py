"""Simplices as pieces: segments, triangles and tetrahedra, and those of them that bound a domain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from natgrad.domains import rules
from natgrad.domains.pieces import Frozen, Pieces


@dataclass(frozen=True)
class Simplices(Pieces):
    """Simplices with corners (p, k + 1, d), and, where they bound a domain, outward unit normals (p, d).

    The cube maps to v₀ + s₁ (v₁ - v₀ + s₂ (v₂ - v₁ + …)) with sᵢ = uᵢ^(1/(k + 1 - i)). Gauss rules are collapsed
    products: in sᵢ the rule for the weight sᵢ^(k - i), so that m points an axis are exact to degree 2m - 1.
    """

    corners: Frozen
    normals: Frozen | None = None

    @property
    def dim(self) -> int:  # type: ignore[override]
        return self.corners.values.shape[1] - 1

    @property
    def cube_dim(self) -> int:  # type: ignore[override]
        return self.dim

    @property
    def measures(self) -> np.ndarray:  # type: ignore[override]
        corners = self.corners.values
        edges = corners[:, 1:] - corners[:, :1]
        if self.dim == edges.shape[2]:
            return np.abs(np.linalg.det(edges)) / math.factorial(self.dim)
        gramians = edges @ np.swapaxes(edges, 1, 2)
        return np.sqrt(np.linalg.det(gramians)) / math.factorial(self.dim)

    def place(self, piece, u):
        xp, k = rules.namespace(u), self.dim
        corners = xp.asarray(self.corners.values.astype(u.dtype))[piece]
        x = corners[:, k]
        for i in reversed(range(k)):
            s = u[:, i : i + 1] ** (1 / (k - i))
            x = (1 - s) * corners[:, i] + s * x
        return x, None if self.normals is None else xp.asarray(self.normals.values.astype(u.dtype))[piece]

    def axis_counts(self, n, piece):
        return n if isinstance(n, tuple) else (rules.per_axis(n, self.dim),) * self.dim

    def axis_rules(self, counts, piece):
        powers = range(self.dim - 1, -1, -1)
        nodes = [
            rules.gauss_power(m, float(p)) if p else rules.gauss_legendre(m)
            for m, p in zip(counts, powers, strict=True)
        ]
        return [(s ** (p + 1), weights) for (s, weights), p in zip(nodes, powers, strict=True)]
