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

from natgrad import host
from natgrad.gramian import Gramian, Scaled
from natgrad.linalg import pcg, power_method, safe_cholesky
from natgrad.precondition import Approximation, Nystrom, Preconditioner
from natgrad.precondition.base import MuRule, round_off
from natgrad.problem import Problem

DECAY = 1 / 3  # of the c of D, per step
CORRECTION = 1e-8  # `PCG.progress` for corrections; docs/performance.md has what 1e-10, 1e-7 and 1e-4 do


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
    scaling = gramian.scaling if scaling is None else scaling
    if scaling == 1:
        return gramian, 1.0
    least = jnp.maximum(scaling, DECAY**iteration)
    diagonal = gramian.diagonal() if diagonal is None else diagonal
    top = jnp.max(diagonal)
    share = jnp.where(top > 0, diagonal / jnp.where(top > 0, top, 1.0), 1.0)
    scale = 1 / jnp.sqrt(jnp.maximum(share, least))
    return Scaled(gramian, scale), scale


def check_scaling(scaling: float | None) -> None:
    """Refuses a c outside (0, 1]."""
    if scaling is not None and not 0 < scaling <= 1:
        raise ValueError(f"scaling must lie in (0, 1], 1 for none, got {scaling}")


class Direction(eqx.Module):
    """How the damped system is solved."""

    def resolve(self, problem: Problem) -> "Direction":
        """The solver itself, or the one it stands for on this problem."""
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

    power_iterations: int = eqx.field(static=True, default=4)
    scaling: float | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_scaling(self.scaling)

    def init(self, size, dtype, key):
        return None

    def prepare(self, gramian, mu, state, key, iteration=0):
        operator, scale = scaled(gramian, self.scaling, iteration)
        G = operator.as_matrix()
        largest = power_method(lambda v: G @ v, key, G.shape[0], iterations=self.power_iterations, dtype=G.dtype)
        factor, used = safe_cholesky(G, mu(largest))

        def solve(b: Array, x0: Array | None = None) -> Solve:
            x = jax.scipy.linalg.cho_solve((factor, True), b)
            residual = jnp.linalg.norm(b - G @ x - used * x) / _norm(b)
            return Solve(x, jnp.asarray(0, jnp.int32), residual)

        return System(used, largest, jnp.asarray(G.shape[0]), solve, True, scale), state


