"""The named optimizers: compositions of `NaturalGradient`, in two recipes.

`recipe="default"` is what measured best; `recipe="published"` is the paper's algorithm to the letter: a preconditioner
from scratch at every step in its published form, a cold start of pCG, no acceleration, μI, Armijo from α = 1.
"""

from typing import Any

from natgrad.optim.damping import Auto, Damping
from natgrad.optim.direction import PCG, Direct, Direction
from natgrad.optim.kernel import Kernel
from natgrad.optim.linesearch import Armijo
from natgrad.optim.ngd import NaturalGradient
from natgrad.precondition import Identity, Nystrom, RPCholesky

RECIPES = ("default", "published")


def NystromNGD(
    max_rank: int = 500,
    maxiter: int | None = None,
    gamma: float = 10.0,
    *,
    test: str = "gaussian",
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """NyströmNGD: NGD by conjugate gradients with a randomized Nyström preconditioner.

    Arguments:
        max_rank: ℓ_max, the rank of the preconditioner at most.
        maxiter: pCG iterations at most; 40 by default, 20 in the published recipe.
        gamma: μ ≥ γ·eps·λ̂₁.
        test: "gaussian", "sampling" (columns by the diagonal) or "uniform".
        recipe: "default" or "published".
        damping: another rule for μ (`gamma` is then its own).
        scaling: damp by μD, D = max(diag G, scaling·max diag G) normalized, in place of μI (1); see `PCG`.
        options: `gramian`, `batch`, `search`, … of `NaturalGradient`.
    """
    published = _published(recipe)
    if published:
        preconditioner = Nystrom(test=test, max_rank=max_rank, increase=20, ratio=10.0, reuse=False, method="svd")
    else:
        preconditioner = Nystrom(test=test, max_rank=max_rank)
    return _compose(_pcg(preconditioner, maxiter, published, scaling), gamma, damping, published, options)


def RPCholNGD(
    max_rank: int = 500,
    maxiter: int | None = None,
    gamma: float = 10.0,
    *,
    block: int = 20,
    recipe: str = "default",
    damping: Damping | None = None,
    scaling: float | None = None,
    **options: Any,
) -> NaturalGradient:
    """RPCholNGD: NGD by conjugate gradients with a randomly pivoted Cholesky preconditioner.

    Arguments as for `NystromNGD`; `block` pivots are drawn at a time.
    """
    published = _published(recipe)
    preconditioner = RPCholesky(max_rank=max_rank, block=block, method="woodbury" if published else "eigh")
    return _compose(_pcg(preconditioner, maxiter, published, scaling), gamma, damping, published, options)


def MatrixFreeNGD(
    maxiter: int = 520,
    gamma: float = 10.0,
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
    """NGD with the Gramian assembled and factorized."""
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
    """NGD in the space of the points (Woodbury), for more parameters than rows; with `momentum=0.9` it is SPRING."""
    published = _published(recipe)
    return _compose(Kernel(scaling=_scaling(scaling, published)), gamma, damping, published, options)


def _published(recipe: str) -> bool:
    if recipe not in RECIPES:
        raise ValueError(f"unknown recipe {recipe!r}: choose default or published")
    return recipe == "published"


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
    direction: Direction, gamma: float, damping: Damping | None, published: bool, options: dict[str, Any]
) -> NaturalGradient:
    if not gamma > 0:
        raise ValueError(f"gamma must be positive, got {gamma}")
    known = ("search", "gramian", "batch", "acceleration", "momentum")
    for name in options:
        if name not in known:
            raise ValueError(f"unknown option {name!r}: beside its own, this optimizer takes {', '.join(known)}")
    if published:
        options = {"acceleration": 0.0, "search": Armijo(), **options}
    return NaturalGradient(
        direction=direction, damping=Auto(gamma, published) if damping is None else damping, **options
    )
