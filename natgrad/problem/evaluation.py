"""Where errors are measured when the user does not say: independent points of the domain the residuals live on."""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from natgrad.backend import host
from natgrad.domains import Points, as_points
from natgrad.indices import trace
from natgrad.problem.base import Network, check_index, failure
from natgrad.problem.errors import ErrorNorms, Exact

FACTOR = 10  # "an order of magnitude more quadrature points than during training"


def evaluation_norms(
    exact: Exact | Mapping[str, Exact] | None,
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
    if (table := _table(exact)) is not None:
        return _against(table, evaluation, network, dtype)
    if evaluation is None:
        largest = max((p for p in points if p.domain is not None), key=len, default=None)
        if largest is None or largest.domain is None:
            raise ValueError(
                "errors need points: give evaluation=domain.interior(…), or build a block's points from a domain"
            )
        evaluation = largest.domain.interior(FACTOR * len(largest), key=host.key(host.EVALUATION))
    _check_exact(exact, network, jax.ShapeDtypeStruct(evaluation.x.shape[1:], dtype))
    return ErrorNorms(exact, evaluation, dtype)


def _table(exact: Exact | Mapping[str, Exact]) -> dict[str, np.ndarray] | None:
    """Values by field ("" where there is none); None where the solution is known as a function."""
    parts: Mapping[str, Any] = exact if isinstance(exact, Mapping) else {"": exact}
    if not parts:
        raise ValueError("exact names no field: give {field: function}, or leave it out")
    arrays = {name: part for name, part in parts.items() if np.ndim(part) > 0}  # of a function it is 0
    if not arrays:
        return None
    if len(arrays) < len(parts):
        raise ValueError("exact is a function of each field, or has values of each at the evaluation points: not both")
    try:
        values = {name: np.asarray(part, float) for name, part in arrays.items()}
    except (TypeError, ValueError):
        raise ValueError("the values given as exact=… must be arrays of numbers") from None
    if not all(np.all(np.isfinite(part)) for part in values.values()):
        raise ValueError("the values given as exact=… must be finite, got some that are NaN or infinite")
    return values


def _against(table: dict[str, np.ndarray], evaluation: Points | None, network: Network, dtype: Any) -> ErrorNorms:
    """The norms against values at points."""
    if evaluation is None:
        raise ValueError("values given as exact=… are known at points: give these, too, as evaluation=x")
    x = jax.ShapeDtypeStruct(evaluation.x.shape[1:], dtype)
    for name, values in table.items():
        shape = _shape(getattr(network, name) if name else network, x)
        if values.shape != (len(evaluation), *shape) and (shape != (1,) or values.shape != (len(evaluation),)):
            whose = f" of {name!r}" if name else ""
            raise ValueError(
                f"the values{whose} have shape {values.shape}: there are {len(evaluation)} evaluation points, and the "
                f"network has shape {shape} at one"
            )
    return ErrorNorms(table.get("", table), evaluation, dtype)


def _shape(u: Network, x: Any) -> tuple[int, ...]:
    """The shape of a network's value at one point."""
    try:
        return eqx.filter_eval_shape(lambda x: jnp.atleast_1d(u(x)), x).shape
    except Exception as error:
        raise ValueError(failure("the network", x, error)) from error


def _check_exact(exact: Exact | Mapping[str, Exact], network: Network, x: Any) -> None:
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
        shape = _shape(getattr(network, name) if name else network, x)
        if given != shape:
            raise ValueError(f"{what} has shape {given} at one point, the network {shape}: they must be the same")
