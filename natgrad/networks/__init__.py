"""Networks u_θ: (d,) -> () or (m,), as Equinox modules, on one point at a time.

The floating-point arrays of a module are its parameters θ, in the order of `jax.flatten_util.ravel_pytree`;
all else (activations, sizes, the frequencies of Fourier features) is static, so that a network goes through
`jax.jit`, `jax.grad` and `jax.tree` as it is. A network with one output returns a scalar.
"""

from natgrad.networks.base import Function as Function
from natgrad.networks.base import num_parameters as num_parameters
from natgrad.networks.compose import Apply as Apply
from natgrad.networks.compose import Fields as Fields
from natgrad.networks.hard import HardBoundary as HardBoundary
from natgrad.networks.hard import hard_start as hard_start
from natgrad.networks.inputs import Bounded as Bounded
from natgrad.networks.inputs import FourierFeatures as FourierFeatures
from natgrad.networks.inputs import Normalized as Normalized
from natgrad.networks.inputs import Periodic as Periodic
from natgrad.networks.mlp import MLP as MLP
from natgrad.networks.mlp import Linear as Linear
from natgrad.networks.series import FourierSeries as FourierSeries
from natgrad.networks.waves import Waves as Waves
