"""Preconditioners made of factors: no eigenproblem, and digits below the round-off of the Gramian."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.linalg import factor_preconditioner, nystrom_factor, orthogonal_factor, pcg, pick, sparse_signs
from natgrad.precondition.row_factor import FEW, MANY, Width, factored
from tests.helpers import FAST, poisson, relative

EPS = np.finfo(float).eps
GOOD = jnp.asarray(True)  # the step was accepted


class Tall:
    """G = AᵀA for a given A, with what the builders ask of a Gramian."""

    def __init__(self, A):
        self.A = jnp.asarray(A)
        self.size, self.dtype = self.A.shape[1], self.A.dtype

    def factor(self, omega):
        C = omega.times(self.A).T
        return nystrom_factor(C, C, lambda E: E @ self.A)

    def mv(self, v):
        return (self.A @ v) @ self.A

    def columns(self, indices):
        return self.A.T @ self.A[:, indices]

    def diagonal(self):
        return jnp.sum(self.A**2, axis=0)


def graded(p=60, rows=90, decades=14, seed=0):
    """Singular values from 1 down to 10^(−decades): eigenvalues of AᵀA far below its round-off."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(rows, p)))[0]
    V = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return (U * 10.0 ** -np.linspace(0, decades, p)) @ V.T


BUILDERS = {
    "signs": ng.RowFactor(40, "signs", levels=1),
    "gaussian": ng.RowFactor(40, "gaussian", levels=1),
    "sampling": ng.RowFactor(40, "sampling", levels=1),
    "uniform": ng.RowFactor(40, "uniform", levels=1),
    "rpcholesky": ng.PivotedRowFactor(40, 8),
}


def build(builder, G, mu, seed=0):
    return builder.build(G, mu, builder.init(G.size, G.dtype, None), jax.random.key(seed))[0]


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("gamma", [1e4, 10.0, 0.1])
def test_systems_below_the_round_off_of_the_gramian_are_solved(name, gamma):
    """(AᵀA + μI) x = Aᵀc at μ = γ·eps·λ₁, against the singular value decomposition of A."""
    A = graded()
    G, mu = Tall(A), gamma * EPS
    c = np.random.default_rng(1).normal(size=len(A))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    x = Vt.T @ (s / (s**2 + mu) * (U.T @ c))
    builder = BUILDERS[name]
    found = build(builder, G, lambda largest: jnp.asarray(mu))
    inverse = found.inverse(mu)
    result = pcg(
        lambda v: G.mv(v) + mu * v, jnp.asarray(A.T @ c), preconditioner=inverse, min_decrease=1e-12, maxiter=60
    )
    assert int(result.iterations) <= 12
    assert np.linalg.norm(A @ (result.x - x)) < 1e-4 * np.linalg.norm(A @ x)
    assert float(found.largest) == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize("name", BUILDERS)
def test_the_inverse_is_symmetric_and_positive(name):
    G = Tall(graded(decades=6))
    found = build(BUILDERS[name], G, lambda largest: 1e-9 * largest)
    P = np.asarray(jax.vmap(found.inverse(1e-9 * found.largest), 1, 1)(jnp.eye(G.size)))
    assert relative(P, P.T) < 1e-8
    assert np.all(np.linalg.eigvalsh((P + P.T) / 2) > 0)


def test_it_is_the_dense_formula():
    """P⁻¹ = (Ĝ + μI)⁻¹ on the range of Ĝ = (GΩ)(ΩᵀGΩ)⁺(GΩ)ᵀ and 1/(λ̂_m + μ) outside."""
    A, mu = graded(decades=4), 1e-5
    omega = sparse_signs(jax.random.key(3), 60, 20)
    G, O = A.T @ A, np.asarray(omega.matrix())
    values, U = np.linalg.eigh(G @ O @ np.linalg.pinv(O.T @ G @ O, rcond=1e-15) @ O.T @ G)
    U, values = U[:, -20:], values[-20:]
    expected = (U / (values + mu)) @ U.T + (np.eye(60) - U @ U.T) / (values[0] + mu)
    V, H, largest = orthogonal_factor(Tall(A).factor(omega))
    assert float(largest) == pytest.approx(values[-1], rel=0.1)
    inverse = factor_preconditioner(V, H, mu)
    P = np.asarray(jax.vmap(inverse, 1, 1)(jnp.eye(60)))
    assert relative(P, expected) < 2e-2  # λ̂_m comes from a few inverse iterations
    inside = U.T @ P @ U
    assert relative(inside, np.diag(1 / (values + mu))) < 1e-6


def test_what_is_filled_up_is_no_direction():
    F = Tall(graded()).factor(sparse_signs(jax.random.key(0), 60, 20))
    found = factored(F, 32)
    assert found.V.shape == (32, 60)
    narrow, wide = (factor_preconditioner(f.V, f.H, 1e-12) for f in (factored(F, 20), found))
    v = jnp.linspace(-1, 2, 60)
    assert relative(wide(v), narrow(v)) < 1e-6
    assert float(wide.tail) == pytest.approx(float(narrow.tail), rel=1e-2)


