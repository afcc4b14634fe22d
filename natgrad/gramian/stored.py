"""`jacobian`: A = W^½ J is computed once and stored; every product is one or two passes over it."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from natgrad.gramian.base import Gramian, sqrt_weights, weighted_jacobian
from natgrad.linalg import cross, gram, gram_mm
from natgrad.problem import Problem


class StoredJacobian(Gramian):
    """Set-up O(q [FP]), product with ℓ vectors O(pqℓ), memory O(pq)."""

    problem: Problem
    params: PyTree
    jacobian: Float[Array, "rows p"]
    root_weights: Float[Array, " rows"]
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "jacobian"

    def __init__(self, problem: Problem, params: PyTree, reason: str = ""):
        self.problem, self.params, self.reason = problem, params, reason
        blocks = [weighted_jacobian(problem, f, params, f.inputs, f.weights) for f in problem.features]
        self.jacobian = blocks[0] if len(blocks) == 1 else jnp.concatenate(blocks)
        self.root_weights = sqrt_weights(problem, params)

    # (A v) A and not Aᵀ (A v): XLA on CPU would write the transpose of A to memory first.
    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        return (self.jacobian @ v) @ self.jacobian

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return gram_mm(self.jacobian, V)

    def diagonal(self) -> Float[Array, " p"]:
        return jnp.sum(self.jacobian**2, axis=0)

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        return cross(self.jacobian, self.jacobian[:, indices])

    def as_matrix(self) -> Float[Array, "p p"]:
        return gram(self.jacobian)

    def pullback(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        return (self.root_weights * values) @ self.jacobian
