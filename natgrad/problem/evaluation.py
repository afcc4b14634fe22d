"""Where errors are measured when the user does not say: independent points of the domain the residuals live on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from natgrad.backend import host
from natgrad.domains import Points, as_points
from natgrad.indices import trace
from natgrad.problem.base import Network, check_index, failure
from natgrad.problem.errors import ErrorNorms

FACTOR = 10  # "an order of magnitude more quadrature points than during training"


def evaluation_norms(
    exact: Callable | Mapping[str, Callable] | None,
    evaluation: Points | None,
    points: Sequence[Points],
    network: Network,
    dtype: Any,
) -> ErrorNorms | None:
    """The error norms of a problem, or None where no exact solution is known."""
    if exact is None:
        if evaluation is not None:
            raise ValueError("evaluation points were given without an exact solution: give exact=… too")
        return None
    if evaluation is not None:
        try:
            evaluation = as_points(evaluation)
        except ValueError as error:
            raise ValueError(f"evaluation: {error}") from error
        if evaluation.moving:
            raise ValueError("evaluation: errors are measured at points that stay, leave fresh and adaptive out")
    if isinstance(exact, Mapping):
        unknown = [name for name in exact if not hasattr(network, name)]
        if unknown:
            raise ValueError(f"exact names the fields {unknown}, which the network does not have")
    if evaluation is None:
        largest = max((p for p in points if p.domain is not None), key=len, default=None)
        if largest is None or largest.domain is None:
            raise ValueError(
                "errors need points: give evaluation=domain.interior(…), or build a block's points from a domain"
            )
        evaluation = largest.domain.interior(FACTOR * len(largest), key=host.key(host.EVALUATION))
    _check_exact(exact, network, jax.ShapeDtypeStruct(evaluation.x.shape[1:], dtype))
    return ErrorNorms(exact, evaluation, dtype)


def _check_exact(exact: Callable | Mapping[str, Callable], network: Network, x: Any) -> None:
    """Compares shapes at one point: an error found after training would come too late."""
    for name, fn in exact.items() if isinstance(exact, Mapping) else [("", exact)]:
        what = f"the exact solution{f' of {name!r}' if name else ''}"
        if not callable(fn):
            hint = f": lambda x: {fn}, say" if isinstance(fn, int | float) else ""
            raise ValueError(f"{what} must be a function of one point, got {type(fn).__name__}{hint}")
        try:
            out, wrong = trace(lambda x, fn=fn: jnp.atleast_1d(fn(x)), x)
            given = out.shape
        except Exception as error:
            raise ValueError(failure(what, x, error)) from error
        check_index(what, wrong, x)
        trained = getattr(network, name) if name else network
        try:
            shape = eqx.filter_eval_shape(lambda x, u=trained: jnp.atleast_1d(u(x)), x).shape
        except Exception as error:
            raise ValueError(failure("the network", x, error)) from error
        if given != shape:
            raise ValueError(f"{what} has shape {given} at one point, the network {shape}: they must be the same")
