"""The plan of a solver: everything that it leaves open on a problem, decided once, before a step is made.

    solver = ng.plan(ng.NystromNGD(), problem, memory="8GB")
    print(solver)

    the form of `ng.NGD`                  by sizes and device, see `natgrad.optim.fastest`
    ℓ_max, c of the scaling, damping      as the problem says: `resolve` of each part
    strategy, points at a time            by memory, see `natgrad.gramian.choose`
    ℓ_max once more                       by the memory that the Gramian leaves

What a step holds at its peak on a device with q rows, in numbers of 8 (or 4) bytes (measured in docs/memory.md):

    the Gramian       assembled p², jacobian qp, batched 2pB
    derivatives       at all points at once: 2R, batched R/2, linearized (4 + k)R
    the direction     Direct 6p²; Kernel 6q²; PCG 9pℓ, its sketch, its basis and what lies between them; row factors 4pℓ

R are the activations: what a derivative at all points keeps of the forward pass, k ≤ 16 the vectors that go through the
network at a time. What was asked for is left alone where it fits, ℓ_max aside; what does not fit is said in one line,
before anything is allocated.
"""

import dataclasses
from typing import Any

import jax

from natgrad.gramian.base import most_at_a_time, weighted_features
from natgrad.gramian.choose import available_memory, choose, local_rows, size_in_words
from natgrad.options import parse_bytes
from natgrad.problem import Problem

MATRICES = 6  # arrays of p×p (or q×q) at the peak of a step that factors one
LEAST_RANK = 10


def plan(solver: Any, problem: Problem, memory: float | str | None = None) -> Any:
    """The solver with nothing left open: `print(ng.plan(ng.NGD(), problem))`. `ng.solve` begins with it.

    A solver that was planned is returned as it is, and so are those that have nothing to plan (Adam, say).

    Arguments:
        memory: bytes a step may take on a device, 8e9 or "8GB"; the solver's own budget, or what is free, by default.
    """
    if not hasattr(solver, "direction"):
        if hasattr(solver, "held"):
            budget = available_memory() if memory is None else parse_bytes("memory", memory)
            _check(solver.held(problem), budget, "factoring the rows of the Jacobian", "ng.NystromNGD(), say")
        if hasattr(solver, "resolve"):
            return plan(solver.resolve(problem), problem, memory)
        if hasattr(solver, "solver"):
            return dataclasses.replace(solver, solver=plan(solver.solver, problem, memory))
        if squares := getattr(solver, "squares", 0):
            p, budget = problem.num_parameters, available_memory() if memory is None else parse_bytes("memory", memory)
            _check(squares * p * p * problem.dtype.itemsize, budget, f"the {p}×{p} matrix of this method", "L-BFGS")
        return solver
    decided = resolved(solver, problem)
    if memory is None and concrete(solver) and decided == solver:
        return solver
    memory = solver.memory if memory is None else memory
    budget = available_memory() if memory is None else parse_bytes("memory", memory)
    return fitted(decided, problem, budget)


def resolved(solver: Any, problem: Problem) -> Any:
    """The solver with everything decided that the problem decides."""
    direction, damping = solver.direction.resolve(problem), solver.damping.resolve(problem)
    return dataclasses.replace(solver, direction=direction, damping=damping)


def concrete(solver: Any) -> bool:
    """Whether strategy and points at a time are decided."""
    return solver.gramian == "jacobian" or (solver.gramian != "auto" and solver.batch is not None)


def fitted(solver: Any, problem: Problem, budget: int) -> Any:
    """The solver with a strategy, points at a time and a rank that keep a step within `budget` bytes on a device."""
    direction = solver.direction
    p, item = problem.num_parameters, problem.dtype.itemsize
    if direction.factors:
        n = direction.unknowns(problem)
        what, instead = ("Gramian", "NystromNGD, say") if n == p else ("kernel", "fewer points, or PCG")
        _check(MATRICES * n * n * item, budget, f"factoring the {n}×{n} {what}", instead)
    strategy, batch, _ = choose(problem, solver.gramian, solver.batch, budget)
    held = gramian_bytes(problem, strategy, batch)
    _check(held, budget, f"the Gramian by strategy {strategy!r}", "gramian='batched' with a smaller batch")
    preconditioner: Any = getattr(direction, "preconditioner", None)
    if rank := getattr(preconditioner, "max_rank", None):
        left, column = budget - held, preconditioner.copies * p * item
        least = min(LEAST_RANK, rank, p)
        _check(column * least, left, f"a preconditioner of rank {least}", "more memory, or gramian='batched'")
        if left < column * min(rank, p):
            smaller = dataclasses.replace(preconditioner, max_rank=int(left / column))
            direction = dataclasses.replace(direction, preconditioner=smaller)
    points = None if strategy == "jacobian" else batch
    return dataclasses.replace(solver, direction=direction, gramian=strategy, batch=points)


def gramian_bytes(problem: Problem, strategy: str, batch: int) -> int:
    """What a Gramian and the derivatives beside it hold on a device."""
    p, q = problem.num_parameters, local_rows(problem)
    passes = {"batched": 0.5, "linearized": 4 + most_at_a_time(problem)}.get(strategy, 2)
    held = {"assembled": p * p, "jacobian": q * p, "batched": 2 * p * batch}.get(strategy, 0)
    return problem.dtype.itemsize * held + int(passes * activations(problem))


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
