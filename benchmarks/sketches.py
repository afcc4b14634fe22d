"""Low-rank approximations of a Gramian side by side: time, error in the trace norm, and what they are worth to pCG.

    python -m benchmarks.sketches [--of synthetic] [--points 1000] [--width 24] [--warmup 30] [--ranks 200 400 600]

G is that of 3D Poisson after some steps of training, or a synthetic one: AᵀA with singular values of A falling off
geometrically over `--decay` decades, in random orthonormal bases. The Nyström approximations Ĝ = FFᵀ are made as
`Gramian.factor` does, from a test matrix Ω of sparse signs, of Gaussian numbers, or of columns of the identity drawn by
the diagonal or uniformly; RPCholesky draws its columns one at a time or in blocks, and F is made of its pivots in the
same way. `error` is tr(G − Ĝ)/tr G, at best that of the ℓ largest eigenvalues, and a dash below its round-off; `pCG`
are the iterations on (G + μI) x = ∇L with that preconditioner to a relative residual of 1e-10, at most 500, for
μ = γ·eps·λ₁ with both γ. Times are of the approximation alone, compiled, the least of three; on a CPU by the process'
own clock.
"""

import argparse
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax import Array

import natgrad as ng
from benchmarks import tables
from benchmarks.machine import description
from benchmarks.scaling import seconds
from benchmarks.step import poisson3d
from benchmarks.tables import short
from natgrad.linalg import (
    DenseTest,
    TestMatrix,
    factor_preconditioner,
    gaussian,
    matmul,
    nystrom_factor,
    orthogonal_factor,
    pcg,
    pick,
    rpcholesky,
    sample_diagonal,
    sample_uniform,
    sparse_signs,
)

GAMMAS = (0.1, 10.0)
BLOCK = 50
LIMIT = 500
ROUND_OFF = 1e-14  # of the error, a difference of traces


def trained(points: int, width: int, steps: int) -> tuple[Array, Array]:
    """A and ∇L of 3D Poisson after some steps."""
    problem = poisson3d(points, width)
    solution = ng.solve(problem, ng.NystromNGD(), steps, progress=False) if steps else problem
    G = ng.gramian(problem, solution.params, "jacobian")
    return G.jacobian, G.loss_gradient()


def synthetic(rows: int, size: int, decades: float = 15.0) -> tuple[Array, Array]:
    """A with singular values from 1 to 10^-decades, and Aᵀ1."""
    keys = jax.random.split(jax.random.key(0))
    rank = min(rows, size)
    U, V = (jnp.linalg.qr(jax.random.normal(k, (n, rank)))[0] for k, n in zip(keys, (rows, size), strict=True))
    A = (U * jnp.logspace(0, -decades, rank)) @ V.T
    return A, jnp.ones(rows) @ A


def factor(A: Array, omega: TestMatrix) -> Array:
    """F with FᵀF the Nyström approximation of AᵀA, as `Gramian.factor` makes it."""
    C = omega.times(A).T
    return nystrom_factor(C, C, lambda E: matmul(E, A))


def sketches(rank: int) -> Iterator[tuple[str, Callable[[Array, Array], Array]]]:
    """(name, (A, key) ↦ F)."""

    def pivoted(A: Array, key: Array, block: int) -> Array:
        columns = lambda S: matmul(A.T, A[:, S])
        found = rpcholesky(columns, jnp.sum(A**2, axis=0), key, max_rank=rank, block=block)
        return factor(A, pick(found.pivots, A.shape[1]))

    chosen = lambda A, indices: factor(A, pick(indices, A.shape[1]))
    yield "Nyström, sparse signs", lambda A, key: factor(A, sparse_signs(key, A.shape[1], rank))
    yield "Nyström, Gaussian", lambda A, key: factor(A, DenseTest(gaussian(key, A.shape[1], rank)))
    yield "Nyström, sampling", lambda A, key: chosen(A, sample_diagonal(key, jnp.sum(A**2, axis=0), rank))
    yield "Nyström, uniform", lambda A, key: chosen(A, sample_uniform(key, A.shape[1], rank))
    yield "RPCholesky, plain", lambda A, key: pivoted(A, key, 1)
    yield f"RPCholesky, blocks of {BLOCK}", lambda A, key: pivoted(A, key, BLOCK)


@jax.jit
def iterations(A: Array, b: Array, F: Array, mu: Array) -> Array:
    """pCG iterations with the preconditioner made of F."""
    V, H, _ = orthogonal_factor(F)
    inverse = factor_preconditioner(V, H, mu)
    return pcg(lambda v: (A @ v) @ A + mu * v, b, preconditioner=inverse, tol=1e-10, maxiter=LIMIT).iterations


def table(A: Array, b: Array, ranks: list[int]) -> Iterator[tuple[str, ...]]:
    """A sketch a row, its milliseconds, error and iterations at all ranks; what else there is to know comes first."""
    rows, size = A.shape
    squares = jnp.linalg.svd(A, compute_uv=False) ** 2
    mus = [gamma * jnp.finfo(A.dtype).eps * squares[0] for gamma in GAMMAS]
    above = ", ".join(f"{int(jnp.sum(squares > mu))} (γ = {g:g})" for g, mu in zip(GAMMAS, mus, strict=True))
    best = ", ".join(f"{short(float(jnp.sum(squares[rank:]) / jnp.sum(squares)))} (ℓ = {rank})" for rank in ranks)
    print(f"p = {size}, q = {rows}; eigenvalues above μ: {above}; at best: {best}")
    for variants in zip(*(sketches(rank) for rank in ranks), strict=True):
        cells = [variants[0][0]]
        for _, sketch in variants:
            run, key = jax.jit(sketch), jax.random.key(1)
            F = run(A, key)
            error = float(1 - jnp.sum(F**2) / jnp.sum(squares))
            counts = [int(iterations(A, b, F, mu)) for mu in mus]
            shown = ", ".join(f">{n}" if n >= LIMIT else str(n) for n in counts)
            cells += [f"{1e3 * seconds(run, A, key):.0f}", short(error) if error > ROUND_OFF else "–", shown]
        yield tuple(cells)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--warmup", type=int, default=30, help="steps of training before G is taken")
    parser.add_argument("--decay", type=float, default=15.0, help="decades the synthetic singular values fall by")
    parser.add_argument("--ranks", type=int, nargs="+", default=[200, 400, 600])
    parser.add_argument("--of", choices=("poisson", "synthetic"), default="poisson", help="the Gramian")
    tables.option(parser)
    options = parser.parse_args()
    print(description())
    A, b = trained(options.points, options.width, options.warmup)
    if options.of == "synthetic":
        A, b = synthetic(*A.shape, options.decay)
    head = [cell for rank in options.ranks for cell in (f"ℓ = {rank}: ms", "error", "pCG")]
    tables.show(["", *head], table(A, b, options.ranks), options.keep)
