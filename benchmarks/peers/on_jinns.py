"""Jinns on a small case: `python -m benchmarks.peers.on_jinns CASE --method ngd --out FILE`.

Its `vanilla_ngd` with its default line search, on all points at once; the data are observations. Jinns trains in one
compiled loop: the error is looked at from within, by its validation step at every iteration.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jinns
import jinns.validation
import numpy as np
import optax
from jaxtyping import Array

from benchmarks.peers.case import LOWER, NU, UPPER, WEIGHT, Case, Done, Run, source

jax.config.update("jax_enable_x64", True)
STEPS = 10_000


class Equation(jinns.loss.PDEStatio):
    """The equation of a case in its coordinates, time among them."""

    name: str = eqx.field(static=True, kw_only=True)

    def equation(self, x, u, params):
        field = lambda x: jnp.squeeze(u(x, params))
        if self.name == "poisson2d":
            laplacian = jinns.loss.laplacian_rev(x, u, params)
            return (laplacian + source(self.name, x, jnp.sin))[None]
        first, second = jax.grad(field)(x), jax.hessian(field)(x)
        if self.name == "heat2d":
            return (first[0] - (second[1, 1] + second[2, 2]) / 4)[None]
        return (first[0] + field(x) * first[1] - NU * second[1, 1])[None]


class Look(jinns.validation.AbstractValidationModule):
    """Tells the error at every iteration, and stops the loop where the answer is true."""

    u: jinns.nn.PINN_MLP
    x: Array
    tell: Callable = eqx.field(static=True)
    call_every: int = eqx.field(kw_only=True, default=1)
    step: Array = eqx.field(default_factory=lambda: jnp.zeros((), int))

    def __call__(self, params):
        values = jax.vmap(lambda x: jnp.squeeze(self.u(x, params)))(self.x)
        stop = jax.pure_callback(self.tell, jax.ShapeDtypeStruct((), bool), self.step, values)
        return eqx.tree_at(lambda look: look.step, self, self.step + 1), stop, jnp.zeros(()), True


def teller(run: Run) -> Callable:
    """(step, values) ↦ whether the run is over, on the host."""

    def tell(step, values):
        try:
            run.note(int(step), run.case.error(values))
        except Done:
            return np.array(True)
        return np.array(False)

    return tell


def network_of(case: Case) -> eqx.nn.MLP:
    """The network of a case as an Equinox MLP."""
    width, depth = case.layers[1], len(case.layers) - 2
    make = lambda key: eqx.nn.MLP(case.layers[0], 1, width, depth, jnp.tanh, key=key)
    network = eqx.filter_eval_shape(make, jax.random.key(0))
    for i, (weight, bias) in enumerate(zip(case.weights, case.biases, strict=True)):
        where = lambda net, i=i: (net.layers[i].weight, net.layers[i].bias)
        network = eqx.tree_at(where, network, (jnp.asarray(weight), jnp.asarray(bias)))
    return network


def training(run: Run) -> None:
    """Until the run says that it is over."""
    case = run.case
    u, weights = jinns.nn.PINN_MLP.create(eq_type="PDEStatio", eqx_network=network_of(case))
    params = jinns.parameters.Params(nn_params=weights, eq_params={})
    loss = jinns.loss.LossPDEStatio(
        u=u,
        dynamic_loss=Equation(name=case.name),
        loss_weights=jinns.loss.LossWeightsPDEStatio(dyn_loss=1.0, observations=WEIGHT),
        params=params,
    )
    dim = case.layers[0]
    lower, upper = LOWER[case.name], UPPER[case.name]
    points = jinns.data.CubicMeshPDEStatio(
        key=jax.random.key(0), n=len(case.interior), dim=dim, min_pts=lower, max_pts=upper, method="uniform"
    )
    points = eqx.tree_at(lambda data: data.omega, points, jnp.asarray(case.interior))
    observations = jinns.data.DataGeneratorObservations(
        key=jax.random.key(0),
        obs_batch_size=None,
        observed_pinn_in=jnp.asarray(case.boundary),
        observed_values=jnp.asarray(case.data)[:, None],
    )
    jinns.solve(
        n_iter=STEPS,
        init_params=params,
        data=points,
        obs_data=observations,
        loss=loss,
        optimizer=jinns.optimizers.vanilla_ngd(linesearch=optax.scale_by_backtracking_linesearch(15)),
        validation=Look(u, jnp.asarray(case.x), teller(run)),
        verbose=False,
        key=jax.random.key(1),
    )


if __name__ == "__main__":
    Run(__doc__, "jinns", ("ngd",), "jax", "jaxlib", "optax").train(training)
