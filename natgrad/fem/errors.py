"""Relative errors of a finite-element function by Gauss quadrature on every cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from natgrad.backend import host
from natgrad.fem.forms import tabulate

if TYPE_CHECKING:
    from natgrad.fem.base import Cells


class FEErrors(eqx.Module):
    """‖u − u*‖ / ‖u*‖ in L² and H¹ of nodal values (N,). u* and ∇u* are evaluated once, at the quadrature points; u* is
    a function of one point, or a finite-element function, by its own nodal values.

    `problem.norms(problem.nodal(params))` of a FEINN with `exact=…` is {"l2": …, "h1": …}.
    """

    dofs: Int[Array, "e b"]
    phi: Float[Array, "q b"]
    slopes: Float[Array, "q b d"]
    inverse: Float[Array, "e #q d d"]
    weights: Float[Array, "e q"]
    values: Float[Array, "e q"]
    gradients: Float[Array, "e q d"]

    def __init__(self, cells: Cells, exact: Callable | np.ndarray):
        self.dofs = host.array(cells.dofs, np.int32)
        self.phi, self.slopes = host.array(cells.phi), host.array(cells.slopes)
        affine = np.ptp(cells.inverse, axis=1).max() <= 1e-12 * np.abs(cells.inverse).max()
        self.inverse = host.array(cells.inverse[:, :1] if affine else cells.inverse)
        self.weights = host.array(cells.weights)
        if not callable(exact):
            self.values, self.gradients = self._at(host.array(exact))
            return
        shape = cells.points.shape
        flat = cells.points.reshape(-1, shape[-1])
        values = tabulate(exact, flat, "exact solution")
        if values.ndim != 1:
            raise ValueError(f"the exact solution must give a number at one point, got shape {values.shape[1:]}")
        gradients = tabulate(exact, flat, "exact solution's gradient", gradient=True)
        self.values = host.array(values.reshape(shape[:-1]))
        self.gradients = host.array(gradients.reshape(shape))

    def __call__(self, nodal: Float[Array, " N"]) -> dict[str, Float[Array, ""]]:
        """{"l2": …, "h1": …}, relative."""
        values, gradients = self._at(jnp.asarray(nodal))
        l2 = jnp.sum(self.weights * (values - self.values) ** 2)
        h1 = l2 + jnp.sum(self.weights * jnp.sum((gradients - self.gradients) ** 2, axis=-1))
        size = jnp.sum(self.weights * self.values**2)
        size_h1 = size + jnp.sum(self.weights * jnp.sum(self.gradients**2, axis=-1))
        return {"l2": jnp.sqrt(l2 / size), "h1": jnp.sqrt(h1 / size_h1)}

    def _at(self, nodal: Float[Array, " N"]) -> tuple[Float[Array, "e q"], Float[Array, "e q d"]]:
        """The function with these nodal values, and its gradient, at the quadrature points."""
        u = nodal[self.dofs]
        reference = jnp.einsum("eb,qbr->eqr", u, self.slopes)
        return u @ self.phi.T, jnp.sum(reference[..., None] * self.inverse, axis=-2)
