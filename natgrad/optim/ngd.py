"""Natural gradient descent, the meta-algorithm (Algorithm "Modular NGD" of the paper) and what goes past it.

One step at θ, with G = Jᵀ W J the Gramian and g = ∇L(θ):

    (G + μD) v = g + β μ D s            v the natural gradient; s the last step, β the momentum (0 in the paper)
    (G + μ'D) a = Jᵀ W ∂²F[v, v]        geodesic acceleration (not in the paper); D is I in the paper
    θ(α) = θ − α v − ½ α² a             and a search for α, which never raises the loss

The features F(θ) bend away from their tangent along v by ½α² ∂²F[v, v]; the correction a is the step that undoes this
to second order in the same metric (Transtrum and Sethna, 2012). Where PINNs stall, they stall on this curvature:
without the correction the accepted α falls far below 1. It is damped by μ' = max(μ, 10·eps·λ₁): where μ is smaller, in
directions that G hardly sees, v is long and its second derivative no longer says where to go; undamped there, the
correction would be what makes steps short. ‖a‖ is capped at a multiple of ‖v‖, beyond which the expansion
says nothing.

A rejected step is not the end: the damping hears of it (`natgrad.optim.damping.Guarded`), and the next one is shorter.
Unless the model, too, promised no more than the round-off of the loss (`natgrad.optim.linesearch`): then training has
`converged`, and μ stays.
"""

import warnings
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import everywhere, not_before
from natgrad.gramian import Gramian, gramian
from natgrad.optim.damping import Damping, Guarded, Outcome, Relative, Seen
from natgrad.optim.direction import PCG, Direction, System
from natgrad.optim.linesearch import Armijo, LineSearch, at_round_off
from natgrad.options import Checked, Count, NonNegative, Positive, Range, budget
from natgrad.plan import plan
from natgrad.problem import Problem
from natgrad.problem.base import check_steppable

Strategy = Literal["auto", "assembled", "jacobian", "batched", "linearized"]


class State(eqx.Module):
    """What the next step needs, from `solver.init(problem, params, key)`: of the last one, `previous` is v (p,),
    `correction` a (p,), and `moved` the step itself (p,)."""

    key: PRNGKeyArray
    iteration: Int[Array, ""]
    direction: Any
    damping: Any
    previous: Float[Array, " p"]
    correction: Float[Array, " p"]
    moved: Float[Array, " p"]
    #: What `init` decided for a solver that left something open, and `step` goes by.
    plan: Any = eqx.field(static=True, default=None)


class StepInfo(eqx.Module):
    """What a person wants to see of a step (scalars), from `params, state, info = solver.step(problem, params, state)`.

    `loss` is L before it, `change` what the step did to it.
    """

    loss: Float[Array, ""]
    change: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    step_size: Float[Array, ""]
    mu: Float[Array, ""]
    guard: Float[Array, ""]
    rank: Int[Array, ""]
    largest: Float[Array, ""]
    inner_iterations: Int[Array, ""]
    inner_residual: Float[Array, ""]
    evaluations: Int[Array, ""]
    rebuilt: Bool[Array, ""]
    acceleration: Float[Array, ""]
    accepted: Bool[Array, ""]
    converged: Bool[Array, ""]


