"""The named optimizers: compositions of `NaturalGradient`, in two recipes.

`recipe="default"` is what measured best; `recipe="published"` is the paper's algorithm to the letter: a preconditioner
from scratch at every step in its published form, a cold start of pCG, no acceleration, μI, Armijo from α = 1.
"""

import difflib
import inspect
from typing import Any

from natgrad.optim.damping import Damping, Guarded, Published, Relative
from natgrad.optim.direction import PCG, Direct, Direction
from natgrad.optim.kernel import Kernel
from natgrad.optim.linesearch import Armijo
from natgrad.optim.ngd import NaturalGradient
from natgrad.precondition import Identity, Nystrom, RPCholesky

RECIPES = ("default", "published")


def NystromNGD(
    max_rank: int | None = None,
    maxiter: int | None = None,
    gamma: float | None = None,
    *,
    test: str | None = None,
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """NyströmNGD: NGD by conjugate gradients with a randomized Nyström preconditioner.

    Arguments:
        max_rank: ℓ_max, the rank of the preconditioner at most; 1000 by default, 500 for finite elements and in the
            published recipe.
        maxiter: pCG iterations at most; 40 by default, 20 in the published recipe.
        gamma: μ ≥ γ·eps·λ̂₁; 0.1 by default, 10 in the published recipe and with an assembled Gramian.
        test: "signs" (the default), "gaussian" (the published one), "sampling" (columns by the diagonal) or "uniform".
        recipe: "default" or "published".
        damping: another rule for μ (`gamma` is then its own).
        scaling: damp by μD, D = max(diag G, scaling·max diag G) normalized, in place of μI (1); see `PCG`.
        options: `gramian`, `batch`, `search`, … of `NaturalGradient`.
    """
    published = _published(recipe)
    max_rank = _rank(max_rank, published)
    if published:
        test = "gaussian" if test is None else test
        preconditioner = Nystrom(test=test, max_rank=max_rank, increase=20, ratio=10.0, reuse=False, method="svd")
    else:
        preconditioner = Nystrom(test="signs" if test is None else test, max_rank=max_rank)
    return _compose(_pcg(preconditioner, maxiter, published, scaling), gamma, damping, published, options)


def RPCholNGD(
    max_rank: int | None = None,
    maxiter: int | None = None,
    gamma: float | None = None,
    *,
    block: int | None = None,
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """RPCholNGD: NGD by conjugate gradients with a randomly pivoted Cholesky preconditioner (the paper, section 4.2.2).

    Arguments as for `NystromNGD`; `block` pivots are drawn at a time, 100 by default, 20 in the published recipe.
    """
    published = _published(recipe)
    form: dict[str, Any] = {"method": "woodbury", "ratio": 1.0, "block": 20} if published else {}
    preconditioner = RPCholesky(
        max_rank=_rank(max_rank, published), **form | ({} if block is None else {"block": block})
    )
    return _compose(_pcg(preconditioner, maxiter, published, scaling), gamma, damping, published, options)


def MatrixFreeNGD(
    maxiter: int = 520,
    gamma: float | None = None,
    *,
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """NGD by conjugate gradients without a preconditioner, the paper's baseline (520 products with G a step)."""
    published = _published(recipe)
    return _compose(_pcg(Identity(), maxiter, published, scaling), gamma, damping, published, options)


def FullNGD(
    gamma: float = 10.0,
    *,
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """NGD with the Gramian G (p, p) assembled and factorized: `ng.solve(problem, ng.FullNGD(), steps=100)`.

    Arguments as for `NystromNGD`.
    """
    options.setdefault("gramian", "assembled")
    published = _published(recipe)
    return _compose(Direct(scaling=_scaling(scaling, published)), gamma, damping, published, options)


def KernelNGD(
    gamma: float = 10.0,
    *,
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """NGD in the space of the points (Woodbury), for more parameters than rows; with `momentum=0.9` it is SPRING:
    `ng.KernelNGD(momentum=0.9)`.
    """
    published = _published(recipe)
    return _compose(Kernel(scaling=_scaling(scaling, published)), gamma, damping, published, options)


def _published(recipe: str) -> bool:
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: choose default or published")
    return recipe == "published"


def _rank(max_rank: int | None, published: bool) -> int | None:
    return 500 if max_rank is None and published else max_rank


def _scaling(scaling: float | None, published: bool) -> float | None:
    return 1.0 if scaling is None and published else scaling


def _pcg(preconditioner: Any, maxiter: int | None, published: bool, scaling: float | None) -> PCG:
    if maxiter is None:
        maxiter = 20 if published else 40
    options: dict[str, Any] = {"maxiter": maxiter, "scaling": _scaling(scaling, published)}
    if published:
        options |= {"progress": 0.0, "warm_start": False, "refresh": "always"}
    return PCG(preconditioner, **options)


def _compose(
    direction: Direction, gamma: float | None, damping: Damping | None, published: bool, options: dict[str, Any]
) -> NaturalGradient:
    if gamma is None:
        gamma = 10.0 if published or options.get("gramian") == "assembled" else 0.1
    if not gamma > 0:
        raise ValueError(f"gamma must be positive, got {gamma}")
    known = ("search", "gramian", "batch", "memory", "acceleration", "momentum")
    for name in options:
        if name not in known:
            close = difflib.get_close_matches(name, (*known, *inspect.signature(NystromNGD).parameters), n=1)
            hint = f"did you mean {close[0]}? Beside" if close else "beside"
            raise ValueError(f"unknown option {name!r}: {hint} its own, this optimizer takes {', '.join(known)}")
    if published:
        options = {"acceleration": 0.0, "search": Armijo(), **options}
    if damping is None:
        damping = Published(gamma) if published else Guarded(Relative(gamma))
    return NaturalGradient(direction=direction, damping=damping, **options)