class PCGState(eqx.Module):
    """What the preconditioner's builder keeps, whether the last solve with it was good enough, and diag G of the last
    step where it scales the damping."""

    approximation: Any
    failed: Bool[Array, ""]
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
        preconditioner: a builder such as `Nystrom()`.
        maxiter: inner iterations at most.
        tol: the inner solve stops at ‖r‖ ≤ tol ‖b‖ …
        progress: … or once an iteration adds no more than this part to the decrease of ½xᵀ(G + μI)x − bᵀx. The error
            in the norm of G + μI is then about its square root; a Cholesky factorization does no better than 1e-4.
        warm_start: start from the previous direction, scaled to fit.
        refresh: "always" builds the preconditioner anew at every step. "stale" keeps one that lasts (with eigenvectors)
            while a probe (one product with G) finds G + μI no further than `staleness` from it, and the last solve with
            it came to an end.
        scaling: c of the damping's D, see the module's header.
        staleness: the root mean square eigenvalue of P⁻¹(G + μI) on the range of the approximation up to which it is
            kept; 1 for a perfect one.
    """

    preconditioner: Preconditioner = Nystrom()
    maxiter: int = eqx.field(static=True, default=40)
    tol: float = eqx.field(static=True, default=1e-10)
    progress: float = eqx.field(static=True, default=1e-10)
    warm_start: bool = eqx.field(static=True, default=True)
    refresh: str = eqx.field(static=True, default="stale")
    staleness: float = eqx.field(static=True, default=3.0)
    scaling: float | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        check_scaling(self.scaling)
        if self.refresh not in ("stale", "always"):
            raise ValueError(f"refresh is 'stale' or 'always', got {self.refresh!r}")
        if self.maxiter < 1:
            raise ValueError(f"maxiter must be at least 1, got {self.maxiter}")

    def resolve(self, problem):
        scaling = problem.scaling if self.scaling is None else self.scaling
        preconditioner = self.preconditioner.limited(problem.max_rank)
        return dataclasses.replace(self, preconditioner=preconditioner, scaling=scaling)

    def init(self, size, dtype, key):
        diagonal = None if self.scaling in (None, 1) or self.preconditioner.lasting else host.zeros(size, dtype)
        return PCGState(self.preconditioner.init(size, dtype, key), host.array(True), diagonal)

    def prepare(self, gramian, mu, state, key, iteration=0):
        diagonal = state.diagonal
        gramian, scale = scaled(gramian, self.scaling, iteration, diagonal)
        key, probe = jax.random.split(key)
        build = lambda: self.preconditioner.build(gramian, mu, state.approximation, key)
        if self.refresh == "always" or not self.preconditioner.lasting:
            approximation, stale = build(), jnp.asarray(True)
        else:
            stale = state.failed | self._stale(gramian, mu, state.approximation, probe)
            approximation = jax.lax.cond(stale, build, lambda: state.approximation)
        value = mu(approximation.largest)

        def solve(b: Array, x0: Array | None = None, value: Array = value, progress: float = 0.0) -> Solve:
            result = pcg(
                lambda v: gramian.mv(v) + value * v,
                b,
                preconditioner=self.preconditioner.inverse(approximation, value),
                x0=x0 if self.warm_start else None,
                tol=self.tol,
                maxiter=self.maxiter,
                progress=max(progress, self.progress),
            )
            return Solve(result.x, result.iterations, result.residual)

        system = PCGSystem(value, approximation.largest, approximation.rank, solve, stale, scale)
        kept = self.preconditioner.keep(approximation, state.approximation)
        if diagonal is not None:  # that of Ĝ, which differs from G in what is below round-off
            fresh = approximation.diagonal / scale**2
            diagonal = jnp.where(jnp.isfinite(jnp.sum(fresh)), fresh, diagonal)
        return system, PCGState(kept, state.failed, diagonal)

    def _stale(self, gramian: Gramian, mu: MuRule, approximation: Approximation, key: PRNGKeyArray) -> Array:
        """Whether P⁻¹(G + μI) is far from the identity on a random vector in the range of the approximation.

        With z = P^(-½) s for random signs s on that range, ‖P^(-½) (G + μI) z‖ / ‖s‖ is the root mean square
        eigenvalue; where the Gramian has turned away from an old basis it is large, often by ten orders of magnitude.
        """
        value = mu(approximation.largest)
        used = approximation.eigenvalues > 0
        U, scale = approximation.basis, jnp.where(used, 1 / jnp.sqrt(approximation.eigenvalues + value), 0.0)
        signs = jax.random.rademacher(key, scale.shape, scale.dtype)
        z = U @ (signs * scale)
        y = gramian.mv(z) + value * z
        inside = y @ U
        outside = y - U @ inside
        tail = value + jnp.min(jnp.where(used, approximation.eigenvalues, jnp.inf))
        square = jnp.sum((inside * scale) ** 2) + jnp.sum(outside**2) / tail
        return ~(square <= self.staleness**2 * jnp.sum(used))

    def finish(self, state, solve, accepted):
        # More inner iterations than the budget, or a step that led nowhere: do not trust the approximation again.
        kept = self.preconditioner.adapt(state.approximation, solve.iterations)
        return PCGState(kept, (solve.iterations >= self.maxiter) | ~accepted, state.diagonal)


def _norm(b: Array) -> Array:
    """‖b‖, or 1 for b = 0."""
    norm = jnp.linalg.norm(b)
    return jnp.where(norm > 0, norm, 1.0)
