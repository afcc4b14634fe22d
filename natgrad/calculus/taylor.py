"""Derivatives of all orders along a line, propagated forward (Taylor mode). Along a computation t ↦ x + t e ↦ z every
intermediate carries the coefficients of its Taylor polynomial,

    z(t) = z_0 + z_1 t + … + z_k tᵏ + O(tᵏ⁺¹),

and an operation y = f(z) turns them into f(z_j) when f is linear, Σ_i f(a_i, b_{j−i}) when f is bilinear, and

    y_j = Σ_m f⁽ᵐ⁾(z_0) / m! · [tʲ] (z(t) − z_0)ᵐ

when f acts elementwise; for everything else they come from k nested jvps of that single equation in t, control flow
included. The cost grows with k², that of k nested jvps of u itself with 2ᵏ.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from natgrad.calculus.trace import Carried, Pass, interpret, together


@dataclass(frozen=True)
class Series(Carried):
    """z_0, and z_1 to z_k (None: zero)."""

    value: Any
    rest: tuple[Any, ...]

    @property
    def all(self) -> tuple[Any, ...]:
        return (self.value, *self.rest)


def expand(u: Callable, x: Array, direction: np.ndarray, order: int) -> list[Array]:
    """u(x) and its derivatives of orders 1 to `order` along a direction, each of the shape of u(x)."""
    closed = jax.make_jaxpr(u)(x)
    (out,) = interpret(closed, [Series(x, (jnp.asarray(direction), *[None] * (order - 1)))], Taylor(order))
    if not isinstance(out, Series):
        out = Series(jnp.asarray(out), (None,) * order)
    zero = jnp.zeros(jnp.shape(out.value), jnp.result_type(out.value, x))
    return [zero if c is None else math.factorial(j) * c if j > 1 else c for j, c in enumerate(out.all)]


@dataclass(frozen=True)
class Taylor(Pass):
    """Coefficients up to tᵏ."""

    k: int

    def linear(self, f, carried):
        values = tuple(c.value for c in carried)
        rests: list[Any] = []
        for terms in zip(*(c.rest for c in carried), strict=True):
            if all(term is None for term in terms):
                rests.append(None)
                continue
            tangents = tuple(jnp.zeros_like(v) if t is None else t for v, t in zip(values, terms, strict=True))
            rests.append(jax.jvp(f, values, tangents)[1])
        return [Series(y, tuple(None if rest is None else rest[i] for rest in rests)) for i, y in enumerate(f(*values))]

    def product(self, f, carried):
        """Wz_j, as one product (`products_together`) or each a product of its own."""
        (z,) = carried
        if not together():
            return [Series(f(z.value)[0], tuple(None if c is None else f(c)[0] for c in z.rest))]
        (out,) = jax.vmap(f)(jnp.stack([c for c in z.all if c is not None]))
        rows = iter(out)
        return [Series(next(rows), tuple(None if c is None else next(rows) for c in z.rest))]

    def bilinear(self, f, carried):
        a, b = carried
        return [_series(_times(a.all, b.all, lambda p, q: f(p, q)[0]))]

    def elementwise(self, f, carried, name):
        (z,) = carried
        slopes = DERIVATIVES.get(name, _derivatives)(f, z.value, self.k)
        terms: list[Any] = [slopes[0], *[None] * self.k]
        power: tuple[Any, ...] = (None, *z.rest)  # (z − z_0)ᵐ, which begins with tᵐ
        for m, slope in enumerate(slopes[1:], 1):
            for j in range(m, self.k + 1):
                if power[j] is not None:
                    terms[j] = _plus(terms[j], slope * power[j] if m == 1 else slope / math.factorial(m) * power[j])
            power = tuple(_times(power, (None, *z.rest), jnp.multiply))
        return [_series(terms)]

    def other(self, f, carried):
        dtype = jnp.finfo(jnp.result_type(*(c.value for c in carried))).dtype  # t is real where z is complex

        def along(t):
            def at(z):
                return sum((t**j * c for j, c in enumerate(z.rest, 1) if c is not None), z.value)

            return f(*map(at, carried))

        columns = _jvps(along, jnp.zeros((), dtype), jnp.ones((), dtype), self.k)
        return [
            _series([y, *(column[i] / math.factorial(j) for j, column in enumerate(columns[1:], 1))])
            for i, y in enumerate(columns[0])
        ]


def _series(terms) -> Series:
    value, *rest = terms
    return Series(value, tuple(rest))


def _plus(a, b):
    return b if a is None else a if b is None else a + b


def _times(a, b, product: Callable) -> list:
    """The coefficients of the product of two polynomials, as far as they are known."""
    terms: list[Any] = [None] * len(a)
    for i, p in enumerate(a):
        for j, q in enumerate(b[: len(a) - i]):
            if p is not None and q is not None:
                terms[i + j] = _plus(terms[i + j], product(p, q))
    return terms


def _jvps(f: Callable, z: Array, ones: Array, k: int) -> tuple[list, ...]:
    """f and its derivatives of orders 1 to k, by nested jvps."""
    if k == 0:
        return (f(z),)
    values, tangents = jax.jvp(lambda z: _jvps(f, z, ones, k - 1), (z,), (ones,))
    return (*values, tangents[-1])


def _derivatives(f: Callable, z: Array, k: int) -> list[Array]:
    return [column[0] for column in _jvps(f, z, jnp.ones_like(z), k)]


def _of_tanh(f: Callable, z: Array, k: int) -> list[Array]:
    """tanh⁽ᵐ⁾ = (1 − y²) q_m(y) with q_1 = 1, q_{m+1} = (1 − y²) q_m' − 2y q_m."""
    (y,) = f(z)
    slope, q = 1 - y * y, np.poly1d([1.0])
    found = [y]
    for _ in range(k):
        horner = functools.reduce(lambda value, c: value * y + c if c else value * y, map(float, q.coeffs))
        found.append(slope * horner)
        q = np.poly1d([-1.0, 0.0, 1.0]) * q.deriv() - np.poly1d([2.0, 0.0]) * q
    return found


def _of_sin(f: Callable, z: Array, k: int) -> list[Array]:
    s, c = jnp.sin(z), jnp.cos(z)
    return [(s, c, -s, -c)[m % 4] for m in range(k + 1)]


DERIVATIVES = {"tanh": _of_tanh, "sin": _of_sin}
