"""Least-squares problems (PINNs): L(θ) = ½ Σ_blocks Σ_i w_i |r(u_θ, x_i)|², with the Gauss–Newton metric.

The features of the metric are the residuals themselves, so the gradient Jᵀ W r comes from the Gramian's own Jacobian.

A block's w_i are the quadrature weights of its points times the weight of the block: a number, or "auto", which
is 1 until `natgrad.optim.balance` finds a better one; `with_weights` puts it in.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import total as add_up
from natgrad.domains import Points, as_points
from natgrad.options import Positive, check, checked, plain
from natgrad.problem.base import Features, Network, Problem, check_block, partition
from natgrad.problem.data import Data, known
from natgrad.problem.errors import ErrorNorms, Exact
from natgrad.problem.evaluation import evaluation_norms
from natgrad.problem.moving import Moves, Placed, moves
from natgrad.problem.units import check_units
from natgrad.problem.validation import Validation, independent, validation
from natgrad.problem.weights import Noise, Weight, balanced, number
from natgrad.problem.window import Window
from natgrad.unknowns import field_names


class Residual(eqx.Module):
    """A residual r(u, x) at points: a scalar or a vector, e.g. `lambda u, x: ng.laplacian(u, x) + f(x)`.

    Arguments:
        fn: `fn(u, x, *data)` at one point x (d,), u the network as a callable.
        points: `Points` of a domain (with quadrature weights), or an array (n, d), whose weights are then 1/n. Points
            that were drawn `fresh` or `adaptive` move during training, see `ng.Resampled`.
        data: further arrays (n, ...) whose rows are handed to `fn` after x: measurements, normals, coefficients; or
            a function of the points that gives them, such as `lambda points: points.normals`. As a function they are
            known at other points too, and the block can be validated (`Solution.validation`).
        weight: multiplies the block's weights (a penalty on a boundary term, say); "auto" balances the block against
            the others, see `ng.Balanced`.
        noise: σ, a number or one for each point, where the residual is a measured value's (each component's): every
            point then has the weight 1/σ² in place of its quadrature weight, and the block's loss is the negative
            logarithm of its likelihood. A number `weight` multiplies that: 0.5 counts each measurement as half a one.
    """

    fn: Callable = eqx.field(static=True)
    points: Points
    data: tuple[Array, ...]
    weight: float | str = eqx.field(static=True)
    #: points ↦ their data; None where the data are arrays, known at these points alone.
    tabulate: Callable | None = eqx.field(static=True)
    #: Whether the points have the weights of measurements.
    observed: bool = eqx.field(static=True)

    @checked
    def __init__(
        self,
        fn: Callable,
        points: Points | Array,
        *,
        data: Data = (),
        weight: Weight = 1.0,
        noise: Noise = None,
    ):
        if not callable(fn):
            raise ValueError(f"a residual is a function of (u, x), got {type(fn).__name__}")
        self.fn, self.weight, self.observed = fn, weight, noise is not None
        self.points = as_points(points)
        if self.observed and (self.points.moving or weight == "auto"):
            raise ValueError(
                'noise gives the weights 1/σ² of measurements: they are at fixed points, and weight="auto" is left out'
            )
        self.data, self.tabulate = known(data, self.points)
        if noise is not None:  # nobody measured at other points
            self.points, self.tabulate = as_points(self.points, precisions(noise, len(self.points))), None


def precisions(noise: Any, n: int) -> Float[np.ndarray, " n"]:
    """1/σ² of each point."""
    try:
        sigma = np.asarray(noise, float)
    except (TypeError, ValueError):
        raise ValueError(f"noise must be a number, or one for each point, got {type(noise).__name__}") from None
    if sigma.shape not in ((), (n,)):
        raise ValueError(f"noise must be a number, or one for each of the {n} points, got shape {sigma.shape}")
    if bad := int(np.sum(~(np.isfinite(sigma) & (sigma > 0)))):
        raise ValueError(f"noise must be positive and finite, got {bad} of {n} that are not")
    return np.broadcast_to(1 / sigma**2, (n,))


class LeastSquares(Problem):
    """½ Σ w |r|² over named residual blocks.

        problem = ng.LeastSquares(network, pde=ng.Residual(…), boundary=ng.Residual(…), exact=exact)

    Arguments:
        network: an Equinox module, callable on one point (d,); its floating-point arrays are the parameters.
        weights: "auto" balances all blocks; by default each has a weight of its own.
        exact: the exact solution, as a function of one point or as {field: function}; errors are then reported. Where
            u is known at points alone, its values there, or {field: values}.
        evaluation: the points of these errors. By default ten times as many as the largest block has, drawn
            independently from the same domain.
        blocks: the residuals, by name.
    """

    params: PyTree
    static: PyTree
    features: tuple[Features, ...]
    norms: ErrorNorms | None
    validation: Validation | None
    #: The weight of each block, in order; 1 where it is yet to be found.
    weights: Float[Array, " blocks"]
    least_squares: ClassVar[bool] = True
    caution: ClassVar[tuple[float, float]] = (1e-6, 1.0)

    def __init__(
        self,
        network: Network,
        *,
        weights: str | None = None,
        exact: Exact | Mapping[str, Exact] | None = None,
        evaluation: Points | None = None,
        **blocks: Residual,
    ):
        if not blocks:
            raise ValueError("a least-squares problem needs at least one residual block, e.g. pde=ng.Residual(…)")
        for name, block in blocks.items():
            if not isinstance(block, Residual):
                raise ValueError(f"block {name!r} must be an ng.Residual(fn, points), got {type(block).__name__}")
        self.params, self.static = partition(network)
        auto = balanced(weights, blocks)
        self.features = tuple(
            replace(_features(name, block, network, self.dtype), auto=name in auto) for name, block in blocks.items()
        )
        self.weights = host.array([number(block.weight) for block in blocks.values()], self.dtype)
        check_units(network, [(f.name, blocks[f.name].fn, f.inputs) for f in self.features])
        points = [block.points for block in blocks.values()]
        self.norms = evaluation_norms(exact, evaluation, points, network, self.dtype)
        others = [partial(independent, b.points, b.tabulate, number(b.weight)) for b in blocks.values()]
        self.validation = validation(self.features, others, self.dtype)

    def with_weights(self, weights: Mapping[str, Any] | Float[Array, " blocks"]) -> "LeastSquares":
        """The problem with other weights of its blocks: all of them in order, or some by name, `{"boundary": 100}`.

        Blocks that are given one are no longer "auto".
        """
        names = [block.name for block in self.features]
        if isinstance(weights, Mapping):
            given = dict(weights)
        elif np.shape(weights) != (len(names),):
            raise ValueError(f"weights must be one for each of the blocks {', '.join(names)}, got {weights!r}")
        else:
            given = dict(zip(names, jnp.asarray(weights), strict=True))
        if unknown := set(given) - set(names):
            raise ValueError(f"there is no block {min(unknown)!r} to give a weight: there are {', '.join(names)}")
        for name, value in given.items():
            if not host.traced(value):
                check(f"the weight of {name!r}", plain(value), Positive)
        new = jnp.stack([jnp.asarray(given.get(n, w), self.dtype) for n, w in zip(names, self.weights, strict=True)])
        factors = dict(zip(names, new / self.weights, strict=True))
        features = tuple(
            replace(block, weights=factors[block.name] * block.weights, auto=block.auto and block.name not in given)
            for block in self.features
        )
        changed = eqx.tree_at(lambda problem: (problem.features, problem.weights), self, (features, new))
        if self.validation is None:
            return changed
        return eqx.tree_at(lambda problem: problem.validation, changed, self.validation.scaled(factors))

    @property
    def moving(self) -> dict[str, Moves]:
        return {block.name: block.moves for block in self.features if block.moves is not None}

    def placed(self) -> dict[str, Placed]:
        weights = dict(zip((block.name for block in self.features), self.weights, strict=True))
        blocks = {block.name: block for block in self.features}
        return {
            name: moves.placed(blocks[name].inputs, blocks[name].weights / weights[name])
            for name, moves in self.moving.items()
        }

    def at(self, points: Mapping[str, Placed]) -> "LeastSquares":
        pairs = zip(self.features, self.weights, strict=True)
        features = tuple(block.moved(points[block.name], w) if block.name in points else block for block, w in pairs)
        return eqx.tree_at(lambda problem: problem.features, self, features)

    def residual_size(self, name: str, params: PyTree, inputs: tuple[Array, ...]) -> Float[Array, " n"]:
        u = self.network(params)
        block = next(block for block in self.features if block.name == name)
        return jnp.linalg.norm(block.at(u, u, inputs), axis=1)

    def residuals(self, params: PyTree) -> dict[str, Float[Array, "n k"]]:
        """The residuals of each block, by name."""
        u = self.network(params)
        return {block.name: block.at(u, u, block.inputs) for block in self.features}

    def losses(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """The loss of each block, by name."""
        residuals = self.residuals(params)
        return {f.name: add_up(0.5 * jnp.sum(f.weights[:, None] * residuals[f.name] ** 2)) for f in self.features}

    def loss(self, params: PyTree) -> Float[Array, ""]:
        return sum(self.losses(params).values(), start=jnp.zeros((), self.dtype))

    @property
    def validated(self) -> bool:
        return self.validation is not None

    def validate(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        if self.validation is None:
            return {}
        return self.validation(self.network(params), lambda: self.losses(params))

    def solution_size(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """The ratio of root mean squares at the points of the first block; of several fields, the greatest change."""
        block = self.features[0]
        now, before = (u.network if isinstance(u, Window) else u for u in map(self.solution, (params, self.params)))
        if not _takes(now, block.inputs[0]):
            return {}

        def square(u: Network) -> Float[Array, ""]:
            values = jax.vmap(lambda x: jnp.sum(u(x) ** 2))(block.inputs[0])
            return add_up(jnp.sum(block.weights * values))

        names = field_names(now)
        pairs = [(getattr(now, name), getattr(before, name)) for name in names] if names else [(now, before)]
        ratios = jnp.sqrt(jnp.stack([square(u) / square(first) for u, first in pairs]))
        return {"size": ratios[jnp.argmax(jnp.abs(jnp.log(ratios)))]}

    def covector(self, params: PyTree) -> Float[Array, " rows"]:
        """W^½ r."""
        residuals = self.residuals(params)
        return jnp.concatenate([(jnp.sqrt(f.weights)[:, None] * residuals[f.name]).ravel() for f in self.features])

    def changes(self, params: PyTree) -> Callable[[PyTree], Float[Array, ""]]:
        """½ Σ w (r⁺ − r)·(r⁺ + r): exact to round-off in the difference, not in the loss."""
        old = self.residuals(params)

        def change(new: PyTree) -> Float[Array, ""]:
            fresh = self.residuals(new)
            total = jnp.zeros((), self.dtype)
            for block in self.features:
                r, r_new = old[block.name], fresh[block.name]
                total += 0.5 * jnp.sum(block.weights[:, None] * (r_new - r) * (r_new + r))
            return add_up(total)

        return change


def _takes(u: Network, points: Array) -> bool:
    """Whether a network is a function of these points, and not of others that a residual makes of them."""
    try:
        jax.eval_shape(u, host.row(points))
    except Exception:
        return False
    return True


def _features(name: str, block: Residual, network: Network, dtype: Any) -> Features:
    fn = block.fn
    inputs = tuple(host.array(a, dtype) for a in (block.points.x, *block.data))
    out = check_block(name, fn, network, tuple(map(host.row, inputs)), "residual")
    return Features(
        name=name,
        inputs=inputs,
        weights=host.array(number(block.weight) * host.numpy(block.points.weights), dtype),
        size=1 if out.ndim == 0 else out.shape[0],
        evaluate=_Residual(fn),
        moves=moves(block.points, block.tabulate),
        observed=block.observed,
    )


class _Residual:
    """`evaluate` of a residual: nothing is frozen. Equal where the functions are, so that rebuilding a problem from the
    same functions compiles nothing anew."""

    def __init__(self, fn: Callable):
        self.fn = fn

    def __call__(self, u: Network, frozen: Network, *row: Array) -> Float[Array, " k"]:
        return jnp.atleast_1d(self.fn(u, *row))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Residual) and self.fn == other.fn

    def __hash__(self) -> int:
        return hash((_Residual, self.fn))
