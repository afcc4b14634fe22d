"""Riesz maps: inverses of symmetric positive definite forms, exact or spectrally equivalent, as frozen operators.

exact     a sparse factorization, once, on the host; JAX calls back into it
fast      tensor meshes with constant coefficients: with K_a V_a = M_a V_a Λ_a along each axis (fast diagonalization)
              A⁻¹ = (⊗ V_a) (Σ k_a Λ_a + σ)⁻¹ (⊗ V_a)ᵀ
cycles    V-cycles between the space and the one of degree 1 on the same mesh. The smoother S is a Chebyshev
          polynomial in D⁻¹A on the upper part of its spectrum, the same before and after, so that the cycle
              B = S + (I − SA) C (I − AS) + …,     C = P (PᵀAP)⁻¹ Pᵀ,
          is linear, symmetric and positive definite, and bounds.lower ≤ λ(BA) ≤ bounds.upper.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float, Int

from natgrad.backend import host, xla
from natgrad.fem.forms import Form
from natgrad.fem.operators import Operator, along_axes, in_blocks

if TYPE_CHECKING:
    from natgrad.fem.base import BaseSpace

DENSE = 2048  # unknowns of the coarse space up to which its inverse is a dense matrix
INDEFINITE = "a Riesz map needs a positive definite form, this one is not on the free nodes"
SINGULAR = "the form is singular on the free nodes: fix a part of the boundary, or add a reaction"


class Bounds(NamedTuple):
    """Where the spectrum of BA lies, B the approximate inverse (estimated from inside)."""

    lower: float
    upper: float


def riesz_map(space: BaseSpace, form: Any, free: np.ndarray | None, kind: str, **options: Any) -> Operator:
    """The inverse of the form on the free nodes, by the method asked for."""
    if isinstance(form, Form) and not form.symmetric:
        raise ValueError(f"a Riesz map needs a symmetric form, {form} is not: leave the advection out")
    if kind == "fast":
        fast = getattr(space, "fast_diagonalization", None)
        if fast is None:
            raise ValueError("kind='fast' needs a tensor mesh (natgrad.fem.rectangle): use 'exact' or 'cycles'")
        return fast(form, free, **options)
    if kind not in ("exact", "cycles"):
        raise ValueError(f"kind must be 'exact', 'fast' or 'cycles', got {kind!r}")
    A = space.assemble(form)
    A = A if free is None else scipy.sparse.csr_array(A[free][:, free])
    if abs(A - A.T).max() > 1e-10 * abs(A).max():
        raise ValueError("a Riesz map needs a symmetric form, the assembled matrix is not")
    return Factorized(A, **options) if kind == "exact" else cycles(space, form, free, A, **options)


class Factor:
    """A sparse factorization on the host, known to JAX, and to compiled programs, by its identity."""

    known_by_identity = True  # nothing changes it, and what SuperLU has in it cannot be read

    def __init__(self, A: scipy.sparse.csr_array, symmetric: bool = True):
        from scipy.sparse.linalg import splu

        scale = abs(A).max()
        # A symmetric ordering; off the diagonal only where the matrix is not known to be positive definite.
        pivoting = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}} if symmetric else {}
        try:
            self.lu = splu(scipy.sparse.csc_matrix(A), permc_spec="MMD_AT_PLUS_A", **pivoting)
        except RuntimeError as error:
            raise ValueError(SINGULAR) from error
        pivots = self.lu.U.diagonal()
        if np.abs(pivots).min() <= 1e-12 * scale:
            raise ValueError(SINGULAR)
        if symmetric and pivots.min() < 0:  # those of LDLᵀ have the signs of the eigenvalues
            raise ValueError(INDEFINITE)

    def __call__(self, b: Any) -> np.ndarray:
        """Solves for right-hand sides (..., n, m)."""
        b = np.asarray(b)
        columns = np.moveaxis(b, -2, 0)
        x = self.lu.solve(np.ascontiguousarray(columns.reshape(len(columns), -1), dtype=np.float64))
        return np.moveaxis(x.reshape(columns.shape), 0, -2).astype(b.dtype)


class Factorized(Operator):
    """A⁻¹ by the factorization; products are solves on the host."""

    factor: Factor = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def __init__(self, A: scipy.sparse.csr_array):
        self.factor, self.size = Factor(A), A.shape[0]

    def product(self, x, transpose):
        def solve(_, b: Array) -> Array:
            return xla.call(self.factor, b.shape, b.dtype, b, batched=True)

        # So JAX learns that the callback is linear and symmetric; of the first argument it uses the shape alone.
        return jax.lax.custom_linear_solve(lambda y: y, x, solve, symmetric=True)


class FastDiagonalization(Operator):
    """(⊗ V_a) diag (⊗ V_a)ᵀ."""

    vectors: tuple[Float[Array, "k k"], ...]
    inverse: Float[Array, "..."]
    size: int = eqx.field(static=True)

    def __init__(self, stiffness, mass, diffusion, reaction: float):
        """From the 1D matrices along each axis, the diffusion along each and the reaction."""
        pairs = [scipy.linalg.eigh(K, M) for K, M in zip(stiffness, mass, strict=True)]
        grids = np.meshgrid(*(k * values for k, (values, _) in zip(diffusion, pairs, strict=True)), indexing="ij")
        spectrum = np.sum(grids, axis=0) + reaction
        if spectrum.min() <= 1e-12 * spectrum.max():
            raise ValueError(SINGULAR)
        self.vectors = tuple(host.array(V) for _, V in pairs)
        self.inverse = host.array(1 / spectrum)
        self.size = spectrum.size

    def product(self, x, transpose):
        grid = x.reshape(*self.inverse.shape, x.shape[1])
        modes = along_axes([V.T for V in self.vectors], grid) * self.inverse[..., None]
        return along_axes(self.vectors, modes).reshape(x.shape)


class Dense(Operator):
    """A small symmetric matrix."""

    matrix: Float[Array, "n n"]
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        return self.matrix @ x


class Interpolation(eqx.Module):
    """A sparse matrix by rows of few entries (n, k), used both ways."""

    weights: Float[Array, "n k"]
    columns: Int[Array, "n k"]
    coarse: int = eqx.field(static=True)

    def __init__(self, P: scipy.sparse.csr_array):
        P = scipy.sparse.csr_array(P)
        counts = np.diff(P.indptr)
        slot = np.arange(P.nnz) - np.repeat(P.indptr[:-1], counts)
        row = np.repeat(np.arange(P.shape[0]), counts)
        weights, columns = np.zeros((P.shape[0], counts.max())), np.zeros((P.shape[0], counts.max()), np.int32)
        weights[row, slot], columns[row, slot] = P.data, P.indices
        self.weights, self.columns, self.coarse = host.array(weights), host.array(columns), P.shape[1]

    def prolong(self, x: Float[Array, "c m"]) -> Float[Array, "n m"]:
        return jnp.einsum("nk,nkm->nm", self.weights, x[self.columns])

    def restrict(self, x: Float[Array, "n m"]) -> Float[Array, "c m"]:
        entries = self.weights[:, :, None] * x[:, None, :]
        return jnp.zeros_like(x, shape=(self.coarse, x.shape[1])).at[self.columns].add(entries)


class Cycles(Operator):
    """A fixed number of symmetric two-level cycles."""

    matrix: Operator
    coarse: Operator
    interpolation: Interpolation
    diagonal: Float[Array, " n"]
    interval: Float[Array, " 2"]
    bounds: Bounds = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    count: int = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def product(self, x, transpose):
        return in_blocks(self._cycles, x)

    def _cycles(self, b: Array) -> Array:
        x = self._cycle(b)
        for _ in range(self.count - 1):
            x = x + self._cycle(b - self.matrix.product(x, False))
        return x

    def _cycle(self, b: Array) -> Array:
        x = self._smooth(b)
        residual = b - self.matrix.product(x, False)
        fix = self.coarse.product(self.interpolation.restrict(residual), False)
        x = x + self.interpolation.prolong(fix)
        return x + self._smooth(b - self.matrix.product(x, False))

    def _smooth(self, r: Array) -> Array:
        """p(D⁻¹A) D⁻¹ r, Chebyshev on the interval."""
        a, b = self.interval
        centre, radius = (b + a) / 2, (b - a) / 2
        rho = radius / centre
        scale = 1 / self.diagonal[:, None]
        d = scale * r / centre
        x = d
        for _ in range(self.steps - 1):
            r = r - self.matrix.product(d, False)
            new = 1 / (2 * centre / radius - rho)
            d = new * rho * d + 2 * new / radius * scale * r
            x, rho = x + d, new
        return x


def cycles(
    space: BaseSpace,
    form: Any,
    free: np.ndarray | None,
    A: scipy.sparse.csr_array,
    *,
    smoothing: int = 3,
    count: int = 1,
) -> Operator:
    """Builds `Cycles`: `smoothing` products with A before and after, `count` cycles."""
    from scipy.sparse.linalg import eigsh

    if smoothing < 1 or count < 1:
        raise ValueError(f"cycles need smoothing ≥ 1 and count ≥ 1, got {smoothing} and {count}")
    _, P = space.linear()
    if free is not None:
        P = P[free]
        vertices = np.unique(P.indices[np.abs(P.data - 1) < 1e-12])  # coarse nodes that are free themselves
        if len(vertices) == 0:
            raise ValueError("cycles need a free vertex of the mesh, this one has none: use kind='exact'")
        P = P[:, vertices]
    P.eliminate_zeros()
    coarse = scipy.sparse.csr_array(P.T @ A @ P)
    inverse: Operator = Factorized(coarse)
    if coarse.shape[0] <= DENSE:
        dense = scipy.linalg.inv(coarse.toarray())
        inverse = Dense(matrix=host.array((dense + dense.T) / 2), size=len(dense))
    diagonal = A.diagonal()
    root = scipy.sparse.diags_array(1 / np.sqrt(diagonal))
    start = np.random.default_rng(0).standard_normal(A.shape[0])
    options = {"k": 1, "which": "LA", "tol": 1e-2, "v0": start, "return_eigenvectors": False}
    top = 1.05 * eigsh(root @ A @ root, **options)[0]
    interval = np.array([top / max(4.0, 1.5 * smoothing**2), top])
    build = partial(
        Cycles,
        matrix=space.operator(form, free),
        coarse=inverse,
        interpolation=Interpolation(P),
        diagonal=host.array(diagonal),
        interval=host.array(interval),
        steps=smoothing,
        count=count,
        size=A.shape[0],
    )
    return build(bounds=_spectrum(A, build(bounds=Bounds(0.0, 0.0))))


def _spectrum(A: scipy.sparse.csr_array, B: Operator, steps: int = 30) -> Bounds:
    """The extreme Ritz values of BA after some Lanczos steps (those that conjugate gradients would see)."""
    apply = eqx.filter_jit(lambda B, r: B.apply(r))
    r = np.random.default_rng(0).standard_normal(A.shape[0])
    z = np.asarray(apply(B, r))
    p, rz = z, r @ z
    alphas: list[float] = []
    betas: list[float] = []
    for _ in range(min(steps, A.shape[0])):
        Ap = A @ p
        alphas.append(rz / (p @ Ap))
        r = r - alphas[-1] * Ap
        z = np.asarray(apply(B, r))
        new = r @ z
        betas.append(new / rz)
        if betas[-1] < 1e-20 or new <= 1e-24 * abs(alphas[0]):
            break
        p, rz = z + betas[-1] * p, new
    a, b = np.array(alphas), np.array(betas)
    main = 1 / a
    main[1:] += b[: len(a) - 1] / a[:-1]
    ritz = scipy.linalg.eigvalsh_tridiagonal(main, np.sqrt(b[: len(a) - 1]) / a[:-1])
    return Bounds(float(ritz[0]), float(ritz[-1]))