class NaturalGradient(Checked):
    """θ ← θ − α (G + μI)⁻¹ ∇L.

    Arguments:
        direction: `PCG(preconditioner=…)`, `Direct()` or `Kernel()`.
        damping: the rule for μ, see `natgrad.optim.damping`; by default one without units that looks at the steps.
        search: `Armijo()` or `GridSearch()`.
        gramian: the strategy, see `ng.gramian`.
        batch: points at a time, for the strategies that have batches.
        memory: what a step may take on a device, as bytes or "8GB": strategy, batch and rank follow; by default what is
            free.
        acceleration: the cap on ‖a‖/‖v‖; 0 switches geodesic acceleration off.
        momentum: β.
    """

    direction: Direction = PCG()
    damping: Damping = Guarded(Relative())
    search: LineSearch = Armijo()
    gramian: Strategy = eqx.field(static=True, default="auto")
    batch: Count | None = eqx.field(static=True, default=None)
    memory: Positive | None = eqx.field(static=True, default=None, converter=budget)
    acceleration: NonNegative = eqx.field(static=True, default=1.5)
    momentum: Annotated[float, Range(at_least=0, below=1)] = eqx.field(static=True, default=0.0)

    def __check_init__(self):
        super().__check_init__()
        if self.gramian == "jacobian" and self.batch is not None:
            raise ValueError("batch does nothing with gramian='jacobian', which keeps all rows: leave one of them out")

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> State:
        """The state before the first step; what the solver leaves open is decided here (`natgrad.plan`)."""
        decided = plan(self, problem)
        return decided.start(problem, key, None if decided == self else decided)

    def start(self, problem: Problem, key: PRNGKeyArray, plan: "NaturalGradient | None" = None) -> State:
        """The state of a solver with nothing left open, and the `plan` that `step` is to go by."""
        size, dtype = problem.num_parameters, problem.dtype
        _warn_of_round_off(dtype)
        key, sub = host.split(key)
        zeros = host.zeros(size, dtype)
        return State(
            key=key,
            iteration=host.array(0),
            direction=self.direction.init(self.direction.unknowns(problem), dtype, sub),
            damping=self.damping.init(dtype),
            plan=plan,
            previous=zeros,
            correction=zeros,
            moved=zeros,
        )

    def step(self, problem: Problem, params: PyTree, state: State) -> tuple[PyTree, State, StepInfo]:
        """One iteration: pure, jittable; by all devices together where the problem is spread over several."""
        check_steppable(problem)
        solver = self if state.plan is None else state.plan
        return everywhere(solver._step, problem, params, state)

    def _step(self, problem: Problem, params: PyTree, state: State) -> tuple[PyTree, State, StepInfo]:
        theta, unravel = ravel_pytree(params)
        key, _, sub = jax.random.split(state.key, 3)
        direction, damping = self.direction, self.damping
        G = gramian(problem, params, self.gramian, batch=self.batch)
        gradient = G.loss_gradient()
        loss, norm = problem.loss(params), jnp.linalg.norm(gradient)

        seen = lambda largest: Seen(largest, loss, norm, state.iteration)
        mu = lambda largest: damping.mu(state.damping, seen(largest))
        system, inner = direction.prepare(G, mu, not_before(state.direction, norm + loss), sub, state.iteration)
        shift = self.momentum * state.moved if self.momentum else None
        solve = system.solve(gradient, state.previous, rows=problem.covector(params), shift=shift)
        v = _descent(solve.x, gradient, system)
        slope = gradient @ v
        corrected = self._correction(G, system, state, v)
        a, capped = corrected.direction, corrected.capped

        path = lambda step: theta - step * v - 0.5 * step**2 * capped
        change = problem.changes(params)
        found = self.search(lambda step: change(unravel(path(step))), slope)
        accepted = found.step_size > 0
        new = jnp.where(accepted, path(found.step_size), theta)
        converged = at_round_off(lambda theta: change(unravel(theta)), theta, new, 0.5 * slope)

        # What the quadratic model promised: α gᵀv − ½α² vᵀGv, with vᵀGv = gᵀv − μ vᵀD(v − βs) at the solution.
        square = slope - v @ system.damp(v if shift is None else v - shift)
        model = found.step_size * slope - 0.5 * found.step_size**2 * square
        gain = jnp.where(accepted & (model > 0), -found.change / jnp.where(model > 0, model, 1.0), 0.0)
        outcome = Outcome(seen(system.largest), mu(system.largest), system.mu, found.step_size, gain)
        kept = lambda old, new: jnp.where(converged, old, new)
        after_step = State(
            key=key,
            iteration=state.iteration + 1,
            direction=direction.finish(inner, solve, accepted),
            damping=jax.tree.map(kept, state.damping, damping.update(state.damping, outcome)),
            previous=jnp.where(accepted, v, 0.0),
            correction=jnp.where(accepted, a, 0.0),
            moved=theta - new,
            plan=state.plan,
        )
        info = StepInfo(
            loss=loss,
            change=found.change,
            gradient_norm=norm,
            step_size=found.step_size,
            mu=system.mu,
            guard=damping.guard(state.damping, theta.dtype),
            rank=system.rank,
            largest=system.largest,
            inner_iterations=solve.iterations + corrected.iterations,
            inner_residual=solve.residual,
            evaluations=found.evaluations,
            rebuilt=jnp.asarray(system.rebuilt),
            acceleration=corrected.relative_length,
            accepted=accepted,
            converged=converged,
        )
        return unravel(new), after_step, info

    def _correction(self, G: Gramian, system: System, state: State, v: Array) -> "_Correction":
        """Geodesic acceleration: (G + μ'D) a = Jᵀ W ∂²F[v, v]."""
        if not self.acceleration:
            return _Correction(jnp.zeros_like(v), jnp.zeros_like(v), jnp.zeros((), v.dtype), 0)
        bend = G.weigh(G.curvature(v))
        found = system.correct(G.pull(bend), state.correction, rows=bend)
        a = jnp.where(jnp.all(jnp.isfinite(found.x)), found.x, 0.0)
        relative_length = jnp.linalg.norm(a) / jnp.maximum(jnp.linalg.norm(v), jnp.finfo(v.dtype).tiny)
        return _Correction(
            a,
            a * jnp.minimum(1.0, self.acceleration / jnp.maximum(relative_length, self.acceleration)),
            relative_length,
            found.iterations,
        )


class _Correction(NamedTuple):
    """a of geodesic acceleration, a with ‖a‖ capped, ‖a‖/‖v‖, and the inner iterations it took."""

    direction: Float[Array, " p"]
    capped: Float[Array, " p"]
    relative_length: Float[Array, ""]
    iterations: Int[Array, ""] | int


@cache
def _warn_of_round_off(dtype: jnp.dtype) -> None:
    """Once for each dtype that is too coarse."""
    if jnp.finfo(dtype).eps > 1e-10:
        warnings.warn(
            f"natural gradient descent in {dtype}: its round-off sets a damping that keeps errors near 1e-3; "
            'for more, call jax.config.update("jax_enable_x64", True) before building the network',
            stacklevel=4,
        )


def _descent(v: Array, gradient: Array, system: Any) -> Array:
    """v where it is a descent direction, else a gradient step of the length the largest eigenvalue allows."""
    good = jnp.all(jnp.isfinite(v)) & (gradient @ v > 0)
    return jnp.where(good, v, system.gradient_step(gradient))
