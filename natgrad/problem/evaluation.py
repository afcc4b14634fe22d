"""Where errors are measured when the user does not say: independent points of the domain the residuals live on."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from natgrad import host
from natgrad.domains import Points
from natgrad.problem.base import Network
from natgrad.problem.errors import ErrorNorms

SEED = 20_250_504  # a stream of its own, so that no training key draws the same points
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
        evaluation = largest.domain.interior(FACTOR * len(largest), key=host.key(SEED))
    return ErrorNorms(exact, evaluation, dtype)
