import jax
import jax.numpy as jnp
import pytest
from matrices import decaying

from natgrad.linalg import power_method

KEY = jax.random.key(0)


def test_estimate_from_below():
    G = decaying(100, 16)
    few, many = (float(power_method(lambda v: G @ v, KEY, 100, iterations=n)) for n in (4, 100))
    assert 0.5 < few <= many <= 1 + 1e-12
    assert many > 0.99


def test_exact_from_an_eigenvector():
    D = jnp.diag(jnp.arange(5.0))
    assert power_method(lambda v: D @ v, jnp.zeros(5).at[4].set(3.0), iterations=1) == 4


def test_zero_matrix_and_zero_start():
    assert power_method(lambda v: 0 * v, KEY, 10) == 0
    assert power_method(lambda v: v, jnp.zeros(10)) == 0


def test_key_needs_a_size():
    with pytest.raises(ValueError, match="needs p"):
        power_method(lambda v: v, KEY)
