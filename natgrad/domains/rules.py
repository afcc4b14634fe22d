"""Quadrature rules on the unit cube, and the checks of the arguments that choose them.

A rule gives points u (n, k) in the open cube (0, 1)ᵏ. Domains carry these points over by measure-preserving maps, so
the same three rules serve boxes, balls, polygons, their boundaries and space-time cylinders.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, PRNGKeyArray

from natgrad.backend import host
from natgrad.options import Count, check, plain, suggest

RULES = ("monte-carlo", "sobol", "gauss")

Rule1D = tuple[np.ndarray, np.ndarray]  # nodes in (0, 1), weights that sum to 1


def namespace(x):
    """numpy for concrete arrays, jax.numpy for traced ones.

    Points are set up once, in shapes that do not come back: NumPy saves the compilation of every operation.
    """
    return jnp if isinstance(x, jax.core.Tracer) else np


def monte_carlo(n: int, k: int, key: PRNGKeyArray) -> Float[Array | np.ndarray, "n k"]:
    """Independent uniform points; works under jit."""
    return _open(host.numpy(host.uniform(key, (n, k), jnp.result_type(float))))


def sobol(n: int, k: int, seed: Sequence[int] = (0,)) -> Float[np.ndarray, "n k"]:
    """The first n points of a scrambled Sobol sequence, cut out of the next power of two."""
    engine = scipy.stats.qmc.Sobol(k, scramble=True, seed=np.random.default_rng(list(seed)))
    u = engine.random_base2(max(n - 1, 0).bit_length())[:n]
    return _open(u.astype(jnp.result_type(float)))


def shifted(u: Float[Array | np.ndarray, "n k"], key: PRNGKeyArray) -> Float[Array | np.ndarray, "n k"]:
    """Points of the cube moved together by a random vector, modulo 1; works under jit."""
    return _open((u + host.numpy(host.uniform(key, u.shape[1:], u.dtype))) % 1)


@functools.cache
def gauss_legendre(m: int) -> Rule1D:
    """m points, exact for polynomials of degree 2m - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(m)
    return (nodes + 1) / 2, weights / 2


@functools.cache
def gauss_power(m: int, power: float) -> Rule1D:
    """m points for ∫₀¹ f(s) (power + 1) s^power ds, exact for polynomials f of degree 2m - 1."""
    nodes, weights = scipy.special.roots_jacobi(m, 0.0, power)
    return (nodes + 1) / 2, weights / weights.sum()


def equispaced(m: int) -> Rule1D:
    """m midpoints: the Gauss rule of periodic functions, exact for waves up to m - 1."""
    return (np.arange(m) + 0.5) / m, np.full(m, 1 / m)


def tensor(rules: Sequence[Rule1D]) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, "n"]]:
    """The product of one-dimensional rules; the last axis runs fastest."""
    nodes = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
    weights = np.meshgrid(*(weights for _, weights in rules), indexing="ij")
    u = np.stack([axis.ravel() for axis in nodes], axis=1)
    return u.astype(jnp.result_type(float)), np.prod([axis.ravel() for axis in weights], axis=0)


def per_axis(n: float, k: int) -> int:
    """The number of points per axis that brings a k-dimensional product rule nearest to n points."""
    return max(1, round(n ** (1 / k))) if k else 1


def apportion(n: int, shares: np.ndarray) -> list[int]:
    """Whole numbers in proportion to `shares` that total n, by the method of largest remainders."""
    quotas = n * np.asarray(shares, float) / np.sum(shares)
    counts = np.floor(quotas + 1e-9).astype(int)
    # A stable sort on rounded remainders: equal shares are served in their order, whatever the round-off.
    first = np.argsort(-np.round(quotas - counts, 9), kind="stable")
    counts[first[: n - counts.sum()]] += 1
    return counts.tolist()


def seed_of(key: PRNGKeyArray | None, *tail: int) -> tuple[int, ...]:
    """Integers that seed numpy, out of a JAX key; no key gives a fixed seed."""
    if key is None:
        return (0, *tail)
    if isinstance(key, jax.core.Tracer):
        raise ValueError("rule 'sobol' works outside jit only; inside, take rule='monte-carlo'")
    data = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
    return (*(int(word) for word in np.asarray(data).ravel()), *tail)


def check_rule(rule: str) -> None:
    if rule in RULES:
        return
    raise ValueError(f"unknown rule {rule!r}: {suggest(rule, RULES)}")


def as_key(key: PRNGKeyArray | int | None, rule: str) -> PRNGKeyArray | None:
    """The key of a rule, which needs one only where its points are independent."""
    if key is None and rule == "monte-carlo":
        raise ValueError("rule 'monte-carlo' needs a key, for example key=jax.random.key(0)")
    return None if key is None else host.as_key(key)


def check_count(n: int | Sequence[int], rule: str) -> int | tuple[int, ...]:
    """n as a positive int, or, for Gauss rules, as a tuple of positive ints."""
    n = plain(n)
    check("the number of points n", n, Count | Sequence[Count])
    if isinstance(n, int | np.integer):
        return int(n)
    if rule != "gauss":
        raise ValueError(f"n={n!r}, numbers of points by axis, goes with rule='gauss', not {rule!r}")
    return tuple(map(int, n))


def _open(u):
    """Keep off 0 and 1, where the inverse normal distribution of the ball map is infinite."""
    eps = float(jnp.finfo(u.dtype).eps)
    return namespace(u).clip(u, eps / 4, 1 - eps / 2)
