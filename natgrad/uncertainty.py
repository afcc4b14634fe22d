"""Standard deviations of what an inverse problem found: Laplace's approximation where training ended.

With A = W^½ J the rows of the Gramian at θ*, the loss is ½|r|² + rᵀA(θ − θ*) + ½|A(θ − θ*)|² up to curvature of the
residuals. Where it is −log of a likelihood (`noise=σ`: weights 1/σ²), and of a prior in the blocks without noise,

    θ ~ N(θ*, (AᵀA + ρI)⁻¹),    cov q(u_θ) = Q (AᵀA + ρI)⁻¹ Qᵀ,    Q = ∂q/∂θ.

For a coordinate ν of θ this is 1/S, S = G_νν − G_νθ (G_θθ + ρI)⁻¹ G_θν the Schur complement of the network's own
parameters. Neither G nor its inverse is formed: [A; √ρ I] = (orthogonal) R, and R⁻ᵀQᵀ has the standard deviations for
the lengths of its columns. Squares of singular values would cost half of the digits. √ρ is the round-off of A, a
thousand times: what no row holds has a standard deviation that is as good as infinite, and no other feels it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import mesh_of
from natgrad.domains import Points, as_points
from natgrad.gramian import StoredJacobian
from natgrad.history import Solution
from natgrad.optim.balance import weighted
from natgrad.problem import LeastSquares
from natgrad.problem.base import check_params
from natgrad.unknowns import Unknown

ROUND_OFF = 1e3  # √ρ / (eps ‖A‖)
CHUNK = 1_000  # points at a time


class Uncertainty:
    """What `ng.uncertainty` gives: `std` and `covariance` of unknowns, of fields and of any function of the network."""

    def __init__(self, problem: LeastSquares, params: PyTree, factor: np.ndarray):
        self.problem, self.params, self.factor = problem, params, factor

    def std(self, what: str | Callable, points: Points | Array | None = None) -> np.ndarray:
        """The standard deviation of each number of a quantity, in its shape.

            known.std("nu")                                    of an unknown number
            known.std("kappa", x)                              of a field at points (n, d): (n,)
            known.std(lambda net: net.a.value / net.b.value)   of a function of the network
            known.std(lambda net, x: ng.gradient(net.u, x), x) at points, (n, d)

        Arguments:
            what: the name of a field, or a function of the network (and of one point, where `points` are given).
            points: `Points`, or an array (n, d).
        """
        scaled, shape = self._scaled(what, points)
        return np.sqrt(np.einsum("pn,pn->n", scaled, scaled)).reshape(shape)

    def covariance(self, what: str | Callable, points: Points | Array | None = None) -> np.ndarray:
        """The covariance (m, m) of all m numbers of a quantity, in order; the arguments are those of `std`."""
        scaled, _ = self._scaled(what, points)
        return scaled.T @ scaled

    def _scaled(self, what: str | Callable, points: Points | Array | None) -> tuple[np.ndarray, tuple[int, ...]]:
        """R⁻ᵀQᵀ (p, m) of a quantity, and the quantity's shape."""
        x = None if points is None else np.asarray(as_points(points).x, self.problem.dtype)
        quantity = self._quantity(what, x)
        parts = [None] if x is None else [x[i : i + CHUNK] for i in range(0, len(x), CHUNK)]
        slopes = [np.asarray(self._slope(quantity, part), float) for part in parts]
        shape = slopes[0].shape[:-1] if x is None else (len(x), *slopes[0].shape[1:-1])
        flat = np.concatenate([slope.reshape(-1, slope.shape[-1]) for slope in slopes])
        if not np.all(np.isfinite(flat)):
            raise ValueError("the derivative of the quantity in the parameters is not finite")
        return scipy.linalg.solve_triangular(self.factor, flat.T, trans="T"), shape

    def _slope(self, quantity: Callable, x: np.ndarray | None) -> Array:
        """Q: the derivative of a quantity in the flat parameters, at each point where there are points."""
        theta, unravel = ravel_pytree(self.params)
        if x is None:
            return jax.jacrev(lambda t: quantity(self.problem.network(unravel(t))))(theta)
        one = jax.jacrev(lambda t, x: quantity(self.problem.network(unravel(t)), x))
        return jax.jit(jax.vmap(one, (None, 0)))(theta, x)

    def _quantity(self, what: str | Callable, x: np.ndarray | None) -> Callable:
        """The quantity as a function of the network, and of one point where there are points."""
        if isinstance(what, str):
            network = self.problem.network(self.params)
            part = getattr(network, what, None)
            if part is None:
                known = ", ".join(getattr(network, "names", ())) or "none: give a function of the network"
                raise ValueError(f"there is no field {what!r}; the fields are {known}")
            number = isinstance(part, Unknown) and not part.is_field
            if number and x is not None:
                raise ValueError(f"{what!r} is the same at all points: leave the points out")
            if not number and x is None:
                raise ValueError(f"{what!r} is a field: give the points at which, std({what!r}, x)")
            name = what
            what = lambda u, *x: getattr(u, name).value if number else getattr(u, name)(*x)
        elif not callable(what):
            raise ValueError(f"std takes the name of a field or a function, got {type(what).__name__}")
        row = () if x is None else (jax.ShapeDtypeStruct(x.shape[1:], x.dtype),)
        try:
            out = jax.eval_shape(lambda params, *row: what(self.problem.network(params), *row), self.params, *row)
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"the quantity fails: {type(error).__name__}: {reason}") from error
        if not hasattr(out, "dtype") or not jnp.issubdtype(out.dtype, jnp.floating):
            raise ValueError("a quantity is a real array: a function of the network gives one")
        return what


