"""Solves with Cholesky factors, several at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.backend import batched, tuning

RNG = np.random.default_rng(0)
BASES = np.linalg.qr(RNG.normal(size=(3, 100, 100)))[0]
A = jnp.asarray((BASES * np.geomspace(1, 1e-8, 100)) @ np.swapaxes(BASES, 1, 2))  # of condition 1e8
L, B = jnp.linalg.cholesky(A), jnp.asarray(RNG.normal(size=(3, 100)))


@pytest.mark.parametrize("inverse", [True, False])
def test_several_at_once_solve_as_well_as_one_by_one(monkeypatch, inverse):
    monkeypatch.setattr(tuning, "SOLVES_BY_INVERSE", tuning.ByDevice(cpu=inverse, other=True))
    found = jax.vmap(batched.cholesky_solve)(L, B)
    residual = jnp.einsum("kij,kj->ki", A, found) - B
    assert jnp.linalg.norm(residual) < 1e-7 * jnp.linalg.norm(B)
    alone = jnp.stack([batched.cholesky_solve(*pair) for pair in zip(L, B, strict=True)])
    np.testing.assert_allclose(found, alone, atol=1e-7 * float(jnp.linalg.norm(alone)))
    np.testing.assert_array_equal(found, alone) if not inverse else None


def test_one_factor_for_several_right_hand_sides(monkeypatch):
    monkeypatch.setattr(tuning, "SOLVES_BY_INVERSE", tuning.ByDevice(cpu=True, other=True))
    shared = jax.vmap(batched.cholesky_solve, in_axes=(None, 0))(L[0], B)
    assert jnp.linalg.norm(shared @ A[0] - B) < 1e-7 * jnp.linalg.norm(B)
