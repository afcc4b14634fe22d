"""Direction solvers: (G + μD) d = ∇L, by Cholesky or by preconditioned conjugate gradients.

A direction solver owns μ: it estimates λ̂₁, asks the damping rule, and hands out a `System` that solves with any number
of right-hand sides (the natural gradient, and the second-order correction of geodesic acceleration).

D is the identity in the paper. Marquardt's D = diag G, here D = max(diag G, c·max diag G)/max diag G, damps every
parameter in its own units: with S = D^(-½) the system is solved as (SGS + μI) y = S∇L, d = Sy. The spectrum of SGS is
flatter, which asks for more rank, but its weak directions lie further above round-off, and far fewer steps are needed
where the rank suffices. `scaling` is c, approached from 1 as 3⁻ᵏ, since steps far from the minimum get worse by it;
1 is D = I. By default the problem says: 1e-8 for finite-element energies, whose spectra decay fast (a fifth fewer
steps), 1 elsewhere, where no c was better on all problems. `PCG` takes diag G from the factor of
the last step where the preconditioner has one: it costs nothing, and steps are as good.
"""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from natgrad.backend import host
from natgrad.backend.batched import cholesky_solve
from natgrad.gramian import Gramian, Scaled
from natgrad.linalg import pcg, power_method, safe_cholesky
from natgrad.options import Checked, Count, NonNegative, Share
from natgrad.precondition import Preconditioner, RowFactor
from natgrad.precondition.base import MuRule, round_off
from natgrad.problem import Problem

DECAY = 1 / 3  # of the c of D, per step
CORRECTION = 1e-8  # `PCG.min_decrease` for corrections; docs/notes/2026-11-step.md has what 1e-10, 1e-7 and 1e-4 do


class Solve(eqx.Module):
    """A solution of (G + μI) x = b, the inner iterations it took and its relative residual ‖b − (G + μI)x‖ / ‖b‖."""

    x: Float[Array, " p"]
    iterations: Int[Array, ""]
    residual: Float[Array, ""]


class System:
    """(G + μD), ready to be solved with; `scale` is D^(-½)."""

    def __init__(
        self,
        mu: Array,
        largest: Array,
        rank: Array,
        solve: Callable[..., Solve],
        rebuilt: Array | bool,
        scale: Array | float = 1.0,
    ):
        self.mu, self.largest, self.rank, self.rebuilt, self.scale = mu, largest, rank, rebuilt, scale
        self._solve = solve

    def solve(
        self, b: Array, x0: Array | None = None, *, rows: Array | None = None, shift: Array | None = None
    ) -> Solve:
        """(G + μD)⁻¹ (b + μDs) for a `shift` s; `x0` is where an iteration may start.

        `rows` is c with b = Aᵀc where there is one, for solvers that work in the space of the rows of A.
        """
        b = b if shift is None else b + self.damp(shift)
        found = self._solve(self.scale * b, None if x0 is None else x0 / self.scale)
        return Solve(self.scale * found.x, found.iterations, found.residual)

    def correct(self, b: Array, x0: Array | None = None, *, rows: Array | None = None) -> Solve:
        """(G + μ'D)⁻¹ b, μ' ≥ μ as large as the solver likes: for a correction to a solution that need not be exact."""
        return self.solve(b, x0, rows=rows)

    def damp(self, v: Array) -> Array:
        """μ D v."""
        return self.mu * v / self.scale**2

    def gradient_step(self, gradient: Array) -> Array:
        """A multiple of D⁻¹∇L, of the length the largest eigenvalue allows."""
        return self.scale**2 * gradient / (self.largest + self.mu)


def scaled(
    gramian: Gramian, scaling: float | None, iteration: Array | int, diagonal: Array | None = None
) -> tuple[Any, Array | float]:
    """SGS and S = D^(-½), from a given `diagonal` or that of G."""
    if scaling is None:
        raise ValueError("the direction's scaling is open: give one, or let resolve(problem) do so")
    if scaling == 1:
        return gramian, 1.0
    least = jnp.maximum(scaling, DECAY**iteration)
    diagonal = gramian.diagonal() if diagonal is None else diagonal
    top = jnp.max(diagonal)
    share = jnp.where(top > 0, diagonal / jnp.where(top > 0, top, 1.0), 1.0)
    scale = 1 / jnp.sqrt(jnp.maximum(share, least))
    return Scaled(gramian, scale), scale


class Direction(Checked):
    """How (G + μI) v = ∇L is solved, for a `NaturalGradient(direction=…)`: the base of `PCG`, `Direct` and `Kernel`.

    One of your own has `init`, `prepare` and, where it learns from a solve, `finish`.
    """

    @property
    def factors(self) -> bool:
        """Whether it factors a matrix of all its unknowns."""
        return False

    def resolve(self, problem: Problem) -> "Direction":
        """The solver with every option decided that it leaves to the problem."""
        return self

    def unknowns(self, problem: Problem) -> int:
        """How many unknowns the system it solves has."""
        return problem.num_parameters

    @abc.abstractmethod
    def init(self, size: int, dtype: jnp.dtype, key: PRNGKeyArray) -> Any:
        """The state before the first step."""

    @abc.abstractmethod
    def prepare(
        self, gramian: Gramian, mu: MuRule, state: Any, key: PRNGKeyArray, iteration: Int[Array, ""] | int = 0
    ) -> tuple[System, Any]:
        """Everything that solving with G + μD needs, at the given iteration."""

    def finish(self, state: Any, solve: Solve, accepted: Bool[Array, ""]) -> Any:
        """After the step: what the inner solve and the search tell about the state."""
        return state


