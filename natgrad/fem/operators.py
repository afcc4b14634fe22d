"""Frozen linear maps between nodal values, in JAX: products with one vector (n,) or with many at once (n, m).

    Elementwise      y = Σ_e Rₑᵀ Aₑ Rₑ x         any mesh: gather, small dense products a cell, scatter
    Kronecker        y = Σ_t (T_t1 ⊗ … ⊗ T_td) x  tensor meshes, constant coefficients
    SumFactorized    y = Σ_ij D_iᵀ c_ij D_j x     tensor meshes, variable coefficients c_ij at the Gauss points

where R gathers a cell's nodes and D_0, D_1, … evaluate u, ∂₁u, … at all Gauss points by products along the axes. The
arrays are leaves, so that a compiled function takes them as arguments. All are linear in x and have both derivatives.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from natgrad.backend import host, tuning
from natgrad.backend.chunks import stack


class Operator(eqx.Module):
    """A linear map from (n,) to (n,), and column by column from (n, m) to (n, m).

    A = space.operator(ng.fem.STIFFNESS);  A.apply(x)
    """

    size: eqx.AbstractVar[int]

    @property
    def shape(self) -> tuple[int, int]:
        return self.size, self.size

    def apply(self, x: Float[Array, "n *m"]) -> Float[Array, "n *m"]:
        """A x."""
        return self._checked(x, transpose=False)

    def apply_transpose(self, x: Float[Array, "n *m"]) -> Float[Array, "n *m"]:
        """Aᵀ x."""
        return self._checked(x, transpose=True)

    def quadratic(self, x: Float[Array, "n m"]) -> Float[Array, " m"]:
        """xᵀ A x for each column, the diagonal of XᵀAX."""
        return jnp.sum(x * self.apply(x), axis=0)

    def _checked(self, x: Array, transpose: bool) -> Array:
        x = jnp.asarray(x)
        if x.ndim not in (1, 2) or x.shape[0] != self.size:
            raise ValueError(f"x must have shape ({self.size},) or ({self.size}, m), got {x.shape}")
        return self.product(x[:, None], transpose)[:, 0] if x.ndim == 1 else self.product(x, transpose)

    @abc.abstractmethod
    def product(self, x: Float[Array, "n m"], transpose: bool) -> Float[Array, "n m"]:
        """A x or Aᵀ x for many columns."""


class Elementwise(Operator):
    """Σ_e Rₑᵀ Aₑ Rₑ by cells. `dofs` (cells, b) numbers the nodes of each; numbers ≥ size are constrained nodes."""

    local: Float[Array, "cells b b"]
    dofs: Int[Array, "cells b"]
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        matrices = jnp.swapaxes(self.local, 1, 2) if transpose else self.local

        def columns(x: Array) -> Array:
            cells = jnp.matmul(matrices, self._gather(x))
            return jnp.zeros_like(cells, shape=x.shape).at[self.dofs].add(cells, mode="drop")

        return in_blocks(columns, x)

    def quadratic(self, x):
        def columns(x: Array) -> Array:
            cells = self._gather(x)
            return jnp.sum(cells * jnp.matmul(self.local, cells), axis=(0, 1))

        return in_blocks(columns, x)

    def _gather(self, x: Float[Array, "n m"]) -> Float[Array, "cells b m"]:
        return x.at[self.dofs].get(mode="fill", fill_value=0)


class Kronecker(Operator):
    """Σ_t T_t1 ⊗ … ⊗ T_td, small dense matrices along each axis of the grid."""

    terms: tuple[tuple[Float[Array, "k k"], ...], ...]
    size: int = eqx.field(static=True)

    def __init__(self, terms):
        self.terms = tuple(tuple(map(host.array, term)) for term in terms)
        self.size = int(np.prod([T.shape[0] for T in self.terms[0]]))

    def product(self, x, transpose):
        grid = x.reshape(*(T.shape[0] for T in self.terms[0]), x.shape[1])
        total = sum(along_axes([T.T if transpose else T for T in term], grid) for term in self.terms)
        return jnp.reshape(total, x.shape)


class SumFactorized(Operator):
    """Σ_ij D_iᵀ c_ij D_j: to the Gauss points along each axis, times the coefficients, and back."""

    values: tuple[Float[Array, "q k"], ...]
    slopes: tuple[Float[Array, "q k"], ...]
    coefficients: tuple[Float[Array, "..."], ...]
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, values, slopes, coefficients: dict[tuple[int, int], np.ndarray]):
        self.values, self.slopes = tuple(map(host.array, values)), tuple(map(host.array, slopes))
        self.pairs = tuple(coefficients)
        self.coefficients = tuple(map(host.array, coefficients.values()))
        self.size = int(np.prod([B.shape[1] for B in self.values]))

    def product(self, x, transpose):
        grid = x.reshape(*(B.shape[1] for B in self.values), x.shape[1])
        pairs = [(j, i) if transpose else (i, j) for i, j in self.pairs]
        inputs = {j: along_axes(self._factors(j), grid) for j in sorted({j for _, j in pairs})}
        total = jnp.zeros_like(grid)
        for i in sorted({i for i, _ in pairs}):
            parts = [c[..., None] * inputs[b] for (a, b), c in zip(pairs, self.coefficients, strict=True) if a == i]
            total = total + along_axes([D.T for D in self._factors(i)], sum(parts[1:], parts[0]))
        return total.reshape(x.shape)

    def _factors(self, derivative: int) -> list[Array]:
        """The matrices of D_0 (values) or of D_i (∂ along axis i − 1)."""
        return [self.slopes[a] if derivative == a + 1 else B for a, B in enumerate(self.values)]


class Restricted(Operator):
    """Rows and columns `free` of an operator on the whole grid: pad with zeros, apply, pick."""

    whole: Operator
    free: Int[Array, " n"]
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        padded = jnp.zeros_like(x, shape=(self.whole.size, x.shape[1])).at[self.free].set(x)
        return self.whole.product(padded, transpose)[self.free]


def along_axes(matrices, grid: Float[Array, "*k m"]) -> Float[Array, "*q m"]:
    """(T₁ ⊗ … ⊗ T_d) applied to a grid whose last axis numbers the columns."""
    for axis, T in enumerate(matrices):
        before, after = grid.shape[:axis], grid.shape[axis + 1 :]
        flat = grid.reshape(int(np.prod(before)), grid.shape[axis], int(np.prod(after)))
        if flat.shape[2] == 1:
            product = (flat[:, :, 0] @ T.T)[:, :, None]
        elif flat.shape[0] == 1:
            product = (T @ flat[0])[None]
        else:
            product = jnp.matmul(T, flat)
        grid = product.reshape(*before, T.shape[0], *after)
    return grid


def in_blocks(f, x: Float[Array, "n m"]) -> Float[Array, "*n m"]:
    """A function of columns on blocks of them where there are many, so that what it gathers stays small."""
    m, size = x.shape[1], tuning.ELEMENT_COLUMNS.here()
    if m <= 2 * size:
        return f(x)
    return stack(m, size, lambda first: f(jax.lax.dynamic_slice_in_dim(x, first, size, axis=1)), axis=-1)


class NormalEquations(Operator):
    """Aᵀ R⁻¹ A."""

    form: Operator
    riesz: Operator
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        return self.form.product(self.riesz.product(self.form.product(x, False), False), True)
