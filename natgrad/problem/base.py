"""What a problem is to the rest of the library: an energy over a network, and the features of its metric.

The Gramian of a network u_θ in a metric g_u(v, w) = ∫ F_u v · F_u w φ_u dx, by a quadrature rule with points x_r and
weights w_r, is (Theorem 1 of the paper)

    G(θ) = Jᵀ W J,    J = ∂θ F(θ),    F(θ)_r = F_{u_sg(θ)} u_θ (x_r),    W_r = w_r φ_u(x_r),

where sg is stop_gradient: the coefficients of the linear operator F_u are frozen at the current u. A problem gives the
features F in named blocks, one a set of points. `Features.evaluate(u, frozen, *sample)` is F_frozen u at one point,
differentiated in u and never in frozen.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, PyTree

from natgrad.backend import tuning
from natgrad.backend.parallel import count
from natgrad.calculus import products_together
from natgrad.indices import trace
from natgrad.problem.coupling import Coupling
from natgrad.problem.moving import Moves, Placed

Network = Callable[..., Any]


def split(a: Array, parts: int, fill: str = "edge") -> Array:
    """(n, …) → (parts, ⌈n/parts⌉, …); what is missing at the end is the last row again, or zero (fill="constant")."""
    n = a.shape[0]
    size = -(-n // parts)
    if parts * size > n:
        a = jnp.pad(a, [(0, parts * size - n)] + [(0, 0)] * (a.ndim - 1), mode=fill)
    return a.reshape(parts, size, *a.shape[1:])


class Features(eqx.Module):
    """One block of features: k numbers at each of n points, with the weights of their squares in the metric.

    `inputs` holds the arrays of shape (n, ...) whose rows are handed to `evaluate(u, frozen, *row) -> (k,)`; `weights`
    (n,) are the quadrature weights; `density(frozen, *row)` is φ_u, or None where it is 1.
    """

    per_point: ClassVar[bool] = True

    name: str = eqx.field(static=True)
    inputs: tuple[Array, ...]
    weights: Float[Array, " n"]
    size: int = eqx.field(static=True)
    evaluate: Callable = eqx.field(static=True)
    density: Callable | None = eqx.field(static=True, default=None)
    #: How the points move, see `natgrad.optim.resample`; None where they stay.
    moves: Moves | None = eqx.field(static=True, default=None)
    #: The devices the points are spread over, see `natgrad.backend.parallel`; None for one.
    mesh: Mesh | None = eqx.field(static=True, default=None)
    #: Whether the block's weight is yet to be found, see `natgrad.optim.balance`.
    auto: bool = eqx.field(static=True, default=False)
    #: Whether its rows are measurements, the weights their 1/σ².
    observed: bool = eqx.field(static=True, default=False)

    @property
    def num_points(self) -> int:
        return self.weights.shape[0]

    @property
    def rows(self) -> int:
        """How many rows of the Jacobian the block has: n k."""
        return self.num_points * self.size

    def moved(self, points: Placed, weight: Float[Array, ""] | float = 1.0) -> "Features":
        """The block at other points, which stay; `weight` multiplies their weights."""
        here = points.own_rows(self.num_points)
        return dataclasses.replace(self, inputs=here.inputs, weights=weight * here.weights, moves=None)

    def at(self, u: Network, frozen: Network, inputs: tuple[Array, ...], parts: int = 1) -> Float[Array, "n k"]:
        """The features at the given points (any subset of the block's).

        The points may go in several parts, each with a copy of u: in reverse mode the sums over points are then made by
        parts, all at a time. As one product a sum over 10,000 points that gives 64×64 numbers keeps four cores of a
        GPU's hundred busy.
        """
        each = lambda u, *inputs: jax.vmap(lambda *row: self.evaluate(u, frozen, *row))(*inputs)
        if parts == 1:
            return each(u, *inputs)
        arrays, rest = eqx.partition(u, eqx.is_array)
        copies = jax.tree.map(lambda a: jnp.broadcast_to(a, (parts, *a.shape)), arrays)
        some = [split(a, parts) for a in inputs]
        out = jax.vmap(lambda arrays, *inputs: each(eqx.combine(arrays, rest), *inputs))(copies, *some)
        return out.reshape(-1, self.size)[: inputs[0].shape[0]]

    def one(self, u: Network, frozen: Network, row: tuple[Array, ...]) -> Float[Array, " k"]:
        """The features at one point, traced so that their derivatives in the parameters, rows of J, come fast."""
        if not tuning.PRODUCTS_TOGETHER.here():
            return self.evaluate(u, frozen, *row)
        with products_together():
            return self.evaluate(u, frozen, *row)

    def metric_weights(
        self, frozen: Network, inputs: tuple[Array, ...], weights: Float[Array, " n"]
    ) -> Float[Array, " n"]:
        """w φ_u at the given points."""
        density = self.density
        if density is None:
            return weights
        return weights * jax.vmap(lambda *row: density(frozen, *row))(*inputs)


class Problem(eqx.Module):
    """A loss L(θ) = E(u_θ) together with the metric of its natural gradient.

    The base of `LeastSquares(…)`, `EnergyMinimization(…)` and the finite-element problems, which give `loss`, `changes`
    and `features`. All arrays (points, weights, data) are leaves of the problem, so
    that a compiled step takes them as arguments.
    """

    params: eqx.AbstractVar[PyTree]
    static: eqx.AbstractVar[PyTree]
    features: eqx.AbstractVar[tuple[Features, ...]]
    #: What `errors` are measured by; None without an exact solution.
    norms: eqx.AbstractVar[Callable | None]

    #: True where the loss is the square of a residual, and so zero at a solution.
    least_squares: eqx.AbstractClassVar[bool]

    #: c and d of the default damping, see `natgrad.optim.damping.Relative`: the first μ over λ̂₁, and its decay. An
    #: energy at points does not see what long steps do between them, and begins with the most.
    caution: ClassVar[tuple[float, float]] = (1e-2, 1 / 3)

    #: c of the damping's D = max(diag G, c·max diag G), unless the direction solver is told another; 1 is D = I.
    scaling: ClassVar[float] = 1.0

    #: ℓ_max of the preconditioner, where the problem knows one and the preconditioner is not told another.
    max_rank: ClassVar[int | None] = None

    @abc.abstractmethod
    def loss(self, params: PyTree) -> Float[Array, ""]:
        """L(θ)."""

    @abc.abstractmethod
    def changes(self, params: PyTree) -> Callable[[PyTree], Float[Array, ""]]:
        """new ↦ L(new) − L(params), without the cancellation of subtracting two losses."""

    def covector(self, params: PyTree) -> Float[Array, " rows"] | None:
        """c with ∇L = (W^½ J)ᵀ c, where the loss depends on θ through the features alone; None where it does not."""
        return None

    def coupling(self, params: PyTree) -> Coupling | None:
        """The operator between the rows in the metric; None where W is diagonal."""
        return None

    @property
    def auto(self) -> tuple[str, ...]:
        """The blocks whose weight is "auto" and yet to be found; a solver's step wants none of them."""
        return tuple(block.name for block in self.features if block.auto)

    @property
    def moving(self) -> dict[str, Moves]:
        """How the points of blocks move that do; a solver's step wants none of them."""
        return {}

    def placed(self) -> dict[str, Placed]:
        """Where the points of moving blocks are."""
        return {}

    def at(self, points: Mapping[str, Placed]) -> "Problem":
        """The problem with moving blocks at these points, where they stay."""
        return self

    def residual_size(self, name: str, params: PyTree, inputs: tuple[Array, ...]) -> Float[Array, " n"]:
        """The size of a block's residual at any points."""
        raise NotImplementedError

    def difference(self, params: PyTree, new: PyTree) -> Float[Array, ""]:
        """L(new) − L(params)."""
        return self.changes(params)(new)

    def network(self, params: PyTree) -> Network:
        """The network as a callable of one point."""
        if isinstance(self.static, Sealed):
            return Sealed(eqx.combine(params, self.static.arrays), self.static.rest)
        return eqx.combine(params, self.static)

    def solution(self, params: PyTree) -> Network:
        """u_θ as a callable of one point: the network itself, unless the problem makes something else of it."""
        u = self.network(params)
        return u.module if isinstance(u, Sealed) else u

    @property
    def num_parameters(self) -> int:
        return sum(leaf.size for leaf in jax.tree.leaves(self.params))

    @property
    def num_rows(self) -> int:
        """Rows of the Jacobian: the sum over the blocks of points times features, on all devices."""
        return count() * sum(block.rows for block in self.features)

    @property
    def dtype(self) -> Any:
        return jnp.result_type(*(leaf.dtype for leaf in jax.tree.leaves(self.params)))

    def errors(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """Relative errors against the exact solution ({} where none was given)."""
        return {} if self.norms is None else self.norms(self.network(params))

    @property
    def validated(self) -> bool:
        """Whether `validate` has something to say."""
        return False

    def validate(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """The `validation` loss, at points independent of those of training, of the blocks that can be drawn again;
        and their `training` loss, where that is not the whole loss. {} where no block can."""
        return {}

    def solution_size(self, params: PyTree) -> dict[str, Float[Array, ""]]:
        """The `size` of u, over that of the network the problem was built with; {} where it is not known."""
        return {}


def check_params(problem: Problem, params: PyTree) -> None:
    """ValueError where these cannot be the parameters of the problem's network."""
    shapes = lambda tree: [(jnp.shape(leaf), jnp.result_type(leaf)) for leaf in jax.tree.leaves(tree)]
    same = jax.tree.structure(params) == jax.tree.structure(problem.params)  # type: ignore[operator]
    if not same or shapes(params) != shapes(problem.params):
        raise ValueError("params do not fit the problem's network: give a tree of the same structure, shapes and dtype")


def check_steppable(problem: Problem) -> None:
    """What a solver's step says to a problem whose weights are yet to be found, or whose points are yet to be drawn."""
    if problem.moving:
        raise ValueError(
            f"the points of block {min(problem.moving)!r} are drawn anew as training goes on, which ng.solve and "
            "ng.Resampled(solver) do: use one of them, or points that stay"
        )
    if problem.auto:
        raise ValueError(
            f'the weight of block {problem.auto[0]!r} is "auto", which ng.solve and ng.Balanced(solver) find: use '
            "one of them, or give it a number"
        )


class Sealed(eqx.Module):
    """A network of which JAX sees the arrays alone: activations and flags among its leaves are kept aside.

    Calls and attributes are those of the network itself, `module`.
    """

    arrays: PyTree
    rest: PyTree = eqx.field(static=True)

    @property
    def module(self) -> Network:
        return eqx.combine(self.arrays, self.rest)

    def __call__(self, *args: Any) -> Any:
        return self.module(*args)

    def __getattr__(self, name: str) -> Any:
        # Reached only for what is not an attribute; while a copy is being built, `arrays` is not one either.
        if name.startswith("__") or not {"arrays", "rest"} <= set(self.__dict__):
            raise AttributeError(name)
        return getattr(self.module, name)


def partition(network: Network) -> tuple[PyTree, PyTree]:
    """The trainable arrays of a network and the rest of it."""
    params, static = eqx.partition(network, eqx.is_inexact_array)
    arrays, rest = eqx.partition(static, eqx.is_array)
    static = Sealed(arrays, rest) if jax.tree.leaves(rest) else arrays
    leaves = jax.tree.leaves(params)
    if not leaves:
        raise ValueError(
            f"the network {type(network).__name__} has no parameters: give an Equinox module with floating-point "
            "arrays, or ng.Apply(apply, params)"
        )
    check_parameters("the network", leaves)
    if len(dtypes := sorted({str(leaf.dtype) for leaf in leaves})) > 1:
        raise ValueError(f"the network's parameters mix the dtypes {', '.join(dtypes)}: use one for all")
    return params, static


def check_parameters(whose: str, leaves: Sequence[Array]) -> None:
    """Refuses arrays that are no parameters of a natural gradient."""
    for kind in sorted({str(leaf.dtype) for leaf in leaves} - {"float32", "float64"}):
        hint = "give real and imaginary parts of their own" if "complex" in kind else "float32 at the least"
        raise ValueError(f"{whose}'s parameters must be float64 or float32, got {kind}: {hint}")
    if empty := [leaf.shape for leaf in leaves if not leaf.size]:
        raise ValueError(f"{whose} has a parameter of shape {empty[0]}, which holds no number: leave it out")


HINTS = {  # what a new user of JAX runs into first
    "TracerBoolConversionError": "a condition on values is written jnp.where(…), not if",
    "TracerArrayConversionError": "functions of the values are those of jax.numpy, not numpy",
    "IndexError": "x is one point, its coordinates are x[0], x[1], …",
}
CALLED = {"TypeError": "it is called with the network u first, then with one point x"}


def failure(what: str, point: Any, error: Exception, hints: Mapping[str, str] = HINTS) -> str:
    """What a user's function raised at one point, in a line, with a hint."""
    kind = type(error).__name__
    reason = " ".join(str(error).split())
    reason = reason if len(reason) <= 120 else reason[:120] + " …"
    hint = f" ({hints[kind]})" if kind in hints else ""
    return f"{what} fails at a single point of shape {point.shape}: {kind}: {reason}{hint}"


def check_index(what: str, wrong: str, point: Any) -> None:
    """Refuses a function in whose trace an index is wrong."""
    if wrong:
        last = f", its coordinates are x[0] to x[{point.shape[0] - 1}]" if point.shape and point.shape[0] > 1 else ""
        raise ValueError(f"{what}: {wrong}; a point has shape {point.shape}{last}")


def check_block(
    name: str,
    fn: Callable,
    network: Network,
    row: tuple[Any, ...],
    what: str,
    hints: Mapping = HINTS | CALLED,
) -> Array:
    """Evaluates fn at a point of a block, by shapes alone, and says in one line what is wrong with it."""
    network = jax.tree.map(lambda leaf: leaf, network)
    try:
        out, wrong = trace(fn, network, *row)
    except Exception as error:
        raise ValueError(failure(f"{what} {name!r}", row[0], error, hints)) from error
    check_index(f"{what} {name!r}", wrong, row[0])
    if not hasattr(out, "shape") or len(out.shape) > 1:
        got = getattr(out, "shape", f"{type(out).__name__}, which does not depend on u")
        raise ValueError(f"{what} {name!r} must give a scalar or a vector at one point, got {got}")
    if not jnp.issubdtype(out.dtype, jnp.floating):
        raise ValueError(f"{what} {name!r} must give real floating-point values, got {out.dtype}")
    return out