@pytest.mark.parametrize(
    ("decades", "widths", "most"), [(40, (75, 225), 20), (120, (25, 75), 8)], ids=["as it is", "mended"]
)
def test_more_columns_than_directions_are_left_out_not_filled_with_noise(decades, widths, most):
    """A sketch three times as wide as the Gramian has directions above round-off, too wide to be mended or not."""
    A = graded(300, 400, decades=decades)
    narrow, wide = (factored(Tall(A).factor(sparse_signs(jax.random.key(0), 300, n)), n) for n in widths)
    assert int(wide.rank) < 2 * 300 * 8 / decades  # singular values above √eps · σ₁: half of these
    mu = 0.1 * float(jnp.finfo(jnp.float64).eps) * float(wide.largest)
    b = jnp.asarray(A.T @ np.random.default_rng(1).normal(size=400))
    iterations = lambda f: int(
        pcg(
            lambda v: A.T @ (A @ v) + mu * v,
            b,
            preconditioner=factor_preconditioner(f.V, f.H, mu),
            tol=1e-8,
            maxiter=200,
        ).iterations
    )
    assert iterations(narrow) <= 8
    assert iterations(wide) <= most


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "metric"])
def test_directions_near_round_off_are_as_orthonormal_as_the_others(weighted):
    """R⁻ᵀ of 60 columns whose Gram matrix has 24 decades, a third of them below round-off."""
    C = jnp.asarray(graded(60, 400, decades=12) @ np.random.default_rng(2).normal(size=(60, 60))).T
    roots = jnp.linspace(0.5, 2.0, 400) if weighted else jnp.ones(400)
    D = C * roots**2 if weighted else C
    F = np.asarray(nystrom_factor(C, D, lambda E: E) / roots)
    live = np.any(F != 0, axis=1)
    assert 30 < live.sum() < 60
    values = np.linalg.eigvalsh(F[live] @ F[live].T)
    assert values.min() > 1 - 1e-6
    assert values.max() < 1 + 1e-6


@pytest.mark.parametrize(
    "A",
    [
        np.zeros((30, 20)),
        np.outer(np.ones(30), np.arange(20.0)),
        np.tile(np.random.default_rng(0).normal(size=(30, 5)), 4),
        np.eye(30, 20),
        graded(20, 30, 200),
    ],
    ids=["zero", "rank one", "repeated columns", "identity", "beyond underflow"],
)
@pytest.mark.parametrize("name", BUILDERS)
def test_degenerate_gramians_give_finite_inverses(A, name):
    G = Tall(A)
    mu = lambda largest: jnp.maximum(10 * EPS * largest, EPS)
    found = build(BUILDERS[name], G, mu)
    for v in (np.ones(20), np.linspace(-1, 1, 20)):
        z = np.asarray(found.inverse(mu(found.largest))(jnp.asarray(v)))
        assert np.all(np.isfinite(z))
        assert v @ z > 0


def test_pivots_that_were_not_drawn_are_rows_of_zeros():
    A = graded(20, 30, 3)
    F = np.asarray(Tall(A).factor(pick(jnp.asarray([3, 7, -1, 11, -1]), 20)))
    assert np.all(F[[2, 4]] == 0)
    C = (A.T @ A)[:, [3, 7, 11]]
    assert relative(F.T @ F, C @ np.linalg.solve(C[[3, 7, 11]], C.T)) < 1e-10


def test_the_width_follows_the_inner_iterations():
    builder = ng.RowFactor(max_rank=40, levels=3)
    state = builder.init(1000, jnp.dtype(float), None)
    went = []
    for iterations in (FEW - 1, FEW - 1, FEW - 1, FEW, MANY, MANY + 1, FEW - 1, MANY + 1, MANY + 1, FEW - 1):
        state = builder.adapt(state, jnp.asarray(iterations), GOOD)
        went.append(int(state.index))
    assert went == [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]  # from the narrowest on; what was too narrow is not tried again
    saturated = Width(jnp.asarray(1), jnp.asarray(0), jnp.asarray(True))  # a wider one would have no more directions
    assert int(builder.adapt(saturated, jnp.asarray(MANY + 1), GOOD).index) == 1


def test_all_widths_share_a_compilation():
    problem = poisson(points=60, boundary=20, width=8)
    builder, traces = ng.RowFactor(max_rank=32, levels=3), []

    def run(problem, state):
        traces.append(1)
        G = ng.gramian(problem, problem.params, "jacobian")
        found, state = builder.build(G, lambda largest: 1e-8 * largest, state, jax.random.key(0))
        return found.rank, state

    compiled = jax.jit(run, compiler_options=FAST)
    start = builder.init(problem.num_parameters, problem.dtype, None)
    results = [compiled(problem, replace(start, index=jnp.asarray(level, jnp.int32))) for level in range(3)]
    assert [int(rank) for rank, _ in results] == [8, 16, 32]
    assert [int(width.index) for _, width in results] == [0, 1, 2]
    assert not any(bool(width.saturated) for _, width in results)
    assert len(traces) == 1
