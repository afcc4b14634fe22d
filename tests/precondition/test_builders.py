"""Preconditioner builders on the Gramian of a network."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import natgrad as ng
from natgrad.linalg import pcg
from natgrad.plan import plan
from tests.feinns import ritz
from tests.helpers import FAST, Dense, poisson, relative

EPS = np.finfo(float).eps


@pytest.fixture(scope="module")
def gramian():
    problem = poisson(points=300, boundary=60, width=12)

    def both(problem):
        G = ng.gramian(problem, problem.params, "jacobian")
        return G.as_matrix(), G.loss_gradient()

    matrix, gradient = jax.jit(both, compiler_options=FAST)(problem)
    return Dense(matrix), gradient


class Build:
    """`builder.build` with μ = factor·λ̂₁, compiled once and for all; `traces` counts."""

    def __init__(self, builder, G):
        self.builder, self.G, self.traces = builder, G, 0
        self.state = builder.init(G.size, G.matrix.dtype, jax.random.key(0))
        self.compiled, self.found = None, None

    def __call__(self, factor, seed=0):
        def run(G, factor, state, key):
            self.traces += 1
            return self.builder.build(G, lambda largest: factor * largest, state, key)

        arguments = (self.G, jnp.asarray(factor), self.state, jax.random.key(seed))
        if self.compiled is None:
            self.compiled = jax.jit(run).lower(*arguments).compile(compiler_options=FAST)
        tried = int(getattr(self.state, "next_rank", 0))
        self.found, self.state = self.compiled(*arguments)
        return tried, self.found


def next_rank(tried, eigenvalues, threshold, increase, cap):
    """The rule of the paper: up by δℓ while λ̂_ℓ > rμ, else to the first i with λ̂ᵢ < rμ, plus one."""
    if eigenvalues[tried - 1] > threshold:
        return min(tried + increase, cap)
    first = next(i for i, value in enumerate([*eigenvalues, -1.0], start=1) if value < threshold)
    return min(first + 1, cap)


@pytest.mark.parametrize(
    ("options", "ratio"),
    [
        ({"test": "gaussian", "method": "cholesky", "ratio": 1.0}, 1.0),
        ({"test": "gaussian"}, 10.0),
        ({"test": "sampling", "method": "cholesky", "ratio": 1.0, "levels": 1}, 1.0),
    ],
)
def test_the_rank_follows_the_spectrum(gramian, options, ratio):
    """Up where λ̂_ℓ is still large, down where it is not, never past the cap, and compiled once for all ranks."""
    G, _ = gramian
    build = Build(ng.Nystrom(max_rank=50, increase=12, **options), G)
    assert int(build.state.next_rank) == 12
    went = []
    for seed, factor in enumerate([1e-12, 1e-12, 1e-2, *[1e-12] * 6, 1e-5, 10.0]):
        tried, state = build(factor, seed)
        values = np.asarray(state.eigenvalues)
        assert np.all(np.diff(values) <= 0)
        assert np.all(values[tried:] == 0)
        assert int(state.rank) <= tried
        expected = next_rank(tried, values, ratio * factor * float(state.largest), 12, 50)
        assert int(state.next_rank) == expected
        went.append(np.sign(int(state.next_rank) - tried))
    assert {-1, 0, 1} <= set(went)  # the sequence goes up, down and stays at the cap
    assert build.compiled is not None
    assert build.traces == 1


def test_rank_grows_up_to_the_size_of_the_matrix_only():
    G = Dense(jnp.eye(7))
    build = Build(ng.Nystrom(500, method="cholesky", increase=5, ratio=1.0, levels=1), G)
    assert build.state.basis.shape == (7, 7)
    assert [int(build(1e-12)[1].next_rank) for _ in range(3)] == [7, 7, 7]


@pytest.mark.parametrize("test", ["signs", "gaussian", "sampling", "uniform"])
def test_nystrom_approximates_from_below(gramian, test):
    """Ĝ ≤ G up to round-off, λ̂₁ ≤ λ₁ and close to it, and an orthonormal basis."""
    G, _ = gramian
    build = Build(ng.Nystrom(test=test, max_rank=60, increase=60, levels=1, method="cholesky"), G)
    _, state = build(1e-12)
    U, values, dense = np.asarray(state.basis), np.asarray(state.eigenvalues), np.asarray(G.matrix)
    U = U[:, values > 0]
    values = values[values > 0]
    assert relative(U.T @ U, np.eye(len(values))) < 1e-10
    left = np.linalg.eigvalsh(dense - (U * values) @ U.T)
    true = np.linalg.eigvalsh(dense)[::-1]
    assert left[0] > -1e-12 * true[0]
    assert values[0] <= true[0] * (1 + 1e-12)
    if test == "gaussian":
        assert values[0] > (1 - 1e-6) * true[0]
        assert left[-1] < 100 * np.sum(true[60:]) + 1e-12 * true[0]


def test_reuse_sharpens_the_tail(gramian):
    """The last range as test matrix is a step of subspace iteration: less is left out of the same rank."""
    G, _ = gramian

    def left(reuse):
        increase = 4 if reuse else 40
        build = Build(ng.Nystrom(40, "gaussian", "cholesky", increase, reuse=reuse, levels=1), G)
        build.state = eqx.tree_at(lambda s: s.next_rank, build.state, jnp.asarray(40, jnp.int32))
        for seed in range(3):
            _, state = build(1e-30, seed)
        U, values = np.asarray(state.basis), np.asarray(state.eigenvalues)
        return np.linalg.norm(np.asarray(G.matrix) - (U * values) @ U.T)

    assert left(True) < 0.5 * left(False)


@pytest.mark.parametrize("factor", [1e-4, 1e-8])
def test_rpcholesky_stops_at_the_trace(gramian, factor):
    G, _ = gramian
    build = Build(ng.RPCholesky(max_rank=150, block=5), G)
    _, state = build(factor)
    F = np.asarray(state.F)
    rank, p = int(state.rank), G.size
    assert rank < 150
    assert np.all(F[:, rank:] == 0)
    trace = np.trace(np.asarray(G.matrix) - F @ F.T)
    assert trace < factor * float(state.largest) * p
    fewer = F[:, : max(rank - 5, 0)]  # a block earlier it was not yet there
    assert np.trace(np.asarray(G.matrix) - fewer @ fewer.T) > 0.1 * factor * float(state.largest) * p


def test_rpcholesky_stops_at_the_cap(gramian):
    G, _ = gramian
    _, state = Build(ng.RPCholesky(max_rank=20, block=6), G)(1e-12)
    F = np.asarray(state.F)
    assert int(state.rank) == F.shape[1] == 20
    assert np.trace(np.asarray(G.matrix) - F @ F.T) > 1e-12 * float(state.largest) * G.size


@pytest.mark.parametrize("method", ["woodbury", "svd"])
def test_rpcholesky_counts_the_pivots_it_took(gramian, method):
    """A factorization that stopped early has the rank it stopped at, however it is inverted."""
    G, _ = gramian
    _, found = Build(ng.RPCholesky(max_rank=150, block=5, method=method), G)(1e-3)
    assert 0 < int(found.rank) < 150
    assert int(np.sum(np.any(np.asarray(found.F) != 0, axis=0))) <= int(found.rank)


BUILDERS = {
    "gaussian": ng.Nystrom(205, "gaussian", "cholesky", increase=205, levels=1),
    "sampling": ng.Nystrom(205, "sampling", "cholesky", increase=205, levels=1),
    "published": ng.Nystrom(205, increase=205, levels=1),
    "rpcholesky": ng.RPCholesky(max_rank=205, block=10, method="svd"),
}


@pytest.fixture(scope="module")
def plain_iterations(gramian):
    G, b = gramian
    mu = 10 * EPS * jnp.linalg.norm(G.matrix, 2)
    result = pcg(lambda v: G.mv(v) + mu * v, b, tol=1e-6, maxiter=5000)
    return int(result.iterations)


@pytest.mark.parametrize("name", BUILDERS)
def test_preconditioning_cuts_the_iterations(gramian, plain_iterations, name):
    """At μ = 10·eps·λ₁ conjugate gradients alone take many times as long, and the inverse is symmetric positive."""
    G, b = gramian
    builder = BUILDERS[name]
    _, state = Build(builder, G)(10 * EPS)
    mu = 10 * EPS * state.largest
    inverse = state.inverse(mu)
    result = pcg(lambda v: G.mv(v) + mu * v, b, preconditioner=inverse, tol=1e-6, maxiter=5000)
    assert result.residual < 1e-5
    assert 5 * int(result.iterations) < plain_iterations
    P = np.asarray(jax.vmap(inverse, 1, 1)(jnp.eye(G.size)))
    assert relative(P, P.T) < 1e-6
    assert np.all(np.linalg.eigvalsh((P + P.T) / 2) > 0)


def test_identity_does_nothing_but_measure(gramian):
    G, b = gramian
    builder = ng.Identity(power_iterations=8)
    _, state = Build(builder, G)(1e-3)
    np.testing.assert_array_equal(state.inverse(jnp.asarray(1.0))(b), b)
    top = np.linalg.norm(np.asarray(G.matrix), 2)
    assert 0.8 * top < float(state.largest) <= top * (1 + 1e-12)
    assert int(state.rank) == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: ng.RowFactor(test="normal"), "test must be one of 'signs', .*, got 'normal'"),
        (lambda: ng.Nystrom(method="factor"), "method must be 'svd' or 'cholesky', got 'factor'"),
        (
            lambda: ng.Nystrom(test="sampling", reuse=True),
            "reuse needs products with G",
        ),
        (lambda: ng.RowFactor(max_rank=0), "max_rank must be a positive integer or None, got 0"),
        (lambda: ng.Nystrom(increase=0), "increase must be a positive integer, got 0"),
        (lambda: ng.RowFactor(levels=0), "levels must be a positive integer, got 0"),
        (lambda: ng.RPCholesky(method="eigh"), "method must be 'woodbury' or 'svd', got 'eigh'"),
        (lambda: ng.RPCholesky(max_rank=0), "max_rank must be a positive integer or None, got 0"),
        (lambda: ng.RPCholesky(block=0), "block must be a positive integer, got 0"),
        (lambda: ng.PivotedRowFactor(power_iterations=0), "power_iterations must be a positive integer, got 0"),
    ],
)
def test_bad_input(build, message):
    with pytest.raises(ValueError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [ng.RowFactor, ng.Nystrom, ng.PivotedRowFactor, ng.RPCholesky])
def test_the_problem_says_the_rank_where_nobody_does(kind):
    problems = poisson(), ritz()
    for asked, given in ((None, [1000, 500]), (7, [7, 7])):
        direction = ng.PCG(kind(max_rank=asked))
        assert [direction.resolve(problem).preconditioner.max_rank for problem in problems] == given
        fitted = [plan(ng.NaturalGradient(direction), problem).direction for problem in problems]
        assert [direction.preconditioner.max_rank for direction in fitted] == given
