"""The Gramian: one operator, four strategies."""

import difflib
from dataclasses import dataclass

import numpy as np
from jaxtyping import PyTree

from natgrad.backend.parallel import inside, mesh_of
from natgrad.gramian.assembled import Assembled as Assembled
from natgrad.gramian.base import Gramian as Gramian
from natgrad.gramian.base import feature_values as feature_values
from natgrad.gramian.base import second_directional as second_directional
from natgrad.gramian.batched import BatchedJacobian as BatchedJacobian
from natgrad.gramian.batched import batches
from natgrad.gramian.choose import STRATEGIES, choose
from natgrad.gramian.linearized import Linearized as Linearized
from natgrad.gramian.neighbours import NeighbourBatches as NeighbourBatches
from natgrad.gramian.scaled import Scaled as Scaled
from natgrad.gramian.sharded import Sharded as Sharded
from natgrad.gramian.stored import StoredJacobian as StoredJacobian
from natgrad.problem import Problem
from natgrad.problem.base import check_params


def check_strategy(strategy: str, batch: int | None) -> None:
    """Refuses unknown strategies and impossible batch sizes."""
    known = (*STRATEGIES, "auto")
    if strategy not in known:
        close = difflib.get_close_matches(str(strategy), known, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"unknown Gramian strategy {strategy!r}: choose one of {', '.join(known)}{hint}")
    if batch is not None and (not isinstance(batch, int | np.integer) or batch < 1):
        raise ValueError(f"batch must be an integer of at least 1, got {batch!r}")


@dataclass(frozen=True)
class Strategy:
    """How to build a Gramian: equal where its options are, so that products compile once."""

    name: str
    batch: int | None
    memory: int | None

    def __call__(self, problem: Problem, params: PyTree) -> Gramian:
        return gramian(problem, params, self.name, batch=self.batch, memory=self.memory)


def gramian(
    problem: Problem,
    params: PyTree | None = None,
    strategy: str = "auto",
    *,
    batch: int | None = None,
    memory: int | None = None,
) -> Gramian:
    """The Gramian G = Jᵀ W J of a problem at the given parameters.

        G = ng.gramian(problem, params, strategy="batched", batch=500);  G.mv(v);  G.diagonal()

    Arguments:
        params: the parameters θ; the problem's initial ones by default.
        strategy: `assembled` stores G, `jacobian` stores W^½ J, `batched` recomputes it some points at a time,
            `linearized` has no Jacobian at all, `auto` chooses by size and memory and says why in `.reason`.
        batch: points at a time, for `batched` (and for the sums that `assembled` and `linearized` need).
        memory: bytes `auto` may plan with; what the device has free by default.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"gramian takes a problem such as ng.LeastSquares(…), got {type(problem).__name__}")
    check_strategy(strategy, batch)
    params = problem.params if params is None else params
    check_params(problem, params)
    if mesh_of(problem) is not None and not inside():
        build = Strategy(strategy, batch, memory)
        return Sharded(problem=problem, params=params, build=build, reason=f"{strategy}, on several devices")
    name, batch, reason = choose(problem, strategy, batch, memory)
    if name == "jacobian":
        return StoredJacobian(problem, params, reason)
    if name == "assembled":
        return Assembled(problem, params, batch, reason)
    if name == "batched":
        return batches(problem, params, batch, reason)
    return Linearized(problem, params, batch, reason)
