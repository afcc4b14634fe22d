"""The named optimizers: compositions of `NaturalGradient`, in two recipes.

`recipe="default"` is what measured best; `recipe="published"` is the paper's algorithm to the letter: a preconditioner
from scratch at every step in its published form, a cold start of pCG, no acceleration, μI, Armijo from α = 1. A short
name takes every option of the parts that it is made of, and no other.
"""

import dataclasses
from typing import Any

from natgrad.optim.damping import Damping, Guarded, Published, Relative
from natgrad.optim.direction import PCG, Direct
from natgrad.optim.kernel import Kernel
from natgrad.optim.ngd import NaturalGradient
from natgrad.options import suggest
from natgrad.precondition import Identity, Nystrom, PivotedRowFactor, RowFactor, RPCholesky

RECIPES = ("default", "published")
PUBLISHED = {
    "max_rank": 500, "maxiter": 20, "min_decrease": 0.0, "warm_start": False, "scaling": 1.0, "acceleration": 0.0,
}  # fmt: skip
MADE_OF: dict[type, str] = {  # every part with options, and a short name that has it
    RowFactor: "NystromNGD()",
    Nystrom: 'NystromNGD(recipe="published")',
    PivotedRowFactor: "RPCholNGD()",
    RPCholesky: 'RPCholNGD(recipe="published")',
    Identity: "MatrixFreeNGD()",
    PCG: "solvers by PCG",
    Direct: "FullNGD()",
    Kernel: "KernelNGD()",
    NaturalGradient: "NaturalGradient()",
}
COMPOSED = {"preconditioner", "direction", "solver", "damping"}  # what the short names themselves put there


def NystromNGD(
    max_rank: int | None = None,
    maxiter: int | None = None,
    gamma: float | None = None,
    *,
    test: str | None = None,
    recipe: str = "default",
    damping: Damping | None = None,
    **options: Any,
) -> NaturalGradient:
    """NyströmNGD: NGD by conjugate gradients with a randomized Nyström preconditioner.

    The default recipe has it as a row factor (`ng.RowFactor`), the published one by eigenvectors (`ng.Nystrom`).

    Arguments:
        max_rank: ℓ_max, the rank of the preconditioner at most; 1000 by default, 500 for finite elements and in the
            published recipe.
        maxiter: pCG iterations at most; 40 by default, 20 in the published recipe.
        gamma: μ ≥ γ·eps·λ̂₁; 0.1 by default, 10 in the published recipe and with `gramian="assembled"`.
        test: "signs" (the default), "gaussian" (the published one), "sampling" (columns by the diagonal) or "uniform".
        recipe: "default" or "published".
        damping: another rule for μ, with a γ of its own.
        options: `gramian`, `batch`, `search`, … of `NaturalGradient`, `scaling`, `tol`, … of `PCG`, and those of the
            preconditioner.
    """
    builder = Nystrom if _published(recipe) else RowFactor
    return _compose((builder, PCG), recipe, gamma, damping, options, max_rank=max_rank, maxiter=maxiter, test=test)


def RPCholNGD(
    max_rank: int | None = None,
    maxiter: int | None = None,
    gamma: float | None = None,
    *,
    block: int | None = None,
    recipe: str = "default",
    damping: Damping | None = None,
    **options: Any,
) -> NaturalGradient:
    """RPCholNGD: NGD by conjugate gradients with a randomly pivoted Cholesky preconditioner (the paper, section 4.2.2).

    The default recipe makes a row factor of the pivots (`ng.PivotedRowFactor`), the published one is `ng.RPCholesky`.
    Arguments as for `NystromNGD`; `block` pivots are drawn at a time, 100 by default, 20 in the published recipe.
    """
    builder = RPCholesky if _published(recipe) else PivotedRowFactor
    return _compose((builder, PCG), recipe, gamma, damping, options, max_rank=max_rank, maxiter=maxiter, block=block)


def MatrixFreeNGD(
    maxiter: int = 520,
    gamma: float | None = None,
    *,
    recipe: str = "default",
    damping: Damping | None = None,
    **options: Any,
) -> NaturalGradient:
    """NGD by conjugate gradients without a preconditioner, the paper's baseline (520 products with G a step)."""
    return _compose((Identity, PCG), recipe, gamma, damping, options, maxiter=maxiter)


def FullNGD(
    gamma: float | None = None, *, recipe: str = "default", damping: Damping | None = None, **options: Any
) -> NaturalGradient:
    """NGD with the Gramian G (p, p) assembled and factorized: `ng.solve(problem, ng.FullNGD(), steps=100)`.

    `gamma` is 10 by default, other arguments are those of `ng.Direct` and `ng.NaturalGradient`.
    """
    return _compose((Direct,), recipe, gamma, damping, {"gramian": "assembled"} | options)


def KernelNGD(
    gamma: float | None = None, *, recipe: str = "default", damping: Damping | None = None, **options: Any
) -> NaturalGradient:
    """NGD in the space of the points (Woodbury), for more parameters than rows; with `momentum=0.9` it is SPRING:
    `ng.KernelNGD(momentum=0.9)`. `gamma` is 10 by default.
    """
    return _compose((Kernel,), recipe, gamma, damping, options)


def check_option(name: str, *kinds: type) -> None:
    """Refuses what is no option of these classes, and says which ones have it, or something like it."""
    known = [option for kind in kinds for option in names(kind)]
    if name in known:
        return
    if found := owners(name):
        raise ValueError(f"the option {name!r} would do nothing here: it is one of {found}")
    raise ValueError(f"unknown option {name!r}: {suggest(name, (*known, 'gamma', 'recipe', 'damping'))}")


def owners(name: str) -> str:
    """Which parts have an option of this name, in words; empty where none has."""
    return "; or of ".join(f"{kind.__name__}, as in {made}" for kind, made in MADE_OF.items() if name in names(kind))


def names(kind: type) -> list[str]:
    """The options of a part, other parts aside."""
    return [field.name for field in dataclasses.fields(kind) if field.name not in COMPOSED]


def _published(recipe: str) -> bool:
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: choose default or published")
    return recipe == "published"


def _compose(
    kinds: tuple[type, ...],
    recipe: str,
    gamma: float | None,
    damping: Damping | None,
    options: dict[str, Any],
    **named: Any,
) -> NaturalGradient:
    """A `NaturalGradient` of the given kinds, each the first argument of the next; None is the kind's own default."""
    published, kinds = _published(recipe), (*kinds, NaturalGradient)
    given = {name: value for name, value in (named | options).items() if value is not None}
    for name in given:
        check_option(name, *kinds)
    if published:
        given = {name: value for name, value in PUBLISHED.items() if any(name in names(k) for k in kinds)} | given
    if damping is not None and gamma is not None:
        raise ValueError(f"gamma is an option of the damping: write {type(damping).__name__}(gamma={gamma:g}, …)")
    if damping is None:
        by_rows = PCG in kinds and not published and given.get("gramian") != "assembled"
        gamma = (0.1 if by_rows else 10.0) if gamma is None else gamma
        damping = Published(gamma) if published else Guarded(Relative(gamma))
    part: Any = None
    for kind in kinds:
        own = {name: given[name] for name in names(kind) if name in given}
        if kind is NaturalGradient:
            own["damping"] = damping
        part = kind(**own) if part is None else kind(part, **own)
    return part
