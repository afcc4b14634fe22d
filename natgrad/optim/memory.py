"""Memory as a promise: the strategy, the points at a time and the rank that fit into a budget, before a step is made.

What a step holds at its peak on a device with q rows, in numbers of 8 (or 4) bytes (measured in docs/memory.md):

    the Gramian       assembled p², jacobian qp, batched 2pB
    derivatives       at all points at once: 2R, batched R/2, linearized (4 + k)R
    the direction     Direct 6p²; Kernel 6q²; PCG 9pℓ, its sketch, its basis and what lies between them; 4pℓ by row factors

R are the activations: what a derivative at all points keeps of the forward pass, k ≤ 16 the vectors that go through the
network at a time. `fit` leaves what was asked for alone where it fits, caps ℓ by what the Gramian leaves, and says in
one line, before anything is allocated, what does not fit.
"""

import dataclasses
from typing import Any

import jax

from natgrad.gramian.base import most_at_a_time, weighted_features
from natgrad.gramian.choose import available_memory, choose, local_rows, size_in_words
from natgrad.optim.balance import Balanced
from natgrad.optim.direction import PCG, Direct
from natgrad.optim.kernel import Kernel
from natgrad.problem import Problem

MATRICES = 6  # p×p (or q×q) arrays at the peak of a step that factors one
LEAST_RANK = 10


def fit(solver: Any, problem: Problem, memory: int | None = None) -> Any:
    """The solver with strategy, batch size and rank that keep a step within so many bytes a device.

    The device's own free memory by default. Baselines, which have no Gramian, are returned as they are.
    """
    if isinstance(solver, Balanced):
        return dataclasses.replace(solver, solver=fit(solver.solver, problem, memory))
    if not (hasattr(solver, "gramian") and hasattr(solver, "memory")):
        return solver
    memory = solver.memory if memory is None else memory
    budget = available_memory() if memory is None else memory
    if not budget > 0:
        raise ValueError(f"memory must be a positive number of bytes, got {memory}")
    direction = solver.direction.resolve(problem)
    p, q, item = problem.num_parameters, local_rows(problem), problem.dtype.itemsize
    if isinstance(direction, Direct):
        _check(MATRICES * p * p * item, budget, f"factoring the {p}×{p} Gramian", "NystromNGD, say")
    elif isinstance(direction, Kernel) and isinstance(direction.solver, Direct):
        rows = problem.num_rows
        _check(MATRICES * rows * rows * item, budget, f"the {rows}×{rows} kernel", "fewer points, or PCG")
    strategy, batch, _ = choose(problem, solver.gramian, solver.batch, budget)
    passes = {"batched": 0.5, "linearized": 4 + most_at_a_time(problem)}.get(strategy, 2)
    held = item * {"assembled": p * p, "jacobian": q * p, "batched": 2 * p * batch}.get(strategy, 0)
    held += int(passes * activations(problem))
    _check(held, budget, f"the Gramian by strategy {strategy!r}", "gramian='batched' with a smaller batch")
    preconditioner: Any = getattr(direction, "preconditioner", None)
    if isinstance(direction, PCG) and (rank := getattr(preconditioner, "max_rank", 0)):
        left, column = budget - held, preconditioner.copies * p * item
        least = min(LEAST_RANK, rank, p)
        _check(column * least, left, f"a preconditioner of rank {least}", "more memory, or gramian='batched'")
        if left < column * min(rank, p):
            smaller = dataclasses.replace(preconditioner, max_rank=int(left / column))
            direction = dataclasses.replace(direction, preconditioner=smaller)
    return dataclasses.replace(solver, direction=direction, gramian=strategy, batch=batch, memory=memory)


def activations(problem: Problem) -> int:
    """R in bytes, on one device: found by tracing, nothing is computed."""
    linear = lambda params: jax.linearize(lambda p: weighted_features(problem, p, params), params)[1]
    kept = jax.tree.leaves(jax.eval_shape(linear, problem.params))
    return sum(x.size * x.dtype.itemsize for x in kept) * local_rows(problem) // problem.num_rows


def _check(needed: float, budget: float, what: str, instead: str) -> None:
    if needed > budget:
        raise ValueError(
            f"{what} takes {size_in_words(needed)}, more than the {size_in_words(budget)} it may: use {instead}"
        )
