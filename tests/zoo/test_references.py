"""Reference solutions are accurate and quick, or refused in one line."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from natgrad.zoo import _reference


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (_reference.allen_cahn, (1e-3, 1e6), "got diffusion 0.001 and reaction 1000000.0"),
        (_reference.allen_cahn, (1.0, 5.0), "got diffusion 1.0 and reaction 5.0"),
        (_reference.allen_cahn, (-1e-3, 5.0), "needs diffusion ≥ 0"),
        (_reference.allen_cahn, (1e-3, math.nan), "reaction of allen_cahn must be a finite number, got nan"),
        (_reference.allen_cahn, (1e-3, 100.0), "has layers too thin for its reference"),
        (_reference.burgers, (0.0,), "needs a positive nu, got 0.0"),
        (_reference.burgers, (math.inf,), "nu of burgers must be a finite number"),
        (_reference.condensate, (-1.0, 5.0, 4.0), "needs positive beta and chemical, got -1.0 and 5.0"),
        (_reference.condensate, (1.0, 1.0, 4.0), "there is no condensate with beta 1.0 and chemical 1.0"),
    ],
)
def test_what_would_take_long_or_not_be_accurate_is_refused(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)


@pytest.mark.parametrize("nu", [1e-3, 0.01 / math.pi, 1.0])
def test_burgers_holds_eleven_digits(nu):
    """Against quadrature twice as fine, most points at the shock; and u(0, x) = −sin πx."""
    t, x = np.meshgrid(np.linspace(0, 1, 21), np.concatenate([np.linspace(-1, 1, 21), nu * np.linspace(-4, 4, 17)]))
    z = jnp.asarray(np.stack([t.ravel(), x.ravel()], axis=1))
    coarse, fine = (jax.jit(jax.vmap(_reference.burgers(nu, step)))(z) for step in (None, 0.06))
    np.testing.assert_allclose(coarse, fine, atol=1e-11)
    start = z[z[:, 0] == 0]
    assert np.abs(coarse[z[:, 0] == 0] + jnp.sin(jnp.pi * start[:, 1])).max() < 1e-10


def test_burgers_is_smooth_at_the_start():
    u_t, u_x = jax.grad(_reference.burgers(0.01 / math.pi))(jnp.array([0.0, 0.3]))
    sine, cosine = math.sin(0.3 * math.pi), math.cos(0.3 * math.pi)
    np.testing.assert_allclose(u_x, -math.pi * cosine, rtol=1e-8)
    np.testing.assert_allclose(u_t, -math.pi * sine * cosine + 0.01 * math.pi * sine, rtol=1e-8)
