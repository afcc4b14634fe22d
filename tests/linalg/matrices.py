"""Matrices with known spectra, shared by the tests of this folder."""

import jax
import jax.numpy as jnp
import numpy as np


def orthogonal(p, m, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, m)))[0]


def with_spectrum(eigenvalues, seed=0):
    eigenvalues = np.asarray(eigenvalues, float)
    X = orthogonal(len(eigenvalues), len(eigenvalues), seed)
    G = (X * eigenvalues) @ X.T
    return jnp.asarray((G + G.T) / 2)


def decaying(p, decades, seed=0):
    return with_spectrum(np.logspace(0, -decades, p), seed)


def low_rank(p, r, seed=0):
    A = np.random.default_rng(seed).standard_normal((p, r))
    return jnp.asarray(A @ A.T)


def repeated_columns(p, seed=0):
    """A Gramian in which every parameter occurs three times."""
    A = np.random.default_rng(seed).standard_normal((p // 3, p // 3))
    return jnp.asarray(np.kron(A @ A.T, np.ones((3, 3))))


def finite(tree):
    return all(bool(jnp.all(jnp.isfinite(x))) for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating))


def orthogonality(U):
    """Largest entry of UᵀU − I, on the columns of U that are not zero."""
    U = np.asarray(U)
    live = np.any(U != 0, axis=0)
    return np.max(np.abs(U.T @ U - np.diag(live.astype(float))), initial=0.0)
