"""Energy problems: L(θ) = Σ_blocks Σ_i w_i e(u_θ, x_i), with a metric of their own (Deep Ritz, Newton, Sobolev)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import total as add_up
from natgrad.domains import ByResidual, Points, as_points
from natgrad.problem.base import CALLED, HINTS, Features, Network, Problem, check_block, partition
from natgrad.problem.data import Data, known
from natgrad.problem.errors import ErrorNorms, Exact
from natgrad.problem.evaluation import evaluation_norms
from natgrad.problem.metrics import Metric
from natgrad.problem.moving import Moves, Placed, moves
from natgrad.problem.units import check_units
from natgrad.problem.validation import Validation, independent, validation


class Energy(eqx.Module):
    """An energy density e(u, x) at points, with the metric it contributes.

    Arguments:
        density: `density(u, x, *data)`, a scalar.
        points: `Points`, or an array (n, d), whose weights are then 1/n.
        metric: the metric on the same points; None where the block adds nothing to the metric.
        difference: `difference(u, new, x, *data)` = e(new, x) − e(u, x), written so that nothing cancels. Near the
            minimum a quadratic energy changes by less than its own round-off; with ½|∇u|² − fu and δ = new − u, write
            ∇u·∇δ + ½|∇δ|² − fδ. By default the two densities are subtracted point by point.
        data: further arrays (n, ...) whose rows are handed on after x; or a function of the points that gives them.
    """

    per_point: ClassVar[bool] = True

    density: Callable = eqx.field(static=True)
    points: Points
    metric: Metric | None = eqx.field(static=True)
    difference: Callable | None = eqx.field(static=True)
    data: tuple[Array, ...]
    #: points ↦ their data; None where the data are arrays, known at these points alone.
    tabulate: Callable | None = eqx.field(static=True)

    def __init__(
        self,
        density: Callable,
        points: Points | Array,
        *,
        metric: Metric | None,
        difference: Callable | None = None,
        data: Data = (),
    ):
        if not callable(density):
            raise ValueError(f"an energy density is a function of (u, x), got {type(density).__name__}")
        if metric is not None and not isinstance(metric, Metric):
            raise ValueError(f"metric must be an ng.Metric such as ng.metrics.H1(), got {type(metric).__name__}")
        self.density, self.metric, self.difference = density, metric, difference
        self.points = as_points(points)
        self.data, self.tabulate = known(data, self.points)
        if any(isinstance(part.policy, ByResidual) for part in self.points.origin or ()):
            raise ValueError("an energy has no residual for points to follow: take fresh=True, or points that stay")

    @property
    def moves(self) -> Moves | None:
        """How the points move; None where they stay."""
        return moves(self.points, self.tabulate)

    def moved(self, points: Placed) -> "Energy":
        """The block at other points, which stay."""
        here = points.own_rows(len(self.points))
        x, *data = here.inputs
        return eqx.tree_at(lambda e: (e.points, e.data), self, (Points(x, here.weights), tuple(data)))


class EnergyMinimization(Problem):
    """Σ w e(u, x) over named blocks, minimized in the metric the blocks give.

    An energy has no validation loss: it is not zero at the solution. What is compared is its size Σ w |e(u, x)| at
    independent points with that at its own (`elsewhere` in the history). Their ratio is 1, to the error of the
    quadratures, until the network finds energy below the minimum between its points.

    problem = ng.EnergyMinimization(
        network,
        interior=ng.Energy(lambda u, x: 0.5 * jnp.sum(ng.gradient(u, x) ** 2) - f(x) * u(x),
                           square.interior(4_000, rule="gauss"), metric=ng.metrics.EnergyNorm()),
    )
    """

    params: PyTree
    static: PyTree
    features: tuple[Features, ...]
    norms: ErrorNorms | None
    energies: tuple[Energy, ...]
    #: The blocks that can be drawn again, at independent points, with √(2|e|) for a residual; and which these are.
    elsewhere: Validation | None
    redrawn: tuple[bool, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    least_squares: ClassVar[bool] = False

    def __init__(
        self,
        network: Network,
        *,
        exact: Exact | Mapping[str, Exact] | None = None,
        evaluation: Points | None = None,
        **blocks: Energy,
    ):
        if isinstance(blocks.get("weights"), str):
            raise ValueError(
                "the parts of an energy are not balanced, other weights are another energy: multiply a density instead"
            )
        for name, block in blocks.items():
            if not isinstance(block, Energy):
                raise ValueError(
                    f"block {name!r} must be an ng.Energy(density, points, metric=…), got {type(block).__name__}"
                )
        self.params, self.static = partition(network)
        cast = lambda block: jax.tree.map(lambda a: host.array(a, self.dtype), block)
        blocks = {name: cast(block) for name, block in blocks.items()}
        self.names, self.energies = tuple(blocks), tuple(blocks.values())
        self.features = tuple(
            _features(name, block, network) for name, block in blocks.items() if block.metric is not None
        )
        if not self.features:
            raise ValueError("an energy problem needs a metric on at least one block, e.g. metric=ng.metrics.H1()")
        for name, block in blocks.items():
            _check_scalar(name, block.density, network, _row(block), "energy density")
            if block.difference is not None:
                between = lambda u, *row, difference=block.difference: jnp.asarray(difference(u, u, *row), self.dtype)
                _check_scalar(name, between, network, _row(block), "difference of the energy", HINTS)
        check_units(network, [(name, b.density, (b.points.x, *b.data)) for name, b in blocks.items()])
        self.norms = evaluation_norms(exact, evaluation, [b.points for b in self.energies], network, self.dtype)
        sizes = [
            Features(name, (b.points.x, *b.data), b.points.weights, 1, _Magnitude(b.density))
            for name, b in blocks.items()
        ]
        others = [partial(independent, b.points, b.tabulate, 1.0) for b in self.energies]
        self.elsewhere = validation(sizes, others, self.dtype)
        found = {block.name for block in self.elsewhere.blocks} if self.elsewhere is not None else set()
        self.redrawn = tuple(name in found for name in blocks)

    @property
    def moving(self) -> dict[str, Moves]:
        return {name: e.moves for name, e in zip(self.names, self.energies, strict=True) if e.moves is not None}

    def placed(self) -> dict[str, Placed]:
        blocks = dict(zip(self.names, self.energies, strict=True))
        inputs = lambda block: (block.points.x, *block.data)
        return {
            name: moves.placed(inputs(blocks[name]), blocks[name].points.weights) for name, moves in self.moving.items()
        }

    def at(self, points: Mapping[str, Placed]) -> "EnergyMinimization":
        blocks = dict(zip(self.names, self.energies, strict=True))
        energies = tuple(e.moved(points[name]) if name in points else e for name, e in blocks.items())
        x = {name: Placed(place.inputs[:1], place.weights) for name, place in points.items()}  # what a metric sees
        features = tuple(f.moved(x[f.name]) if f.name in x else f for f in self.features)
        return eqx.tree_at(lambda problem: (problem.energies, problem.features), self, (energies, features))

    @property
    def validated(self) -> bool:
        return self.elsewhere is not None

    def validate(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """`elsewhere`: Σ w |e| at independent points over that at the points of training."""
        if self.elsewhere is None:
            return {}
        u, own = self.network(params), jnp.zeros((), self.dtype)
        for block in (b for b, redrawn in zip(self.energies, self.redrawn, strict=True) if redrawn):
            values = jax.vmap(lambda *row, e=block.density: jnp.abs(e(u, *row)))(block.points.x, *block.data)
            own += block.points.weights @ values
        return {"elsewhere": self.elsewhere.loss(u) / add_up(own)}

    def loss(self, params: PyTree) -> Float[Array, ""]:
        u = self.network(params)
        total = jnp.zeros((), self.dtype)
        for block in self.energies:
            values = jax.vmap(lambda *row, e=block.density: e(u, *row))(block.points.x, *block.data)
            total += block.points.weights @ values
        return add_up(total)

    def changes(self, params: PyTree) -> Callable[[PyTree], Float[Array, ""]]:
        """Each block's own `difference`, or its densities subtracted point by point."""
        u = self.network(params)

        def change(new: PyTree) -> Float[Array, ""]:
            v = self.network(new)
            total = jnp.zeros((), self.dtype)
            for block in self.energies:
                density = block.difference or (lambda u, v, *row, e=block.density: e(v, *row) - e(u, *row))
                values = jax.vmap(lambda *row, d=density: d(u, v, *row))(block.points.x, *block.data)
                total += block.points.weights @ values
            return add_up(total)

        return change


