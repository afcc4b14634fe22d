"""`assembled`: G itself, summed from batches of rows."""

from typing import ClassVar

import equinox as eqx
from jaxtyping import Array, Float, Int, PyTree

from natgrad.gramian.base import Gramian, pull
from natgrad.gramian.batched import DEFAULT_BATCH, batches
from natgrad.gramian.stored import StoredJacobian
from natgrad.problem import Problem


class Assembled(Gramian):
    """Set-up O(q [FP] + p²q), product with ℓ vectors O(p²ℓ), memory O(p² + pB)."""

    problem: Problem
    params: PyTree
    matrix: Float[Array, "p p"]
    gradient: Float[Array, " p"] | None
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "assembled"

    def __init__(self, problem: Problem, params: PyTree, batch: int, reason: str = ""):
        self.problem, self.params, self.reason = problem, params, reason
        if batch >= max(block.num_points for block in problem.features):
            whole = StoredJacobian(problem, params)
            self.matrix = whole.as_matrix()
            # The Jacobian is at hand here and only here: take the gradient from it before it goes.
            self.gradient = whole.loss_gradient()
        else:
            self.matrix = batches(problem, params, batch).as_matrix()
            self.gradient = None

    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        return self.matrix @ v

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return self.matrix @ V

    def diagonal(self) -> Float[Array, " p"]:
        return self.matrix.diagonal()

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        return self.matrix[:, indices]

    def as_matrix(self) -> Float[Array, "p p"]:
        return self.matrix

    def pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        return pull(self.problem, self.params, values)

    def kernel(self, squares: Float[Array, " p"] | None = None) -> Float[Array, "rows rows"]:
        return batches(self.problem, self.params, DEFAULT_BATCH).kernel(squares)

    def loss_gradient(self) -> Float[Array, " p"]:
        return super().loss_gradient() if self.gradient is None else self.gradient
