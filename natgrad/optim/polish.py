"""`Polish`: Gauss–Newton steps whose bend is followed to all orders, for the last digits of least squares.

With A = W^½ J (q × p), r = W^½ F(θ) and S = (AᵀA + μI)⁻¹Aᵀ, a step δ is asked to do to the features what the linear
model promises of αd, d = −S r: W^½ F(θ + δ) = r + αAd, as far as S sees. The remainder of Taylor's formula,
N(δ) = W^½ F(θ + δ) − r − Aδ, goes to the right:

    δ ← α d − S N(δ),      δ = α d at the start

Each pass takes the features at one θ and one solve with the same factors, and makes δ right to one more order in α. One
pass is geodesic acceleration (`NaturalGradient.acceleration`), twenty follow the path as far as its Taylor series
converges. Weak directions are long and bent; steps that are right to second order then have α ≪ 1, or need a μ
that holds them back.

The passes end where δ no longer contracts, or the loss no longer falls. α is halved until the loss falls by at least
`decrease` of what the linear model promises. μ falls after a step with α ≥ ½ and grows after a short one. It may
fall to 10³·eps²·λ̂₁, since A is factored and AᵀA never formed (`natgrad.linalg.damped`).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from natgrad.backend import host
from natgrad.backend.parallel import everywhere, inside, not_before, total
from natgrad.gramian import StoredJacobian
from natgrad.linalg import damped_rows, power_method
from natgrad.optim.linesearch import at_round_off
from natgrad.optim.ngd import StepInfo
from natgrad.options import Checked, Count, Factor, Fraction, Share
from natgrad.problem import Problem
from natgrad.problem.base import check_steppable

LEAST = 1e3  # times eps²·λ̂₁: what μ may fall to
COPIES = 4  # arrays of (q + p) × p at the peak of a step


class PolishState(eqx.Module):
    """What the next step needs, scalars: the randomness, how many steps were made, and μ/λ̂₁ (NaN before the first)."""

    key: PRNGKeyArray
    iteration: Int[Array, ""]
    relative: Float[Array, ""]


class Path(eqx.Module):
    """The passes along one α: δ (p,) now and the best of all, what that did to the loss, the length of the last change
    of δ, the passes made, and whether there is a point in another."""

    delta: Float[Array, " p"]
    best: Float[Array, " p"]
    change: Float[Array, ""]
    moved: Float[Array, ""]
    passes: Int[Array, ""]
    going: Array


class Polish(Checked):
    """Gauss–Newton steps bent with the features, to the last digits: `ng.solve(problem, ng.Polish(), steps=100)`.

    For least squares whose Jacobian can be factored: it takes 4(q + p)p numbers, and 4(q + p)p² operations a step.

    Arguments:
        start: μ/λ̂₁ of the first step; 1e-14 goes on where another solver stalled.
        passes: of the remainder, at most, for one α.
        decrease: the actual decrease of the loss over that of the linear model that a step has at least.
        trials: of α = 1, ½, ¼, …, at most.
        down: the factor by which μ falls after a step with α ≥ ½.
        up: the factor by which it grows after one with α < ⅛; after a rejected one its square.
    """

    start: Share = eqx.field(static=True, default=1e-6)
    passes: Count = eqx.field(static=True, default=20)
    decrease: Fraction = eqx.field(static=True, default=0.25)
    trials: Count = eqx.field(static=True, default=8)
    down: Factor = eqx.field(static=True, default=10.0)
    up: Factor = eqx.field(static=True, default=4.0)

    def held(self, problem: Problem) -> int:
        """Bytes at the peak of a step; refuses what is no least-squares problem."""
        coupled = problem.coupling(problem.params) is not None
        if coupled or jax.eval_shape(problem.covector, problem.params) is None:
            raise ValueError("ng.Polish is for sums of squares of the metric's own features: ng.NGD(), say, is for all")
        p = problem.num_parameters
        return COPIES * (problem.num_rows + p) * p * problem.dtype.itemsize

    def init(self, problem: Problem, params: PyTree, key: PRNGKeyArray) -> PolishState:
        """The state before the first step."""
        self.held(problem)
        return PolishState(key, host.array(0), host.array(float("nan"), problem.dtype))

    def step(self, problem: Problem, params: PyTree, state: PolishState) -> tuple[PyTree, PolishState, StepInfo]:
        """One iteration: pure, jittable; by all devices together where the problem is spread over several."""
        check_steppable(problem)
        return everywhere(self._step, problem, params, state)

    def _step(self, problem: Problem, params: PyTree, state: PolishState) -> tuple[PyTree, PolishState, StepInfo]:
        theta, unravel = ravel_pytree(params)
        key, sub = jax.random.split(state.key)
        G = StoredJacobian(problem, params)
        A, r = G.jacobian, _rows(problem, params)
        gradient = G.pull(r)
        largest = power_method(G.mv, sub, theta.size, iterations=8, dtype=theta.dtype)
        least = LEAST * jnp.finfo(theta.dtype).eps ** 2
        relative = jnp.clip(jnp.where(jnp.isnan(state.relative), self.start, state.relative), least, 1.0)
        mu = relative * jnp.where(largest > 0, largest, 1.0)
        loss, norm = 0.5 * total(r @ r), jnp.linalg.norm(gradient)
        factors = damped_rows(not_before(A, mu + loss + norm), mu, total if inside() else None)
        d = -factors.solve(r)
        Ad = A @ d
        slope, square = -total(r @ Ad), total(Ad @ Ad)
        d = not_before(d, slope + square)

        features = lambda delta: _rows(problem, unravel(theta + delta))
        remainder = lambda delta, value: factors.solve(value - r - A @ delta)
        promised = lambda alpha: alpha * slope - 0.5 * alpha**2 * square
        found, alpha, tried, passes = self._search(features, remainder, r, d, promised)
        accepted = found.change < 0
        step = jnp.where(accepted, found.best, 0.0)
        new = jnp.where(accepted, theta + found.best, theta)
        change = problem.changes(params)
        converged = at_round_off(lambda theta: change(unravel(theta)), theta, new, promised(1.0))
        times = jnp.where(alpha >= 0.5, 1 / self.down, jnp.where(alpha < 0.125, self.up, 1.0))
        times = jnp.where(accepted, times, self.up**2)
        state = PolishState(key, state.iteration + 1, jnp.where(converged, relative, relative * times))
        bend = jnp.linalg.norm(step - alpha * d) / _size(alpha * d)
        info = StepInfo(
            loss=loss,
            change=jnp.where(accepted, found.change, 0.0),
            gradient_norm=norm,
            step_size=jnp.where(accepted, alpha, 0.0),
            mu=mu,
            guard=jnp.ones_like(mu),
            rank=jnp.asarray(theta.size),
            largest=largest,
            inner_iterations=passes,
            inner_residual=found.moved / _size(found.delta),
            evaluations=tried,
            rebuilt=jnp.asarray(True),
            acceleration=jnp.where(accepted, bend, 0.0),
            accepted=accepted,
            converged=converged,
        )
        return unravel(new), state, info

    def _search(
        self, features: Any, remainder: Any, r: Array, d: Array, promised: Any
    ) -> tuple[Path, Array, Array, Array]:
        """The passes along the first of α = 1, ½, … whose decrease is enough, that α, the trials and all passes; along
        the last one if there is none, with no change where the loss did not fall."""

        def one(path: Path, start: Array) -> Path:
            value = features(path.delta)
            change = 0.5 * total((value - r) @ (value + r))
            better = change < path.change
            delta = start - remainder(path.delta, value)
            moved = jnp.linalg.norm(delta - path.delta)
            on = (moved < path.moved) & jnp.isfinite(change) & (better | (path.passes < 2) | (path.change >= 0))
            return Path(
                delta=jnp.where(on, delta, path.delta),
                best=jnp.where(better, path.delta, path.best),
                change=jnp.where(better, change, path.change),
                moved=moved,
                passes=path.passes + 1,
                going=on,
            )

        def along(alpha: Array) -> Path:
            zero = jnp.zeros_like(alpha)
            begin = Path(alpha * d, jnp.zeros_like(d), zero, zero + jnp.inf, jnp.asarray(0), jnp.asarray(True))
            more = lambda path: path.going & (path.passes < self.passes)
            return jax.lax.while_loop(more, lambda path: one(path, alpha * d), begin)

        def enough(path: Path, alpha: Array) -> Array:
            return (path.change < 0) & (-path.change >= self.decrease * promised(alpha))

        def unfinished(carry):
            path, alpha, tried, _ = carry
            return (tried == 0) | (~enough(path, alpha) & (tried < self.trials))

        def trial(carry):
            _, alpha, tried, passes = carry
            alpha = jnp.where(tried == 0, alpha, 0.5 * alpha)
            path = along(alpha)
            return path, alpha, tried + 1, passes + path.passes

        zero = jnp.zeros((), d.dtype)
        nothing = Path(d, d, zero, zero, jnp.asarray(0), jnp.asarray(True))
        return jax.lax.while_loop(unfinished, trial, (nothing, zero + 1, jnp.asarray(0), jnp.asarray(0)))


def _rows(problem: Problem, params: PyTree) -> Float[Array, " q"]:
    """r = W^½ F(θ)."""
    rows = problem.covector(params)
    assert rows is not None, "init refuses problems without"
    return rows


def _size(x: Array) -> Array:
    """‖x‖, or 1 for x = 0."""
    norm = jnp.linalg.norm(x)
    return jnp.where(norm > 0, norm, 1.0)
