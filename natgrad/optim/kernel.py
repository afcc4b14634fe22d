"""`Kernel`: the damped system in the space of the rows, for many parameters and few points (q < p).

With A = W^½ J (q × p), D = S⁻² and K = A S² Aᵀ (q × q), the push-through identity is

    (AᵀA + μD)⁻¹ (Aᵀc + μD s) = s + S² Aᵀ (K + μI)⁻¹ (c − A s),

so that a gradient that comes from a covector, ∇L = Aᵀc, costs O(q²p + q³) and never meets a p × p matrix. s = β times
the last step is SPRING's momentum (Goldshlager, Abrahamsen and Lin, 2024); the correction of geodesic acceleration is
one more c with the same factor. K has the nonzero eigenvalues of G, so the rules for μ are the same.

A right-hand side b without a covector takes (AᵀA + μD)⁻¹ b = S²(b − Aᵀ(K + μI)⁻¹ A S² b)/μ, which loses λ₁/μ in
round-off: energies whose gradient is not a pullback are not given to `Kernel` unless asked for.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from natgrad.backend import tuning
from natgrad.backend.chunks import by_columns, by_rows
from natgrad.backend.parallel import count, gather, inside, not_before, own_rows
from natgrad.gramian import Gramian
from natgrad.linalg import Sums, TestMatrix, nystrom_factor
from natgrad.optim.direction import Direct, Direction, Solve, System, scaled
from natgrad.options import Share
from natgrad.problem import Problem


class RowKernel(eqx.Module):
    """K = A S² Aᵀ, with the products of a Gramian; `squares` is S² or None for the identity."""

    gramian: Gramian
    squares: Float[Array, " p"] | None

    @property
    def size(self) -> int:
        return self.gramian.problem.num_rows

    @property
    def dtype(self) -> Any:
        return self.gramian.dtype

    def push(self, v: Float[Array, " p"]) -> Float[Array, " q"]:
        """A v, the rows of all devices."""
        return gather(self.gramian.push(v))

    def lift(self, c: Float[Array, " q"]) -> Float[Array, " p"]:
        """S² Aᵀ c."""
        pulled = self.gramian.pull(own_rows(c, self.size // count()))
        return pulled if self.squares is None else self.squares * pulled

    def mv(self, c: Float[Array, " q"]) -> Float[Array, " q"]:
        return self.push(self.lift(c))

    def mm(self, C: Float[Array, "q m"]) -> Float[Array, "q m"]:
        return by_columns(self.mv, C, tuning.KERNEL_VECTORS)

    def factor(self, omega: TestMatrix) -> Float[Array, "m q"]:
        """As `Gramian.factor`, with S Aᵀ in the place of A."""
        C = by_rows(self.lift, omega.matrix().T, tuning.KERNEL_VECTORS)
        push = lambda E: by_rows(self.push, E, tuning.KERNEL_VECTORS)
        # All rows are on every device; those of A in the products are not.
        sums = Sums(lambda K: K, not_before, inside())
        return nystrom_factor(C if self.squares is None else C / self.squares, C, push, sums)

    def diagonal(self) -> Float[Array, " q"]:
        return self.as_matrix().diagonal()

    def columns(self, indices: Int[Array, " m"]) -> Float[Array, "q m"]:
        m = indices.shape[0]
        return self.mm(jnp.zeros((self.size, m), self.gramian.problem.dtype).at[indices, jnp.arange(m)].set(1.0))

    def as_matrix(self) -> Float[Array, "q q"]:
        if inside() and self.gramian.strategy != "jacobian":  # recomputed rows are of this device's points alone
            return self.mm(jnp.eye(self.size, dtype=self.gramian.problem.dtype))
        return self.gramian.kernel(self.squares)


class KernelSystem(System):
    """(G + μD), solved through K + μI (see the module's header)."""

    def __init__(self, inner: System, rows: RowKernel, scale: Array | float):
        super().__init__(inner.mu, inner.largest, inner.rank, inner.solve, inner.rebuilt, scale)
        self._rows = rows

    def solve(self, b, x0=None, *, rows=None, shift=None):
        push, lift = self._rows.push, self._rows.lift
        rows = None if rows is None else gather(rows)
        if rows is None:
            short = self.scale**2 * (b if shift is None else b + self.damp(shift))
            found = self._solve(push(short))
            step = (short - lift(found.x)) / self.mu
        else:
            found = self._solve(rows if shift is None else rows - push(shift))
            step = lift(found.x) if shift is None else lift(found.x) + shift
        return Solve(step, found.iterations, found.residual)


class Kernel(Direction):
    """The direction by way of K + μI, q × q.

    Arguments:
        solver: `Direct()` factors K, and damps more where that fails; `PCG(…)` needs only products with K.
        scaling: c of the damping's D, see `natgrad.optim.direction`.
    """

    solver: Direction = Direct()
    scaling: Share | None = eqx.field(static=True, default=None)

    def __check_init__(self):
        super().__check_init__()
        if getattr(self.solver, "scaling", None) not in (None, 1):
            raise ValueError("scaling is an option of Kernel, not of the solver of its q × q system")

    def resolve(self, problem):
        if problem.coupling(problem.params) is not None:
            raise ValueError("the metric of this problem couples its rows, so that it has no kernel: NystromNGD, say")
        scaling = problem.scaling if self.scaling is None else self.scaling
        inner: Any = self.solver
        if hasattr(inner, "scaling"):
            inner = dataclasses.replace(inner, scaling=1.0)
        return dataclasses.replace(self, solver=inner.resolve(problem), scaling=scaling)

    @property
    def factors(self):
        return self.solver.factors

    def unknowns(self, problem: Problem) -> int:
        return problem.num_rows

    def init(self, size, dtype, key):
        return self.solver.init(size, dtype, key)

    def prepare(self, gramian, mu, state, key, iteration=0):
        _, scale = scaled(gramian, self.scaling, iteration)
        rows: Any = RowKernel(gramian, None if isinstance(scale, float) else scale**2)
        inner, state = self.solver.prepare(rows, mu, state, key, iteration)
        return KernelSystem(inner, rows, scale), state

    def finish(self, state, solve, accepted):
        return self.solver.finish(state, solve, accepted)


def suits(problem: Problem) -> bool:
    """Whether the kernel form is exact and smaller for a problem."""
    fewer = problem.num_rows < problem.num_parameters and problem.coupling(problem.params) is None
    return fewer and jax.eval_shape(problem.covector, problem.params) is not None
