"""The Gramian G = Jᵀ W J of a problem as an operator on flat parameter vectors.

Every strategy works with the weighted Jacobian A = W^½ J (one row per feature: blocks in order, then points, then
components), so that G = AᵀA, and gives the same five products (Table 1 of the paper has their costs):

    mv(v) = G v      mm(V) = G V      diagonal() = diag G      columns(i) = G[:, i]      as_matrix() = G

and `pullback(f) = Jᵀ W f`. Where the metric couples the rows (finite elements), W is an operator G_h between them, the
rows of A are those of J itself, and G = Aᵀ G_h A. Where the points are spread over devices
(`natgrad.backend.parallel`), a device has its own rows of A, rows in and out are these alone, and sums over rows are
`total`s. No strategy adds damping: μ belongs to the direction solver. Vectors are flat, in the order of
`jax.flatten_util.ravel_pytree`.
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PyTree

from natgrad.backend import tuning
from natgrad.backend.chunks import by_columns, by_rows, jacobian
from natgrad.backend.parallel import inside, mean, not_before, total
from natgrad.linalg import Sums, TestMatrix, nystrom_factor, transposed
from natgrad.problem import Features, Problem


class Gramian(eqx.Module):
    """G = Jᵀ W J; see the module's header."""

    problem: eqx.AbstractVar[Problem]
    params: eqx.AbstractVar[PyTree]
    #: The name of the strategy, and why it was chosen.
    strategy: eqx.AbstractClassVar[str]
    reason: eqx.AbstractVar[str]

    @property
    def size(self) -> int:
        """p, the number of parameters."""
        return self.problem.num_parameters

    @property
    def dtype(self) -> Any:
        return self.problem.dtype

    @abc.abstractmethod
    def mv(self, v: Float[Array, " p"]) -> Float[Array, " p"]:
        """G v."""

    @abc.abstractmethod
    def mm(self, V: Float[Array, "p m"]) -> Float[Array, "p m"]:
        """G V."""

    def factor(self, omega: TestMatrix) -> Float[Array, "m p"]:
        """F with FᵀF = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ, the Nyström approximation, by way of the rows.

        With C = AΩ and CᵀG_hC = RᵀR it is F = R⁻ᵀ(G_hC)ᵀA: GΩ itself, whose round-off eps·λ₁ is the same in all
        directions, is never formed. The round-off of F is small where G is. Where Ω has more columns than CᵀG_hC has
        directions above its round-off, the rest would fill F with vectors of noise: they are left out, zeros in F.
        (`linalg.nystrom_factor`.)
        """
        rows = self.push_many(omega)
        C, coupling = transposed(rows), self.problem.coupling(self.params)
        D = C if coupling is None else transposed(coupling.apply(rows))
        return nystrom_factor(C, D, self.pull_many, Sums(total, not_before, inside()))

    def push_many(self, omega: TestMatrix) -> Float[Array, "rows m"]:
        """A Ω."""
        return by_columns(self.push, omega.matrix(), most_at_a_time(self.problem))

    def pull_many(self, values: Float[Array, "m rows"]) -> Float[Array, "m p"]:
        """values A."""
        return by_rows(self.pull, values, most_at_a_time(self.problem))

    @abc.abstractmethod
    def diagonal(self) -> Float[Array, " p"]:
        """diag G, eq. (gram_diagonal)."""

    @abc.abstractmethod
    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "p m"]:
        """G[:, indices]."""

    @abc.abstractmethod
    def as_matrix(self) -> Float[Array, "p p"]:
        """G, dense."""

    @abc.abstractmethod
    def pull(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        """Aᵀ values."""

    def push(self, v: Float[Array, " p"]) -> Float[Array, " rows"]:
        """A v."""
        tangent = ravel_pytree(self.params)[1](v)
        return jax.jvp(lambda p: weighted_features(self.problem, p, self.params), (self.params,), (tangent,))[1]

    def curvature(self, v: Float[Array, " p"]) -> Float[Array, " rows"]:
        """∂²F/∂θ² [v, v]."""
        return second_directional(self.problem, self.params, ravel_pytree(self.params)[1](v))

    def kernel(self, squares: Float[Array, " p"] | None = None) -> Float[Array, "rows rows"]:
        """A diag(squares) Aᵀ, dense; squares are 1 by default."""
        raise ValueError(f"the Gramian {type(self).__name__} couples the rows: it has no kernel A Aᵀ")

    def weigh(self, values: Float[Array, " rows"]) -> Float[Array, " rows"]:
        """c with Jᵀ W values = Aᵀ c: W^½ values, or G_h values."""
        coupling = self.problem.coupling(self.params)
        weighted = sqrt_weights(self.problem, self.params) * values
        return weighted if coupling is None else coupling.apply(weighted)

    def pullback(self, values: Float[Array, " rows"]) -> Float[Array, " p"]:
        """Jᵀ W values, or Jᵀ G_h values."""
        return self.pull(self.weigh(values))

    def loss_gradient(self) -> Float[Array, " p"]:
        """∇L(θ): from this Gramian's own Jacobian where the loss sees the features alone, else by reverse mode."""
        covector = self.problem.covector(self.params)
        if covector is not None:
            return self.pull(covector)
        return mean(ravel_pytree(jax.grad(self.problem.loss)(self.params))[0])


def most_at_a_time(problem: Problem) -> int:
    """How many vectors go through the network together."""
    points = sum(block.num_points for block in problem.features)
    return max(1, min(tuning.NETWORK_VECTORS, tuning.NETWORK_POINTS // points))


def pull(problem: Problem, params: PyTree, values: Float[Array, " rows"]) -> Float[Array, " p"]:
    """Aᵀ values by one reverse pass."""
    _, vjp = jax.vjp(lambda p: weighted_features(problem, p, params), params)
    (out,) = vjp(values)
    return total(ravel_pytree(out)[0])


def feature_values(
    problem: Problem, params: PyTree, frozen: PyTree | None = None, parts: int = 1
) -> Float[Array, " rows"]:
    """F(θ), flat: blocks, points, components. `frozen` are the parameters of the operator's coefficients; the points
    of a block go in `parts`, see `Features.at`."""
    u = problem.network(params)
    base = jax.lax.stop_gradient(problem.network(params if frozen is None else frozen))
    at = lambda block: block.at(u, base, block.inputs, min(parts, block.num_points))
    return jnp.concatenate([at(block).ravel() for block in problem.features])


def sqrt_weights(problem: Problem, params: PyTree) -> Float[Array, " rows"]:
    """W^½, one number for each row."""
    u = jax.lax.stop_gradient(problem.network(params))
    return jnp.concatenate(
        [
            jnp.repeat(root(block.metric_weights(u, block.inputs, block.weights)), block.size)
            for block in problem.features
        ]
    )


def weighted_features(problem: Problem, params: PyTree, frozen: PyTree, parts: int = 1) -> Float[Array, " rows"]:
    """W^½ F(θ), the map whose Jacobian is A."""
    return sqrt_weights(problem, frozen) * feature_values(problem, params, frozen, parts)


def weighted_jacobian(
    problem: Problem,
    block: Features,
    params: PyTree,
    inputs: tuple[Array, ...],
    weights: Float[Array, " n"],
) -> Float[Array, "rows p"]:
    """The rows of A that some points of a block contribute, by reverse mode at each point."""
    frozen = jax.lax.stop_gradient(problem.network(params))
    scale = root(block.metric_weights(frozen, inputs, weights))

    def gradients(point: tuple[Array, ...]) -> list[Array]:
        scale, *row = point
        feature = lambda p: scale * block.one(problem.network(p), frozen, tuple(row))
        if block.size == 1:
            return jax.tree.leaves(jax.grad(lambda p: feature(p)[0])(params))
        return jax.tree.leaves(jax.jacrev(feature)(params))

    def some(points: tuple[Array, ...]) -> list[Float[Array, "k m"]]:
        """Rows of some points, by leaf: unravelling a vector has a transpose that adds a zero-padded copy a leaf."""
        rows = points[0].shape[0] * block.size
        return [leaf.reshape(rows, -1) for leaf in jax.vmap(gradients)(points)]

    leaves = jax.tree.leaves(params)
    widths = [leaf.size for leaf in leaves]
    return jacobian(some, (scale, *inputs), block.size, widths, jnp.result_type(*leaves))


def second_directional(problem: Problem, params: PyTree, direction: PyTree) -> Float[Array, " rows"]:
    """∂²F/∂θ² [v, v]: how far the features bend away from their tangent along v (two nested forward passes)."""
    return second(lambda p: feature_values(problem, p, params), params, direction)


def second(features: Callable[[PyTree], Array], params: PyTree, direction: PyTree) -> Array:
    """The second derivative of features along a direction."""
    first = lambda p: jax.jvp(features, (p,), (direction,))[1]
    return jax.jvp(first, (params,), (direction,))[1]


def root(weights: Array) -> Array:
    """√ of what is not negative but for round-off."""
    return jnp.sqrt(jnp.maximum(weights, 0.0))
