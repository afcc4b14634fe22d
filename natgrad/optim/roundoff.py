"""Round-off of the loss, measured: below it there is nothing left to descend.

Parameters are known to their last digit. Where that digit is changed, θᵢ → θᵢ(1 ± eps), the loss changes by what
floating point cannot tell from nothing: the rounding of the parameters and all that of evaluating the loss, whatever
terms it is the difference of. Where a step was rejected, or moved the last digits alone, and had promised no more than
the largest of a few such changes, there was nothing to find. The test has no units: a loss and its changes scale alike,
and so do parameters and their digits.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

PROBES = 8
NEAR = 64.0  # times eps ‖θ‖: a step that went no further is looked at, for its decrease may be round-off, too


def at_round_off(
    change: Callable[[Array], Array], theta: Float[Array, " p"], new: Float[Array, " p"], promised: Float[Array, ""]
) -> Bool[Array, ""]:
    """Whether a step from θ that ended at `new`, and had promised such a decrease, was within round-off.

    `change(θ⁺)` is L(θ⁺) − L(θ); it is evaluated only where the step left θ as it was, to the last digits.
    """
    eps, places = jnp.finfo(theta.dtype).eps, jnp.arange(theta.size)
    near = jnp.linalg.norm(new - theta) <= NEAR * eps * jnp.linalg.norm(theta)

    def probe(number, noise):
        # Signs of a golden rotation: spread evenly over the parameters, others for each probe, and no key is needed.
        turned = (0.6180339887498949 * places + 0.4142135623730951 * number) % 1.0
        signs = jnp.where(turned < 0.5, 1.0, -1.0).astype(theta.dtype)
        return jnp.maximum(noise, jnp.abs(change(theta * (1 + eps * signs))))

    noise = jax.lax.fori_loop(0, jnp.where(near, PROBES, 0), probe, jnp.zeros_like(promised))
    return near & (promised <= noise) & jnp.isfinite(noise)
