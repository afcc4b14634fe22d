"""Preconditioned conjugate gradients for A x = b, A symmetric positive definite.

    z = P⁻¹r,  β = rᵀz / (rᵀz)₋,  d = z + β d₋,  α = rᵀz / dᵀAd,  x += α d,  r −= α Ad

An iteration takes one product with A and one with P⁻¹; a starting point costs one more product, and so does
the true residual at the end. Iterations stop when ‖r‖₂ ≤ tol·‖b‖₂, at maxiter, or on breakdown (dᵀAd or rᵀz
not positive or not finite, an update not finite), which leaves the last good iterate. That one is returned,
and not the one of smallest residual: the 2-norm of the residual oscillates on ill-conditioned systems, while
the error in the norm of A, the one that counts for a descent direction, falls at every iteration.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Operator = Callable[[Float[Array, " p"]], Float[Array, " p"]]


class PCGResult(eqx.Module):
    """What pcg found.

    `residual` is ‖b − Ax‖₂/‖b‖₂, computed from x unless true_residual was switched off; `converged` says that
    the stopping test was met, on the residual of the recursion.
    """

    x: Float[Array, " p"]
    iterations: Int[Array, ""]
    residual: Float[Array, ""]
    converged: Bool[Array, ""]
    breakdown: Bool[Array, ""]


class _State(eqx.Module):
    x: Float[Array, " p"]
    r: Float[Array, " p"]
    d: Float[Array, " p"]
    rz: Float[Array, ""]
    gained: Float[Array, ""]
    last: Float[Array, ""]
    iterations: Int[Array, ""]
    breakdown: Bool[Array, ""]


def pcg(
    mv: Operator,
    b: Float[Array, " p"],
    *,
    preconditioner: Operator | None = None,
    x0: Float[Array, " p"] | None = None,
    tol: float | Float[Array, ""] = 1e-10,
    maxiter: int | Int[Array, ""] = 20,
    min_decrease: float | Float[Array, ""] = 0.0,
    true_residual: bool = True,
) -> PCGResult:
    """Solves mv(x) = b by preconditioned conjugate gradients (paper, algorithm dir_matrix_free).

    `preconditioner` applies P⁻¹. x0 gives a direction to start in: c·x0 with c = bᵀx0 / x0ᵀAx0, the multiple of least
    error in the norm of A, and so never worse than zero; zero where c ≤ 0. `min_decrease` stops once an iteration
    lowers the quadratic ½xᵀAx − bᵀx by no more than that part of what all have: what is left is then in directions that
    hardly matter to it. (The 2-norm of the residual would reject starts that are right in all but the largest
    eigenvalues.)
    """
    b_norm = jnp.linalg.norm(b)
    x, r = jnp.zeros_like(b), b
    if x0 is not None:
        Ax0 = mv(x0)
        curvature = jnp.vdot(x0, Ax0)
        scale = jnp.vdot(b, x0) / jnp.where(curvature > 0, curvature, 1.0)
        better = (curvature > 0) & (scale > 0) & jnp.isfinite(scale) & (b_norm > 0)
        x, r = jnp.where(better, scale * x0, x), jnp.where(better, b - scale * Ax0, r)
    apply = (lambda v: v) if preconditioner is None else preconditioner

    def unfinished(s: _State):
        stalled = (s.iterations > 0) & (s.last <= min_decrease * s.gained)
        return (jnp.linalg.norm(s.r) > tol * b_norm) & (s.iterations < maxiter) & ~s.breakdown & ~stalled

    def iterate(s: _State) -> _State:
        z = apply(s.r)
        rz = jnp.vdot(s.r, z)
        d = z + jnp.where(s.iterations > 0, rz / s.rz, 0.0) * s.d
        Ad = mv(d)
        curvature = jnp.vdot(d, Ad)
        alpha = rz / curvature
        x, r = s.x + alpha * d, s.r - alpha * Ad
        # A finite sum of squares vouches for every entry.
        good = (curvature > 0) & (rz > 0) & jnp.isfinite(jnp.vdot(x, x)) & jnp.isfinite(jnp.vdot(r, r))
        lowered = alpha * rz / 2  # by how much the iteration lowers ½xᵀAx − bᵀx
        new = _State(x, r, d, rz, s.gained + lowered, lowered, s.iterations + 1, s.breakdown)
        old = eqx.tree_at(lambda s: s.breakdown, s, jnp.asarray(True))
        return jax.tree.map(lambda a, c: jnp.where(good, a, c), new, old)

    bad_input = ~jnp.isfinite(b_norm)
    zero = jnp.zeros((), b.dtype)
    gained = jnp.vdot(b + r, x) / 2
    start = _State(x, r, jnp.zeros_like(b), zero + 1, gained, zero, jnp.asarray(0, jnp.int32), bad_input)
    end = jax.lax.while_loop(unfinished, iterate, start)

    recursive = jnp.linalg.norm(end.r)
    remainder = jnp.linalg.norm(b - mv(end.x)) if true_residual else recursive
    relative = jnp.where(b_norm > 0, remainder / jnp.where(b_norm > 0, b_norm, 1.0), 0.0)
    return PCGResult(end.x, end.iterations, relative, recursive <= tol * b_norm, end.breakdown)
