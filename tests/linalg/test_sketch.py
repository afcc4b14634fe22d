import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.linalg.sketch import DenseTest, gaussian, pick, sample_diagonal, sample_uniform, sparse_signs

KEY = jax.random.key(0)


def test_gaussian_columns_have_length_one_on_average():
    omega = gaussian(KEY, 2000, 30, jnp.float32)
    assert omega.dtype == jnp.float32
    np.testing.assert_allclose(jnp.mean(jnp.sum(omega**2, axis=0)), 1, atol=0.05)


def test_indices_do_not_repeat():
    assert len(np.unique(sample_uniform(KEY, 50, 50))) == 50
    assert len(np.unique(sample_diagonal(KEY, jnp.logspace(0, -300, 50), 50))) == 50


def test_impossible_indices_come_last():
    diagonal = jnp.array([0.0, 1e-300, jnp.nan, 1.0, -2.0, jnp.inf, 5.0, 0.0])
    for seed in range(20):
        drawn = np.asarray(sample_diagonal(jax.random.key(seed), diagonal, 8))
        assert set(drawn[:3]) == {1, 3, 6}
        assert len(set(drawn)) == 8


def test_probability_is_proportional_to_the_diagonal():
    diagonal = jnp.array([1.0, 2.0, 3.0, 4.0])
    first = jax.vmap(lambda k: sample_diagonal(k, diagonal, 2)[0])(jax.random.split(KEY, 20_000))
    np.testing.assert_allclose(np.bincount(first) / 20_000, diagonal / 10, atol=0.015)


def test_more_indices_than_there_are():
    with pytest.raises(ValueError, match="m = 5"):
        sample_uniform(KEY, 4, 5)
    with pytest.raises(ValueError, match="m = 5"):
        sample_diagonal(KEY, jnp.ones(4), 5)


TESTS = {
    "signs": sparse_signs(KEY, 37, 10),
    "few signs": sparse_signs(KEY, 300, 2),  # sums of more slices than are written out
    "all signs": sparse_signs(KEY, 12, 12),
    "dense": DenseTest(gaussian(KEY, 20, 5)),
    "columns": pick(jnp.asarray([3, 0, -1, 7]), 9),
}


@pytest.mark.parametrize("name", TESTS)
def test_products_are_those_of_the_matrix(name):
    omega = TESTS[name]
    matrix = np.asarray(omega.matrix())
    p = len(matrix)
    A = np.random.default_rng(0).normal(size=(4, p))
    np.testing.assert_allclose(omega.times(jnp.asarray(A)), A @ matrix, atol=1e-13)
    s = np.linspace(1, 2, p)
    np.testing.assert_allclose(omega.scale(jnp.asarray(s)).matrix(), s[:, None] * matrix, atol=1e-15)


def test_sparse_signs_have_two_entries_a_row_and_columns_of_length_one():
    matrix = np.asarray(sparse_signs(KEY, 1000, 50).matrix())
    assert np.max(np.count_nonzero(matrix, axis=1)) == 2
    np.testing.assert_allclose(np.mean(np.sum(matrix**2, axis=0)), 1, atol=0.05)
    assert np.linalg.matrix_rank(np.asarray(sparse_signs(KEY, 40, 40).matrix())) == 40
