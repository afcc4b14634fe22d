"""What a step of a baseline reports."""

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int


class BaselineInfo(eqx.Module):
    """`loss` is L before the step, `change` what the step did to it; `evaluations` count the loss with its gradient."""

    loss: Float[Array, ""]
    change: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    step_size: Float[Array, ""]
    evaluations: Int[Array, ""]
    restarted: Bool[Array, ""]
    accepted: Bool[Array, ""]
