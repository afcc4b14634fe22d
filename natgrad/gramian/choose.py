"""Which strategy, and how many points at a time: a matter of sizes and of the memory there is."""

import os

import jax

from natgrad.problem import Problem

STRATEGIES = ("assembled", "jacobian", "batched", "linearized")
SHARE = 0.4  # of the free memory for what a strategy stores; the rest is for sketches, temporaries and the user
DEFAULT_BATCH = 1000
SMALL = 300  # parameters below which a p×p matrix costs next to nothing


def available_memory() -> int:
    """Bytes free on the default device: the accelerator's own account, or what the host has left."""
    stats = jax.devices()[0].memory_stats() or {}
    if "bytes_limit" in stats:
        return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30


def choose(problem: Problem, strategy: str, batch: int | None, memory: int | None = None) -> tuple[str, int, str]:
    """(strategy, batch size, why)."""
    p, rows = problem.num_parameters, problem.num_rows
    item = problem.dtype.itemsize
    largest = max(block.num_points for block in problem.features)
    free = (available_memory() if memory is None else memory) * SHARE
    if strategy != "auto":
        if batch is None:
            batch = largest if strategy == "assembled" and rows * p * item <= free else DEFAULT_BATCH
        return strategy, batch, "as asked"
    stored = rows * p * item
    if p <= SMALL and rows >= p:
        return "assembled", batch or DEFAULT_BATCH, f"p = {p} is small: G takes {_size(p * p * item)}"
    if stored <= free:
        return "jacobian", batch or DEFAULT_BATCH, f"the {rows}×{p} Jacobian takes {_size(stored)} of {_size(free)}"
    if batch is None:
        widest = max(block.size for block in problem.features)
        batch = int(max(1, min(DEFAULT_BATCH, free / 4 / (p * item * widest))))
    return "batched", batch, f"the {rows}×{p} Jacobian would take {_size(stored)}, more than {_size(free)}"


def _size(num: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if num < 1000:
            return f"{num:.3g} {unit}"
        num /= 1000
    return f"{num:.3g} TB"
