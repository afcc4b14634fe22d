"""What is wrong with a run, in sentences: read from its records at the end, nothing where all is well.

    points exhausted      V > 100 T and V > 10⁻⁴ max L: the loss V at independent points is far above the loss T of
                          training, and not small against what the run began with. The network fits its points, and
                          does as it likes between them.

    the same for energies Σ w |e(u, x)| at independent points is twice that at the points of training: the network finds
                          energy below the minimum between its points

    u of another size     its root mean square is 20 times that of the network at the start, or a twentieth: the last
                          layer must grow or shrink before anything else can be learned. Nothing is said where a
                          least-squares loss has fallen to 10⁻¹² of its largest: the run did without

Three more are said of a least-squares run that stalled above round-off, its loss not 10 % lower than a tenth of its
steps ago, with medians over these steps:

    damping held up       short steps have raised μ by 10⁴ or more (`guard`), and longer ones have not taken it back
    inner solve at cap    it ends at its most iterations with a residual above 10⁻²: d is not the natural gradient
    rank at its cap       the same, and ℓ = ℓ_max: the preconditioner does not reach down to μ

All of them are ratios, so that units do not matter. An energy is not zero at its minimum: that it no longer falls is no
stall, and of energies nothing more is said.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from natgrad.problem import Problem

FAR = 100.0  # V / T; good runs of the zoo end at 1 to 250, advection on too few points at 10⁴ and more
BEYOND = 2.0  # Σ w |e| elsewhere, over that at its own points; in the zoo it is 0.9 to 1.1, a wrong minimum has 3
SMALL = 1e-4  # V / max L, a residual of a hundredth of the first one; there 10⁻⁹ or less, and about 1 (docs/stalls.md)
# A stall: the share of the steps that is looked at, their least number, and what counts as a fall.
WINDOW, FEWEST, GAIN = 0.1, 5, 0.1
SIZE = 20.0  # of u, or one over it; in the zoo it is 1 to 40
SOLVED = 1e-12  # L / max L; kovasznay ends with an error of 4e-9 where u is 40 times as large as the network was
HELD = 1e4  # the factor by which short steps have raised μ; a guard that goes up and down reaches a thousand
UNSOLVED = 1e-2  # the residual of an inner solve that has not found the direction
EXHAUSTED = "points exhausted"

Records = Sequence[Mapping[str, Any]]


def diagnose(records: Records, problem: Problem, solver: Any) -> tuple[str, ...]:
    """Short sentences about a run that ended; none where all is well."""
    found = [exhausted(records), between(records), misfit(records, problem.least_squares)]
    if problem.least_squares and stalled(records, float(jnp.finfo(problem.dtype).eps)):
        last = records[-window(records) :]
        found += [held(last), capped(last, *caps(solver))]
    return tuple(sentence for sentence in found if sentence)


def exhausted(records: Records) -> str | None:
    """Whether the loss at other points, when it was last evaluated, is far above that of training and matters."""
    known = [record for record in records if math.isfinite(record.get("validation", math.nan))]
    if not known:
        return None
    validation, training = known[-1]["validation"], known[-1]["training"]
    if not (validation > FAR * training and validation > SMALL * max(record["loss"] for record in records)):
        return None
    times = f"{validation / training:.0e} times" if training > 0 else "against"
    return (
        f"{EXHAUSTED}: the loss at other points is {validation:.1e}, {times} the {training:.1e} at those of training; "
        "take more, others at every step (domain.interior(n, key=…, fresh=True)) or where the residual is "
        "(adaptive=ng.ByResidual()), or shorter times"
    )


def between(records: Records) -> str | None:
    """Whether an energy, when it was last evaluated, was of another size at other points."""
    known = [record["elsewhere"] for record in records if math.isfinite(record.get("elsewhere", math.nan))]
    if not known or known[-1] < BEYOND:
        return None
    return (
        f"{EXHAUSTED}: the energy at other points is {known[-1]:.1f} times as large as at those of training, where the "
        "network has found a minimum that is none; take more points, others at every step (domain.interior(n, key=…, "
        "fresh=True)), or a smaller network"
    )


def misfit(records: Records, least_squares: bool = False) -> str | None:
    """Whether u, when it was last evaluated, is of another size than the network was made for, and that did harm."""
    known = [record["size"] for record in records if math.isfinite(record.get("size", math.nan))]
    if not known or 1 / SIZE < known[-1] < SIZE:
        return None
    if least_squares and records[-1]["loss"] <= SOLVED * max(record["loss"] for record in records):
        return None
    return (
        f"u is {known[-1]:.0e} times as large as the network it began from: give the network the size of u, "
        "ng.Normalized(network, domain, scale=…)"
    )


def window(records: Records) -> int:
    """How many of the last steps are looked at."""
    return max(FEWEST, round(WINDOW * len(records)))


def stalled(records: Records, eps: float) -> bool:
    """Whether the loss stays where it is, above round-off."""
    count = window(records)
    if len(records) <= 2 * count:
        return False
    now, before = records[-1]["loss"], records[-1 - count]["loss"]
    return now > (1 - GAIN) * before and now > eps * max(record["loss"] for record in records)


def held(last: Records) -> str | None:
    """Whether short steps hold μ up."""
    guard = _median(last, "guard", 1.0)
    if not guard >= HELD:
        return None
    return f"the damping is held up by short steps: they have raised μ {guard:.0e} times; see α and μ in the history"


def capped(last: Records, max_rank: float, maxiter: float) -> str | None:
    """Whether the inner solve ends at its cap and unsolved, and whether the rank is at its own."""
    residual = _median(last, "inner_residual")
    if not (_median(last, "inner_iterations") >= maxiter and residual > UNSOLVED):
        return None
    unsolved = f"the inner solve is at its cap of {maxiter:.0f} iterations with a residual of {residual:.0e}"
    if _median(last, "rank") >= max_rank:
        return f"the rank is at its cap of {max_rank:.0f}, and {unsolved}: raise max_rank"
    return f"{unsolved}: raise maxiter"


def caps(solver: Any) -> tuple[float, float]:
    """ℓ_max and the most iterations of an inner solve, of a solver that has them; else infinity."""
    while not hasattr(solver, "direction") and hasattr(solver, "solver"):
        solver = solver.solver  # of `Balanced` and `Resampled` the one inside
    direction: Any = getattr(solver, "direction", None)
    inner = getattr(direction, "solver", direction)  # `Kernel` has one inside
    rank = getattr(getattr(inner, "preconditioner", None), "max_rank", None)
    return math.inf if rank is None else rank, getattr(inner, "maxiter", math.inf)


def _median(records: Records, name: str, default: float = math.nan) -> float:
    return float(np.median([record.get(name, default) for record in records]))
