"""The Laplacian, propagated forward. Along a computation x ↦ z every intermediate z carries

    z,      J_i = ∂z/∂x_i,      L = Σ_i ∂²z/∂x_i²,

and an operation y = f(z) turns them into

    f(z),   Df[J_i],            Df[L] + Σ_i D²f[J_i, J_i].

What the kinds of operation differ in is the very last term: it vanishes when f is linear, is 2 Σ_i f(J_i^a, J_i^b) when
f is bilinear and f''(z) Σ_i J_i² when f acts elementwise, and comes from two nested jvps of that single equation for
everything else, control flow included.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from natgrad.calculus.trace import Carried, Pass, interpret, together

FEW = 4  # directions


@dataclass(frozen=True)
class Jet(Carried):
    """Value, derivatives (n, *z.shape) and Laplacian (None: zero)."""

    value: Any
    jac: Any
    lap: Any


def propagate(u: Callable, x: Array, directions: tuple[int, ...], k: int) -> tuple[Array, Array, Array]:
    """u(x), its derivatives in the n directions (n, *m), and the sum of the second ones in the first k."""
    closed = jax.make_jaxpr(u)(x)
    seed = Jet(x, jnp.asarray(np.eye(x.size, dtype=x.dtype)[list(directions)]), None)
    (out,) = interpret(closed, [seed], Laplacian(k))
    if not isinstance(out, Jet):
        out = Jet(out, jnp.zeros((len(directions), *jnp.shape(out)), jnp.result_type(out, x)), None)
    return out.value, out.jac, jnp.zeros_like(out.value) if out.lap is None else out.lap


@dataclass(frozen=True)
class Laplacian(Pass):
    """The sum over the first k directions."""

    k: int

    def linear(self, f, carried):
        """Df[J_i], Df[L], for f affine in its carried arguments."""
        values = tuple(c.value for c in carried)

        def push(*tangents):
            return jax.jvp(f, values, tangents)[1]

        out = f(*values)
        jac = jax.vmap(push)(*(c.jac for c in carried))
        if all(c.lap is None for c in carried):
            lap = [None] * len(out)
        else:
            lap = push(*(jnp.zeros_like(c.value) if c.lap is None else c.lap for c in carried))
        return [Jet(*z) for z in zip(out, jac, lap, strict=True)]

    def product(self, f, carried):
        """Wz, WJ_i, WL: as one product (`products_together`), or for few directions each a product of its own.

        The derivative in W, taken at every point, is then a sum of outer products, which XLA for GPUs writes
        straight into the rows of the parameter Jacobian; with the J_i stacked it is a batched product, and a
        copy of it.
        """
        (z,) = carried
        n = len(z.jac) + 1
        if together():
            parts = [z.value[None], z.jac] if z.lap is None else [z.value[None], z.jac, z.lap[None]]
            (out,) = jax.vmap(f)(jnp.concatenate(parts))
            return [Jet(out[0], out[1:n], None if z.lap is None else out[n])]
        if n - 1 > FEW:
            return self.linear(f, carried)
        jac = jnp.stack([f(j)[0] for j in z.jac])
        return [Jet(f(z.value)[0], jac, None if z.lap is None else f(z.lap)[0])]

    def bilinear(self, f, carried):
        """Df[L] + 2 Σ_i f(J_i^a, J_i^b)."""
        (y,) = self.linear(f, carried)
        (products,) = jax.vmap(f)(*(c.jac[: self.k] for c in carried))
        second = 2 * products.sum(0)
        return [replace(y, lap=second if y.lap is None else y.lap + second)]

    def elementwise(self, f, carried, name):
        """f'(z) L + f''(z) Σ_i J_i²."""
        (z,) = carried
        (y,) = f(z.value)
        if name == "tanh":
            df = 1 - y * y
            ddf = -2 * y * df
        else:
            ones = jnp.ones_like(z.value)
            first = lambda z: jax.jvp(f, (z,), (ones,))[1]
            (df,), (ddf,) = jax.jvp(first, (z.value,), (ones,))
        lap = ddf * jnp.sum(z.jac[: self.k] ** 2, axis=0)
        return [Jet(y, df * z.jac, lap if z.lap is None else df * z.lap + lap)]

    def other(self, f, carried):
        """The rule of any f, d²/dε² f(z + ε J_i + ½ ε² L_i) by two jvps, all i at once; L_0 = L, the others are 0."""
        values = tuple(c.value for c in carried)

        def along(first, second):
            def tangent(values, directions):
                return jax.jvp(f, values, directions)

            return jax.jvp(tangent, (values, first), (first, second))

        zeros = [jnp.zeros_like(c.jac) for c in carried]
        laps = tuple(z if c.lap is None else z.at[0].set(c.lap) for z, c in zip(zeros, carried, strict=True))
        (out, jac), (_, second) = jax.vmap(along)(tuple(c.jac for c in carried), laps)
        return [Jet(y[0], dy, ddy[: self.k].sum(0)) for y, dy, ddy in zip(out, jac, second, strict=True)]
