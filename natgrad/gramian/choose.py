"""`gramian` makes the operator by one of four strategies; `choose` says which, and how many points at a time."""

import os
from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import PyTree

from natgrad.backend.parallel import agree, inside, mesh_of
from natgrad.gramian.assembled import Assembled
from natgrad.gramian.base import Gramian
from natgrad.gramian.batched import DEFAULT_BATCH, batches
from natgrad.gramian.linearized import Linearized
from natgrad.gramian.sharded import Sharded
from natgrad.gramian.stored import StoredJacobian
from natgrad.options import suggest
from natgrad.problem import Problem
from natgrad.problem.base import check_params

STRATEGIES = ("assembled", "jacobian", "batched", "linearized")
SHARE = 0.4  # of the free memory for what a strategy stores; the rest is for sketches, temporaries and the user
SMALL = 300  # parameters below which a p×p matrix costs next to nothing


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


def check_strategy(strategy: str, batch: int | None) -> None:
    """Refuses unknown strategies and impossible batch sizes."""
    known = (*STRATEGIES, "auto")
    if strategy not in known:
        raise ValueError(f"unknown Gramian strategy {strategy!r}: {suggest(strategy, known)}")
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


def available_memory() -> int:
    """Bytes free on a device of each process, the least of them: the accelerator's own account, or what the host has.

    The devices of a processor share its memory.
    """
    stats = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        free = stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    else:
        try:
            free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // jax.local_device_count()
        except (ValueError, OSError, AttributeError):
            free = 8 * 2**30
    return int(-agree(-free))


def local_rows(problem: Problem) -> int:
    """Rows of the Jacobian on one device."""
    rows = sum(block.rows for block in problem.features)
    mesh = mesh_of(problem)
    return rows if mesh is None or inside() else -(-rows // mesh.size)


def choose(problem: Problem, strategy: str, batch: int | None, memory: int | None = None) -> tuple[str, int, str]:
    """(strategy, batch size, why)."""
    p, rows = problem.num_parameters, local_rows(problem)
    item = problem.dtype.itemsize
    largest = max(block.num_points for block in problem.features)
    widest = max(block.size for block in problem.features)
    stored = rows * p * item
    if strategy in ("jacobian", "batched", "linearized") or (strategy == "assembled" and batch is not None):
        return strategy, batch or DEFAULT_BATCH, "as asked"
    free = (available_memory() if memory is None else memory) * SHARE
    if strategy == "assembled":
        return strategy, largest if stored <= free else DEFAULT_BATCH, "as asked"
    if p <= SMALL and rows >= p:
        return "assembled", batch or DEFAULT_BATCH, f"p = {p} is small: G takes {size_in_words(p * p * item)}"
    if stored <= free:
        return (
            "jacobian",
            batch or DEFAULT_BATCH,
            f"the {rows}×{p} Jacobian takes {size_in_words(stored)} of {size_in_words(free)}",
        )
    if batch is None:
        batch = int(max(1, min(DEFAULT_BATCH, free / 4 / (p * item * widest))))
    return (
        "batched",
        batch,
        f"the {rows}×{p} Jacobian would take {size_in_words(stored)}, more than {size_in_words(free)}",
    )


def size_in_words(num: float) -> str:
    """Bytes, readable."""
    for unit in ("B", "kB", "MB", "GB"):
        if num < 1000:
            return f"{num:.3g} {unit}"
        num /= 1000
    return f"{num:.3g} TB"
