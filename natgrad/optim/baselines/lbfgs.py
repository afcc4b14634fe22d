"""Limited-memory BFGS by dense products (the compact form of Byrd, Nocedal and Schnabel, 1994).

With the last m pairs as rows of S and Y, oldest first, R the upper triangle of SYᵀ, D its diagonal and
γ = sᵀy/yᵀy of the newest pair, the two-loop recursion for Hg is

    a = R⁻¹ S g,    r = γ (g − Yᵀa),    Hg = r + Sᵀ R⁻ᵀ (D a − Y r):

its 2m dot products, each of which waits for the one before, become four products with S and Y and two triangular
solves. The pairs lie in ring buffers; S Yᵀ grows by one column per step.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, Int

from natgrad.optim.baselines.quasi_newton import Pair, QuasiNewton
from natgrad.optim.baselines.wolfe import Wolfe
from natgrad.options import Count


class Memory(eqx.Module):
    """Ring buffers of pairs, the products S Yᵀ of their rows, γ, and how many pairs have been seen."""

    S: Float[Array, "m p"]
    Y: Float[Array, "m p"]
    SY: Float[Array, "m m"]
    gamma: Float[Array, ""]
    count: Int[Array, ""]


class LBFGS(QuasiNewton):
    """L-BFGS (Byrd, Nocedal and Schnabel, 1994); its memory is two matrices of history × p numbers.

    Arguments:
        history: how many pairs to remember.
        search: the line search.
    """

    history: Count = eqx.field(static=True, default=500)
    search: Wolfe = eqx.field(default=Wolfe())
    cautious: ClassVar[bool] = False

    def empty(self, size: int, dtype: Any) -> Memory:
        m = self.history
        pairs = jnp.zeros((m, size), dtype)
        return Memory(pairs, pairs, jnp.zeros((m, m), dtype), jnp.ones((), dtype), jnp.asarray(0))

    def update(self, memory: Memory, fresh: Bool[Array, ""], pair: Pair) -> tuple[Memory, Float[Array, " p"]]:
        m, g = self.history, pair.gradient
        count = jnp.where(fresh, 0, memory.count)
        slot = count % m
        put = lambda rows, row: rows.at[slot].set(jnp.where(pair.good, row, rows[slot]))
        S, Y = put(memory.S, pair.s), put(memory.Y, pair.y)
        Sy, Sg = (S @ jnp.stack([pair.y, g], 1)).T
        SY = memory.SY.at[:, slot].set(jnp.where(pair.good, Sy, memory.SY[:, slot]))
        newest = pair.sy / jnp.where(pair.good, pair.y @ pair.y, 1.0)
        gamma = jnp.where(pair.good, newest, jnp.where(fresh, 1.0, memory.gamma))
        memory = Memory(S, Y, SY, gamma, count + pair.good)

        # Oldest first; slots that hold no pair come before them and are cut off from the rest.
        start = memory.count % m
        used = jnp.roll(jnp.arange(m) < memory.count, -start)
        R = jnp.roll(jnp.roll(SY, -start, 0), -start, 1)
        R = jnp.where(used[:, None] & used, R, jnp.eye(m, dtype=R.dtype))
        aged = lambda x: jnp.where(used, jnp.roll(x, -start), 0.0)
        a = solve_triangular(R, aged(Sg))
        r = gamma * (g - jnp.roll(a, start) @ Y)
        q = solve_triangular(R, jnp.diagonal(R) * a - aged(Y @ r), trans=1)
        return memory, r + jnp.roll(q, start) @ S
