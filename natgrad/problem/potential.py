"""The nonlinear part of an energy: ∫ W(u, x) dx of a finite-element function u, with its derivatives in u."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from natgrad.backend import host
from natgrad.fem import BaseSpace
from natgrad.indices import trace

GAUSS = np.polynomial.legendre.leggauss(8)


class Potential(eqx.Module):
    """∫ W(u, x) dx of a finite-element function by quadrature on the cells, with its derivatives in u."""

    dofs: Int[Array, "e b"]
    phi: Float[Array, "q b"]
    points: Float[Array, "e q d"]
    weights: Float[Array, "e q"]
    density: Callable = eqx.field(static=True)

    def __init__(self, space: BaseSpace, density: Callable):
        cells = space.cells(4 * space.degree)  # u⁴ is integrated exactly
        self.dofs, self.phi = host.array(cells.dofs, np.int32), host.array(cells.phi)
        self.points, self.weights = host.array(cells.points), host.array(cells.weights)
        self.density = density
        try:
            out, wrong = trace(density, host.array(np.zeros(())), host.array(np.zeros(space.dim)))
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"the potential must be a function W(u, x) of a number and a point: {reason}") from error
        if wrong:
            raise ValueError(f"the potential: {wrong}; a point has shape ({space.dim},)")
        if np.shape(out) != ():
            raise ValueError(f"the potential W(u, x) must give a number, got shape {np.shape(out)}")

    def _at_points(self, derivative: int, u: Float[Array, "e q"]) -> Float[Array, "e q"]:
        f = self.density
        for _ in range(derivative):
            f = jax.grad(f)
        return jax.vmap(jax.vmap(f))(u, self.points)

    def _interpolate(self, nodal: Float[Array, " N"]) -> Float[Array, "e q"]:
        return nodal[self.dofs] @ self.phi.T

    def energy(self, nodal: Float[Array, " N"]) -> Float[Array, ""]:
        return jnp.sum(self.weights * self._at_points(0, self._interpolate(nodal)))

    def slope(self, nodal: Float[Array, " N"]) -> Float[Array, " N"]:
        """∫ W'(u) φ_i."""
        local = (self.weights * self._at_points(1, self._interpolate(nodal))) @ self.phi
        return jnp.zeros_like(nodal).at[self.dofs].add(local)

    def matrices(self, nodal: Float[Array, " N"], *, convex: bool) -> Float[Array, "e b b"]:
        """∫ W''(u) φ_i φ_j on every cell; `convex` takes max(W'', 0), as a metric must."""
        second = self._at_points(2, self._interpolate(nodal))
        second = jnp.maximum(second, 0.0) if convex else second
        return jnp.einsum("qi,eq,qj->eij", self.phi, self.weights * second, self.phi)

    def difference(self, nodal: Float[Array, " N"], delta: Float[Array, " N"]) -> Float[Array, ""]:
        """∫ W(u + δ) − W(u) as ∫∫₀¹ W'(u + tδ) δ dt, by a Gauss rule in t that is exact for polynomials."""
        u, d = self._interpolate(nodal), self._interpolate(delta)
        total = jnp.zeros_like(u)
        for t, w in zip(*GAUSS, strict=True):
            total += 0.5 * w * self._at_points(1, u + 0.5 * (1 + t) * d)
        return jnp.sum(self.weights * total * d)
