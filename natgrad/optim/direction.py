"""Direction solvers: (G + μI) d = ∇L, by Cholesky or by preconditioned conjugate gradients.

A direction solver owns μ: it estimates λ̂₁, asks the damping rule, and hands out a `System` that solves with any number
of right-hand sides (the natural gradient, and the second-order correction of geodesic acceleration).
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from natgrad.gramian import Gramian
from natgrad.linalg import pcg, power_method, safe_cholesky
from natgrad.precondition import Approximation, Nystrom, Preconditioner
from natgrad.precondition.base import MuRule


class Solve(eqx.Module):
    """A solution of (G + μI) x = b, the inner iterations it took and its relative residual ‖b − (G + μI)x‖ / ‖b‖."""

    x: Float[Array, " p"]
    iterations: Int[Array, ""]
    residual: Float[Array, ""]


class System:
    """(G + μI), ready to be solved with."""

    def __init__(self, mu: Array, largest: Array, rank: Array, solve: Callable[..., Solve], rebuilt: Array | bool):
        self.mu, self.largest, self.rank, self.solve, self.rebuilt = mu, largest, rank, solve, rebuilt


class Direction(eqx.Module):
    """How the damped system is solved."""

    @abc.abstractmethod
    def init(self, size: int, dtype: jnp.dtype, key: PRNGKeyArray) -> Any:
        """The state before the first step."""

    @abc.abstractmethod
    def prepare(self, gramian: Gramian, mu: MuRule, state: Any, key: PRNGKeyArray) -> tuple[System, Any]:
        """Everything that solving with G + μI needs."""

    def finish(self, state: Any, solve: Solve, accepted: Bool[Array, ""]) -> Any:
        """After the step: what the inner solve and the search tell about the state."""
        return state


class Direct(Direction):
    """Cholesky of the assembled Gramian (Algorithm "ComputeDirection: direct"); a failed one is damped more."""

    power_iterations: int = eqx.field(static=True, default=4)

    def init(self, size, dtype, key):
        return None

    def prepare(self, gramian, mu, state, key):
        G = gramian.as_matrix()
        largest = power_method(lambda v: G @ v, key, G.shape[0], iterations=self.power_iterations, dtype=G.dtype)
        factor, used = safe_cholesky(G, mu(largest))

        def solve(b: Array, x0: Array | None = None) -> Solve:
            x = jax.scipy.linalg.cho_solve((factor, True), b)
            residual = jnp.linalg.norm(b - G @ x - used * x) / _norm(b)
            return Solve(x, jnp.asarray(0, jnp.int32), residual)

        return System(used, largest, jnp.asarray(G.shape[0]), solve, True), state


class PCGState(eqx.Module):
    """The approximation in use and how it has been doing since it was built."""

    approximation: Approximation
    stale: Bool[Array, ""]
    fresh: Bool[Array, ""]
    baseline: Int[Array, ""]
    excess: Int[Array, ""]


class PCG(Direction):
    """Preconditioned conjugate gradients (Algorithm "ComputeDirection: preconditioned matrix-free").

    Arguments:
        preconditioner: a builder such as `Nystrom()`.
        maxiter: inner iterations at most.
        tol: the inner solve stops at ‖r‖ ≤ tol ‖b‖.
        warm_start: pCG starts from so much of the previous direction; 0 starts from zero.
        refresh: "stale" rebuilds the preconditioner once the iterations it costs more than a fresh one would add up to
            the price of a rebuild, or the solve misses its tolerance; "always" rebuilds it every step.
    """

    preconditioner: Preconditioner = Nystrom()
    maxiter: int = eqx.field(static=True, default=20)
    tol: float = eqx.field(static=True, default=1e-10)
    warm_start: float = eqx.field(static=True, default=0.9)
    refresh: str = eqx.field(static=True, default="stale")

    def __check_init__(self):
        if self.refresh not in ("stale", "always"):
            raise ValueError(f"refresh is 'stale' or 'always', got {self.refresh!r}")
        if self.maxiter < 1:
            raise ValueError(f"maxiter must be at least 1, got {self.maxiter}")

    def init(self, size, dtype, key):
        zero = jnp.asarray(0, jnp.int32)
        approximation = self.preconditioner.init(size, dtype, key)
        return PCGState(approximation, jnp.asarray(True), jnp.asarray(False), zero, zero)

    def prepare(self, gramian, mu, state, key):
        build = lambda: self.preconditioner.build(gramian, mu, state.approximation, key)
        if self.refresh == "always":
            approximation, stale = build(), jnp.asarray(True)
        else:
            stale = state.stale
            approximation = jax.lax.cond(stale, build, lambda: state.approximation)
        value = mu(approximation.largest)
        inverse = self.preconditioner.inverse(approximation, value)

        def solve(b: Array, x0: Array | None = None) -> Solve:
            matvec = lambda v: gramian.mv(v) + value * v
            start = self.warm_start * x0 if self.warm_start and x0 is not None else None
            result = pcg(matvec, b, preconditioner=inverse, x0=start, tol=self.tol, maxiter=self.maxiter)
            return Solve(result.x, result.iterations, result.residual)

        system = System(value, approximation.largest, approximation.rank, solve, stale)
        state = eqx.tree_at(lambda s: (s.approximation, s.fresh), state, (approximation, stale))
        return system, state

    def finish(self, state, solve, accepted):
        baseline = jnp.where(state.fresh, solve.iterations, state.baseline)
        excess = jnp.where(state.fresh, 0, state.excess + jnp.maximum(solve.iterations - baseline, 0))
        price = self.preconditioner.cost(state.approximation.basis.shape[0])
        missed = (solve.residual > self.tol) & (solve.iterations >= self.maxiter)
        growing = state.approximation.next_rank > state.approximation.rank
        stale = (excess >= price) | missed | ~accepted | growing
        return PCGState(state.approximation, stale, jnp.asarray(False), baseline, excess)


def _norm(b: Array) -> Array:
    """‖b‖, or 1 for b = 0."""
    norm = jnp.linalg.norm(b)
    return jnp.where(norm > 0, norm, 1.0)