def _row(block: Energy) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(map(host.row, (block.points.x, *block.data)))


def _check_scalar(
    name: str, fn: Callable, network: Network, row: tuple[Any, ...], what: str, hints: Mapping = HINTS | CALLED
) -> None:
    if shape := check_block(name, fn, network, row, what, hints).shape:
        raise ValueError(f"{what} {name!r} must be a scalar at one point, got shape {shape}")


def _features(name: str, block: Energy, network: Network) -> Features:
    metric = block.metric
    assert metric is not None
    features = metric.features
    # F_u may or may not want the block's data: the metric sees x alone, as its formula does.
    out = check_block(name, lambda u, x: features(u, u, x), network, _row(block)[:1], "metric of block")
    if metric.density is not None:
        density = lambda u, x, density=metric.density: jnp.asarray(density(u, x), x.dtype)  # it may be a number
        _check_scalar(name, density, network, _row(block)[:1], "density of the metric of")
    return Features(
        name=name,
        inputs=(block.points.x,),
        weights=block.points.weights,
        size=1 if out.ndim == 0 else out.shape[0],
        evaluate=_Operator(features),
        density=metric.density,
    )


class _Magnitude:
    """`evaluate` of the size of a density: half the square of √(2|e|) is |e|."""

    def __init__(self, density: Callable):
        self.density = density

    def __call__(self, u: Network, frozen: Network, *row: Array) -> Float[Array, " 1"]:
        return jnp.sqrt(2 * jnp.abs(jnp.reshape(self.density(u, *row), (1,))))


class _Operator:
    """`evaluate` of a metric: F_frozen u, linear in u."""

    def __init__(self, features: Callable):
        self.features = features

    def __call__(self, u: Network, frozen: Network, *row: Array) -> Float[Array, " k"]:
        return jnp.atleast_1d(self.features(frozen, u, *row))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Operator) and self.features == other.features

    def __hash__(self) -> int:
        return hash((_Operator, self.features))
