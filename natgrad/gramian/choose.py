"""Which strategy, and how many points at a time: a matter of sizes and of the memory there is."""

import os

import jax

from natgrad.backend.parallel import agree, inside, mesh_of
from natgrad.problem import Problem

STRATEGIES = ("assembled", "jacobian", "batched", "linearized")
SHARE = 0.4  # of the free memory for what a strategy stores; the rest is for sketches, temporaries and the user
DEFAULT_BATCH = 1000
SMALL = 300  # parameters below which a p×p matrix costs next to nothing


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