class Direct(Direction):
    """Cholesky of the assembled Gramian (Algorithm "ComputeDirection: direct"); a failed one is damped more.

    `scaling` as in the module's header.
    """

    power_iterations: Count = eqx.field(static=True, default=4)
    scaling: Share | None = eqx.field(static=True, default=None)

    @property
    def factors(self):
        return True

    def resolve(self, problem):
        return self if self.scaling is not None else dataclasses.replace(self, scaling=problem.scaling)

    def init(self, size, dtype, key):
        return None

    def prepare(self, gramian, mu, state, key, iteration=0):
        operator, scale = scaled(gramian, self.scaling, iteration)
        G = operator.as_matrix()
        largest = power_method(lambda v: G @ v, key, G.shape[0], iterations=self.power_iterations, dtype=G.dtype)
        factor, used = safe_cholesky(G, mu(largest))

        def solve(b: Array, x0: Array | None = None) -> Solve:
            x = cholesky_solve(factor, b)
            residual = jnp.linalg.norm(b - G @ x - used * x) / _norm(b)
            return Solve(x, jnp.asarray(0, jnp.int32), residual)

        return System(used, largest, jnp.asarray(G.shape[0]), solve, True, scale), state


class PCGState(eqx.Module):
    """What the preconditioner's builder keeps, and diag G of the last step where it scales the damping."""

    preconditioner: Any
    diagonal: Float[Array, " p"] | None


class PCGSystem(System):
    """Corrections are damped by no less than an assembled Gramian would have to be, and have fewer digits."""

    def correct(self, b, x0=None, *, rows=None):
        value = jnp.maximum(self.mu, round_off(self.largest))
        found = self._solve(self.scale * b, None if x0 is None else x0 / self.scale, value, CORRECTION)
        return Solve(self.scale * found.x, found.iterations, found.residual)


class PCG(Direction):
    """Preconditioned conjugate gradients (Algorithm "ComputeDirection: preconditioned matrix-free").

    Arguments:
        preconditioner: a builder such as `RowFactor()`.
        maxiter: inner iterations at most.
        tol: the inner solve stops at ‖r‖ ≤ tol ‖b‖ …
        min_decrease: … or once an iteration adds no more than this part to the decrease of ½xᵀ(G + μI)x − bᵀx. The
            error in the norm of G + μI is then about its square root; a Cholesky factorization does no better than
            1e-4.
        warm_start: start from the previous direction, scaled to fit.
        scaling: c of the damping's D, see the module's header.
    """

    preconditioner: Preconditioner = RowFactor()
    maxiter: Count = eqx.field(static=True, default=40)
    tol: NonNegative = eqx.field(static=True, default=1e-10)
    min_decrease: NonNegative = eqx.field(static=True, default=1e-10)
    warm_start: bool = eqx.field(static=True, default=True)
    scaling: Share | None = eqx.field(static=True, default=None)

    def resolve(self, problem):
        scaling = problem.scaling if self.scaling is None else self.scaling
        return dataclasses.replace(self, preconditioner=self.preconditioner.resolve(problem), scaling=scaling)

    def init(self, size, dtype, key):
        known = self.preconditioner.has_diagonal and self.scaling not in (None, 1)
        diagonal = host.zeros(size, dtype) if known else None
        return PCGState(self.preconditioner.init(size, dtype, key), diagonal)

    def prepare(self, gramian, mu, state, key, iteration=0):
        diagonal = state.diagonal
        gramian, scale = scaled(gramian, self.scaling, iteration, diagonal)
        own = jax.random.fold_in(key, 0)
        approximation, kept = self.preconditioner.build(gramian, mu, state.preconditioner, own)
        value = mu(approximation.largest)

        def solve(b: Array, x0: Array | None = None, value: Array = value, min_decrease: float = 0.0) -> Solve:
            result = pcg(
                lambda v: gramian.mv(v) + value * v,
                b,
                preconditioner=approximation.inverse(value),
                x0=x0 if self.warm_start else None,
                tol=self.tol,
                maxiter=self.maxiter,
                min_decrease=max(min_decrease, self.min_decrease),
            )
            return Solve(result.x, result.iterations, result.residual)

        system = PCGSystem(value, approximation.largest, approximation.rank, solve, approximation.rebuilt, scale)
        if diagonal is not None:  # that of Ĝ, which differs from G in what is below round-off
            fresh = approximation.diagonal / scale**2
            diagonal = jnp.where(jnp.isfinite(jnp.sum(fresh)), fresh, diagonal)
        return system, PCGState(kept, diagonal)

    def finish(self, state, solve, accepted):
        # More inner iterations than the budget, or a step that led nowhere: do not trust the approximation again.
        good = (solve.iterations < self.maxiter) & accepted
        return PCGState(self.preconditioner.adapt(state.preconditioner, solve.iterations, good), state.diagonal)


def _norm(b: Array) -> Array:
    """‖b‖, or 1 for b = 0."""
    norm = jnp.linalg.norm(b)
    return jnp.where(norm > 0, norm, 1.0)
