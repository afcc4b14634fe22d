"""S G S for a diagonal S: the Gramian of rescaled parameters."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Int

from natgrad.linalg import TestMatrix


class Scaled(eqx.Module):
    """The five products of S G S, S = diag(scale)."""

    gramian: Any
    scale: Float[Array, " p"]

    @property
    def size(self) -> int:
        return self.gramian.size

    @property
    def dtype(self) -> Any:
        return self.gramian.dtype

    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        return self.scale * self.gramian.mv(self.scale * v)

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return self.scale[:, None] * self.gramian.mm(self.scale[:, None] * V)

    def factor(self, omega: TestMatrix) -> Float[Array, "m p"]:
        return self.gramian.factor(omega.scale(self.scale)) * self.scale

    def diagonal(self) -> Float[Array, " p"]:
        return self.scale**2 * self.gramian.diagonal()

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        return self.scale[:, None] * self.gramian.columns(indices) * self.scale[indices]

    def as_matrix(self) -> Float[Array, "p p"]:
        return self.scale[:, None] * self.gramian.as_matrix() * self.scale
