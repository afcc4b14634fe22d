"""Lagrange polynomials in one variable, in product form (stable at every degree used here), and the rules on [0, 1].

L(t) = ∏_r (t − r) / (a − r)      over the roots r, normalized to 1 at a.
"""

import numpy as np


def lobatto(degree: int) -> np.ndarray:
    """The degree + 1 Gauss–Lobatto points of [0, 1], ends included."""
    inner = np.polynomial.legendre.Legendre.basis(degree).deriv().roots()
    points = np.concatenate([[-1.0], np.sort(np.real(inner)), [1.0]])
    upper = (points - points[::-1] + 2)[degree // 2 + 1 :] / 4
    return np.concatenate([1 - upper[::-1], [0.5] * (degree % 2 == 0), upper])  # symmetric to the last bit


def gauss(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the Gauss rule on [0, 1] that is exact for polynomials of the given degree."""
    points, weights = np.polynomial.legendre.leggauss(max(order, 2) // 2 + 1)
    return (1 + points) / 2, weights / 2


def product(t: np.ndarray, roots: np.ndarray, at: float) -> tuple[np.ndarray, np.ndarray]:
    """L and L′ at the points t."""
    value, slope = np.ones_like(t), np.zeros_like(t)
    for root in roots:
        slope = (slope * (t - root) + value) / (at - root)
        value = value * (t - root) / (at - root)
    return value, slope


def table(t: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and slopes (points, nodes) of the nodal polynomials at the points t."""
    pairs = [product(t, np.delete(nodes, j), nodes[j]) for j in range(len(nodes))]
    return np.stack([value for value, _ in pairs], axis=-1), np.stack([slope for _, slope in pairs], axis=-1)
