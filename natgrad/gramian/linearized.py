"""`linearized`: `jax.linearize` of the features and its transpose; no Jacobian, not even a batch of it."""

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend import tuning
from natgrad.backend.chunks import by_columns
from natgrad.backend.parallel import total
from natgrad.gramian.base import Gramian, most_at_a_time, weighted_features
from natgrad.gramian.batched import batches
from natgrad.problem import Coupling, Problem


class Linearized(Gramian):
    """Set-up and each product with a vector O(q [FP]); memory O(q) activations.

    The diagonal and the dense matrix are no products with vectors: they are summed from batches of `batch` rows.
    """

    problem: Problem
    params: PyTree
    linear: Callable[[PyTree], Array]
    coupling: Coupling | None
    batch: int = eqx.field(static=True)
    reason: str = eqx.field(static=True)
    strategy: ClassVar[str] = "linearized"

    def __init__(self, problem: Problem, params: PyTree, batch: int, reason: str = ""):
        self.problem, self.params, self.batch, self.reason = problem, params, batch, reason
        self.coupling = problem.coupling(params)
        parts = tuning.POINT_PARTS.here()
        # A `Partial` whose leaves are the activations.
        _, self.linear = jax.linearize(lambda p: weighted_features(problem, p, params, parts), params)

    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        return total(self._own(v))

    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        return total(by_columns(self._own, V, most_at_a_time(self.problem)))

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        unit = lambda i: jnp.zeros(self.size, self.problem.dtype).at[i[0]].set(1.0)
        return total(by_columns(lambda i: self._own(unit(i)), indices[None], most_at_a_time(self.problem)))

    def diagonal(self) -> Float[Array, " p"]:
        return batches(self.problem, self.params, self.batch).diagonal()

    def as_matrix(self) -> Float[Array, "p p"]:
        return batches(self.problem, self.params, self.batch).as_matrix()

    def pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        return total(self._pull(values))

    def push(self, v: Float[Array, " p"]) -> Float[Array, " rows"]:
        return self.linear(ravel_pytree(self.params)[1](v))

    def _pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        (out,) = jax.linear_transpose(self.linear, self.params)(values)
        return ravel_pytree(out)[0]

    def _own(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        """What the rows of this device give of G v."""
        rows = self.push(v)
        return self._pull(rows if self.coupling is None else self.coupling.apply(rows))

    def kernel(self, squares: Float[Array, " p"] | None = None) -> Float[Array, "rows rows"]:
        return batches(self.problem, self.params, self.batch).kernel(squares)
