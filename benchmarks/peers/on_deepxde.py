"""DeepXDE on a small case: `python -m benchmarks.peers.on_deepxde CASE --method lbfgs --out FILE`.

`lbfgs` is the usual schedule of its documentation, Adam (learning rate 1e-3) and then L-BFGS with tight tolerances;
`nncg` goes on with NysNewton-CG, as its demo does, with the demo's rank and damping. Of the time, Adam has 15 % in
both, L-BFGS the rest in the first and 35 % in the second. PyTorch, float64.
"""

import os

os.environ["DDE_BACKEND"] = "pytorch"

import deepxde as dde
import torch

from benchmarks.peers.case import LOWER, NU, UPPER, WEIGHT, Run, source

LOOK = {"adam": 100, "L-BFGS": 1, "NNCG": 1}  # calls of an optimizer between two looks
dde.config.set_default_float("float64")
dde.config.set_random_seed(0)


class Next(Exception):
    """The time of this optimizer is over."""


class Watch(dde.callbacks.Callback):
    """Looks at the error every so many calls of the optimizer."""

    def __init__(self, run: Run, optimizer: str, until: float):
        super().__init__()
        self.run, self.optimizer, self.until, self.calls = run, optimizer, until, 0

    def on_epoch_end(self) -> None:
        """After each call of the optimizer: one step of Adam or NNCG, several of L-BFGS."""
        self.calls += 1
        if self.calls % LOOK[self.optimizer] == 0:
            self.run.look(self.model.train_state.step, self.model.predict)
        if self.run.record.wall > self.until:
            raise Next


def model_of(run: Run) -> dde.Model:
    """The case as DeepXDE takes it."""
    case = run.case
    dims = range(0 if case.name == "poisson2d" else 1, case.layers[0])

    def pde(x, u):
        laplacian = sum(dde.grad.hessian(u, x, i=i, j=i) for i in dims)
        if case.name == "poisson2d":
            return laplacian + source(case.name, x, torch.sin)[:, None]
        u_t = dde.grad.jacobian(u, x, j=0)
        if case.name == "heat2d":
            return u_t - laplacian / 4
        return u_t + u * dde.grad.jacobian(u, x, j=1) - NU * laplacian

    box = dde.geometry.Hypercube(LOWER[case.name], UPPER[case.name])
    condition = dde.icbc.PointSetBC(case.boundary, case.data[:, None])
    data = dde.data.PDE(box, pde, condition, num_domain=0, num_boundary=0, anchors=case.interior)
    network = dde.nn.FNN(case.layers, "tanh", "Glorot normal")
    with torch.no_grad():
        for linear, weight, bias in zip(network.linears, case.weights, case.biases, strict=True):
            linear.weight.copy_(torch.as_tensor(weight))
            linear.bias.copy_(torch.as_tensor(bias))
    return dde.Model(data, network)


def training(run: Run) -> None:
    """One optimizer after the other, each for its part of the time."""
    model = model_of(run)
    run.record.ready()
    shares = {"adam": 0.15, "L-BFGS": 0.5 if run.method == "nncg" else 2.0, "NNCG": 2.0}
    if run.method == "lbfgs":
        del shares["NNCG"]
    silent = {"display_every": 10**9, "verbose": 0}
    for optimizer, share in shares.items():
        if optimizer == "L-BFGS":
            dde.optimizers.set_LBFGS_options(maxcor=100, ftol=0, gtol=0, maxiter=10**6)
            dde.optimizers.LBFGS_options.update(iter_per_step=50, fun_per_step=62)  # a look every 50
        if optimizer == "NNCG":
            dde.optimizers.set_NNCG_options(rank=50, mu=1e-1)
        model.compile(optimizer, lr=1e-3 if optimizer == "adam" else None, loss_weights=[1, WEIGHT], verbose=0)
        watch = Watch(run, optimizer, share * run.seconds)
        steps = {} if optimizer == "L-BFGS" else {"iterations": 10**7}
        try:
            model.train(**steps, callbacks=[watch], **silent)
        except Next:
            continue


if __name__ == "__main__":
    Run(__doc__, "deepxde", ("lbfgs", "nncg"), "torch", "numpy").train(training)
