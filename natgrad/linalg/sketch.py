"""Test matrices for the Nyström approximation: Gaussian ones, sparse signs, and columns of the identity.

Sparse signs have two entries a row. A product A Ω with them is two passes over A, however many columns Ω has, where a
Gaussian one costs as many operations as AᵀA Ω has left: a sketch takes half the time, and its range is as good.

A sampling matrix Ω = I[:, indices] is never formed: GΩ is a set of columns of G. Indices come without
repeats, as a repeated column of Ω adds nothing to its range.
"""

import abc
import operator
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from natgrad.backend import tuning
from natgrad.backend.products import matmul


def gaussian(key: PRNGKeyArray, p: int, m: int, dtype=None) -> Float[Array, "p m"]:
    """Gaussian p×m test matrix with columns of length one on average (paper, section 4.2.1)."""
    dtype = jnp.result_type(float) if dtype is None else dtype
    return jax.random.normal(key, (p, m), dtype) / jnp.asarray(p, dtype) ** 0.5


class TestMatrix(eqx.Module):
    """Ω (p × m), by what a sketch needs of it."""

    @abc.abstractmethod
    def times(self, A: Float[Array, "n p"]) -> Float[Array, "n m"]:
        """A Ω."""

    @abc.abstractmethod
    def matrix(self) -> Float[Array, "p m"]:
        """Ω, dense."""

    @abc.abstractmethod
    def scale(self, s: Float[Array, " p"]) -> "TestMatrix":
        """diag(s) Ω."""


class DenseTest(TestMatrix):
    """An Ω given as an array, Gaussian for one."""

    omega: Float[Array, "p m"]

    def times(self, A):
        return matmul(A, self.omega)

    def matrix(self):
        return self.omega

    def scale(self, s):
        return DenseTest(self.omega * s[:, None])


class Columns(TestMatrix):
    """Some columns of the identity, times `values`: A Ω are columns of A. An index −1 stands for a column of zeros."""

    indices: Int[Array, " m"]
    values: Float[Array, " m"]
    size: int = eqx.field(static=True)

    def times(self, A):
        return A[:, self.indices] * self.values

    def matrix(self):
        m = self.indices.shape[0]
        return jnp.zeros((self.size, m), self.values.dtype).at[self.indices, jnp.arange(m)].set(self.values)

    def scale(self, s):
        return Columns(self.indices, self.values * s[self.indices], self.size)


def pick(indices: Int[Array, " m"], size: int, dtype=None) -> Columns:
    """I[:, indices] of the identity of a given size; an index −1 gives a column of zeros."""
    return Columns(indices, (indices >= 0).astype(jnp.result_type(float) if dtype is None else dtype), size)


class SparseSigns(TestMatrix):
    """Ω (p × m): row i has one entry in column i mod m and one in column ⌊i/c⌋, c = ⌈p/m⌉, with random signs.

    The columns have length one on average. Which entries a column adds up is fixed, so that sums run along memory: what
    is random are the signs.
    """

    values: Float[Array, "2 p"]
    width: int = eqx.field(static=True)

    def times(self, A):
        p, m = A.shape[1], self.width
        c = -(-p // m)
        if c > tuning.SUM_SLICES:
            first, second = (jnp.pad(A * v, ((0, 0), (0, c * m - p))) for v in self.values)
            return jnp.sum(first.reshape(-1, c, m), axis=1) + jnp.sum(second.reshape(-1, m, c), axis=2)
        fit = lambda part: jnp.pad(part, ((0, 0), (0, m - part.shape[1])))
        columns = [slice(k * m, (k + 1) * m) for k in range(c)], [slice(k, None, c) for k in range(c)]
        parts = [A[:, k] * v[k] for v, slices in zip(self.values, columns, strict=True) for k in slices]
        return reduce(operator.add, map(fit, parts))

    def matrix(self):
        p, m = self.values.shape[1], self.width
        i = jnp.arange(p)
        zero = jnp.zeros((p, m), self.values.dtype)
        return zero.at[i, i % m].add(self.values[0]).at[i, i // -(-p // m)].add(self.values[1])

    def scale(self, s):
        return SparseSigns(self.values * s, self.width)


def sparse_signs(key: PRNGKeyArray, p: int, m: int, dtype=None) -> SparseSigns:
    """A random p×m `SparseSigns`."""
    _check_size(p, m)
    dtype = jnp.result_type(float) if dtype is None else dtype
    signs = jax.random.rademacher(key, (2, p), dtype)
    if m == p:  # the two columns of a row are one: a signed identity
        return SparseSigns(signs.at[1].set(0.0), m)
    return SparseSigns(signs / jnp.asarray(2 * -(-p // m), dtype) ** 0.5, m)


def sample_uniform(key: PRNGKeyArray, p: int, m: int) -> Int[Array, " m"]:
    """m distinct indices below p, uniformly."""
    _check_size(p, m)
    return jax.random.choice(key, p, (m,), replace=False)


def sample_diagonal(key: PRNGKeyArray, diagonal: Float[Array, " p"], m: int) -> Int[Array, " m"]:
    """m distinct indices, drawn one after the other with probability proportional to the diagonal.

    Sampling without replacement is the top m of log d plus Gumbel noise. Entries that are zero, negative or
    not finite have probability zero: they come, uniformly, only after all others have been drawn.
    """
    _check_size(diagonal.shape[0], m)
    possible = (diagonal > 0) & jnp.isfinite(diagonal)
    last = jnp.asarray(-1e4, diagonal.dtype)  # below every logarithm of a positive number
    share = diagonal / jnp.max(diagonal, where=possible, initial=0.0)  # a scaled matrix has the same columns drawn
    score = jnp.where(possible, jnp.log(jnp.where(possible, share, 1.0)), last)
    return jax.lax.top_k(score + jax.random.gumbel(key, diagonal.shape, diagonal.dtype), m)[1]


def _check_size(p: int, m: int) -> None:
    if m > p:
        raise ValueError(f"cannot draw m = {m} distinct indices out of {p}: take m ≤ {p}")
