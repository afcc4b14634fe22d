"""Low-rank approximations of a Gramian side by side: time, error in the trace norm, and what they are worth to pCG.

    python -m benchmarks.sketches [--points 1000] [--width 24] [--warmup 30] [--ranks 200 400 600]

G is that of 3D Poisson after some steps of training, and a synthetic one: AᵀA with singular values of A falling off
geometrically over `--decay` decades, in random orthonormal bases. The Nyström approximations Ĝ = FFᵀ are made as
`Gramian.factor` does, from a test matrix Ω of sparse signs, of Gaussian numbers, or of columns of the identity drawn by
the diagonal or uniformly; RPCholesky draws its columns one at a time or in blocks, and F is made of its pivots in the
same way. `error` is tr(G − Ĝ)/tr G, `best` that of the ℓ largest
eigenvalues, and the last columns are the iterations of pCG on (G + μI) x = ∇L with that preconditioner to a relative
residual of 1e-10, at most 500, for μ = γ·eps·λ₁. Times are of the approximation alone, compiled, the least of three; on
a CPU by the process' own clock.
"""

import argparse
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax import Array

import natgrad as ng
from benchmarks.machine import description
from benchmarks.scaling import seconds
from benchmarks.step import poisson3d
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


def table(A: Array, b: Array, ranks: list[int]) -> None:
    """All sketches at all ranks."""
    rows, size = A.shape
    squares = jnp.linalg.svd(A, compute_uv=False) ** 2
    mus = [gamma * jnp.finfo(A.dtype).eps * squares[0] for gamma in GAMMAS]
    above = ", ".join(f"{int(jnp.sum(squares > mu))} (γ = {g:g})" for g, mu in zip(GAMMAS, mus, strict=True))
    print(f"p = {size}, q = {rows}; eigenvalues above μ: {above}")
    print(f"{'':26s} {'ℓ':>4s} {'ms':>8s} {'error':>9s} {'best':>9s}" + "".join(f"{f'γ = {g:g}':>9s}" for g in GAMMAS))
    for rank in ranks:
        best = jnp.sum(squares[rank:]) / jnp.sum(squares)
        for name, sketch in sketches(rank):
            run = jax.jit(sketch)
            key = jax.random.key(1)
            F = run(A, key)
            error = 1 - jnp.sum(F**2) / jnp.sum(squares)
            milliseconds = 1e3 * seconds(run, A, key)
            counts = [int(iterations(A, b, F, mu)) for mu in mus]
            shown = "".join(f"{'> ' if n >= LIMIT else ''}{n}".rjust(9) for n in counts)
            print(f"{name:26s} {rank:4d} {milliseconds:8.1f} {error:9.1e} {best:9.1e}{shown}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--width", type=int, default=24)
    parser.add_argument("--warmup", type=int, default=30, help="steps of training before G is taken")
    parser.add_argument("--decay", type=float, default=15.0, help="decades the synthetic singular values fall by")
    parser.add_argument("--ranks", type=int, nargs="+", default=[200, 400, 600])
    options = parser.parse_args()
    print(description())
    print(f"\nPoisson 3D after {options.warmup} steps")
    A, b = trained(options.points, options.width, options.warmup)
    table(A, b, options.ranks)
    print(f"\nsynthetic, singular values over {options.decay:g} decades")
    table(*synthetic(*A.shape, options.decay), options.ranks)
