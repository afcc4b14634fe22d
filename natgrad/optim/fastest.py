"""`NGD`: the form of natural gradient descent that is fastest for the size of a problem on this device.

All forms take the same steps, (G + μI) d = ∇L, up to round-off and to the digits of an inner solve. What they cost:

    direct    p²q + p³/3     a Cholesky factorization of G (`FullNGD`)
    rows      pqℓ + qℓ²      conjugate gradients behind a row factor of rank ℓ ≤ 1000 (`NystromNGD`)
    kernel    q²p + q³/3     a Cholesky factorization of K = AAᵀ, for fewer rows than parameters (`KernelNGD`)

The numbers below are where they cross, by `python -m benchmarks.forms` (docs/performance.md has the table).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
from jaxtyping import PRNGKeyArray, PyTree

from natgrad.backend import tuning
from natgrad.optim.damping import Damping
from natgrad.optim.kernel import suits
from natgrad.optim.linesearch import Armijo, LineSearch
from natgrad.optim.ngd import NaturalGradient, State, StepInfo
from natgrad.optim.recipes import FullNGD, KernelNGD, NystromNGD
from natgrad.options import Checked, NonNegative, Positive, budget
from natgrad.plan import plan
from natgrad.problem import Problem

FEWER = 0.75  # rows per parameter up to which K is factored, if they are half as many as the parameters of a G may be
FAR_FEWER = 0.1  # rows per parameter up to which K is factored however many they are


class NGD(Checked):
    """Natural gradient descent in the fastest form: `ng.solve(problem, ng.NGD(), steps=100)`.

    `ng.plan(ng.NGD(), problem)` says which one it is, with all its options. Options of one form alone are options of
    `ng.FullNGD`, `ng.NystromNGD` and `ng.KernelNGD`.

    Arguments:
        gamma: μ ≥ γ·eps·λ̂₁; by default that of the form.
        damping: another rule for μ, with a γ of its own.
        search: `Armijo()` or `GridSearch()`.
        acceleration: the cap on ‖a‖/‖v‖; 0 switches geodesic acceleration off.
        memory: what a step may take on a device, as bytes or "8GB"; by default what is free.
    """

    gamma: Positive | None = eqx.field(static=True, default=None)
    damping: Damping | None = None
    search: LineSearch = Armijo()
    acceleration: NonNegative = eqx.field(static=True, default=1.5)
    memory: Positive | None = eqx.field(static=True, default=None, converter=budget)

    def __check_init__(self):
        super().__check_init__()
        if self.gamma is not None and self.damping is not None:
            raise ValueError(f"gamma is an option of the damping: write {type(self.damping).__name__}(gamma=…)")

    def resolve(self, problem: Problem) -> NaturalGradient:
        """The form that this problem gets."""
        options: dict[str, Any] = {"search": self.search, "acceleration": self.acceleration, "memory": self.memory}
        return FORMS[fastest(problem)](gamma=self.gamma, damping=self.damping, **options)

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> State:
        """The state before the first step, with the form that was chosen."""
        decided = plan(self, problem)
        return decided.start(problem, key, decided)

    def step(self, problem: Problem, params: PyTree, state: State) -> tuple[PyTree, State, StepInfo]:
        """One iteration of that form."""
        return state.plan.step(problem, params, state)


FORMS: dict[str, Callable[..., NaturalGradient]] = {"direct": FullNGD, "rows": NystromNGD, "kernel": KernelNGD}


def fastest(problem: Problem) -> str:
    """The form for a problem on this device: "direct", "rows" or "kernel"."""
    p, q, most = problem.num_parameters, problem.num_rows, tuning.DIRECT_PARAMETERS.here()
    if suits(problem) and q <= FEWER * p and (q <= most / 2 or q <= FAR_FEWER * p):
        return "kernel"
    return "direct" if p <= most else "rows"
