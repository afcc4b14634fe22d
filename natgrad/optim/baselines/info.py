"""What a step of a baseline reports, and the one thing that all of them ask a problem for."""

import equinox as eqx
import jax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PyTree

from natgrad.problem import Problem


class BaselineInfo(eqx.Module):
    """`loss` is L before the step, `change` what the step did to it; `evaluations` count the loss with its gradient."""

    loss: Float[Array, ""]
    change: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    step_size: Float[Array, ""]
    evaluations: Int[Array, ""]
    restarted: Bool[Array, ""]
    accepted: Bool[Array, ""]
    converged: Bool[Array, ""]


@jax.jit
def loss_and_gradient(problem: Problem, params: PyTree) -> tuple[Float[Array, ""], Float[Array, " p"]]:
    """L and its flat gradient."""
    loss, gradient = jax.value_and_grad(problem.loss)(params)
    return loss, ravel_pytree(gradient)[0]