def uncertainty(problem: LeastSquares, solution: Solution) -> Uncertainty:
    """Standard deviations of unknowns and fields after training, by the header's formula.

        known = ng.uncertainty(problem, solution)
        known.std("nu"), known.std("u", x)

    The factorization of rows + parameters by parameters is made once; all quantities share it. It says what the data
    say where training came to the minimum, and where the loss is quadratic over a few standard deviations.

    Arguments:
        problem: the least-squares problem that was solved, at least one block of it with `noise=…`. A block without
            is taken as a statement about the model with the weight it has: the larger, the less u may depart from it.
        solution: what `ng.solve` gave.
    """
    if not isinstance(problem, LeastSquares):
        raise ValueError(f"uncertainty takes the ng.LeastSquares that was solved, got {type(problem).__name__}")
    if not isinstance(solution, Solution):
        raise ValueError(f"uncertainty takes what ng.solve gave, got {type(solution).__name__}")
    if not any(block.observed for block in problem.features):
        raise ValueError("no block has a noise level to tell a standard deviation from: ng.Residual(…, noise=sigma)")
    if mesh_of(problem) is not None:
        raise ValueError("the problem is spread over several devices: give the one it was before ng.shard")
    check_params(problem, solution.params)
    p, rows = problem.num_parameters, problem.num_rows
    host.afford(3 * p * (rows + p), f"standard deviations from {rows} rows and {p} parameters")
    A = np.asarray(_jacobian(weighted(problem, solution.state), solution.params), float)
    if not np.all(np.isfinite(A)):
        raise ValueError("the Jacobian is not finite at the solution: nothing can be said of its parameters")
    ridge = ROUND_OFF * float(jnp.finfo(problem.dtype).eps) * np.linalg.norm(A)
    factor: Any = np.linalg.qr(np.concatenate([A, ridge * np.eye(p)]), mode="r")
    return Uncertainty(problem, solution.params, factor)


@jax.jit
def _jacobian(problem: LeastSquares, params: PyTree) -> Float[Array, "rows p"]:
    return StoredJacobian(problem, params).jacobian
