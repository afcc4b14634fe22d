"""Scimba on a small case: `python -m benchmarks.peers.on_scimba CASE --method eng --out FILE`.

Its natural-gradient PINNs with weak boundary conditions: `eng` is the energy natural gradient with the line search on a
logarithmic grid, `lm` the same with Armijo's and adaptive (Levenberg–Marquardt) regularization, `nystrom` its sketched
variant. PyTorch, float64. Points are drawn anew for every epoch in Scimba; here they are those of the case.
"""

from typing import Any

import torch
from scimba_torch.approximation_space.nn_space import NNxSpace
from scimba_torch.domain.meshless_domain.domain_nd import HypercubeND
from scimba_torch.integration.monte_carlo import DomainSampler, TensorizedSampler
from scimba_torch.integration.monte_carlo_parameters import UniformParametricSampler
from scimba_torch.neural_nets.coordinates_based_nets.mlp import GenericMLP
from scimba_torch.numerical_solvers.elliptic_pde.pinns import NaturalGradientPinnsElliptic
from scimba_torch.physical_models.elliptic_pde.abstract_elliptic_pde import StrongFormEllipticPDE
from scimba_torch.utils.scimba_tensors import LabelTensor

from benchmarks.peers.case import LOWER, NU, UPPER, WEIGHT, Case, Run, source

METHODS: dict[str, dict[str, Any]] = {
    "eng": {"ng_algo": "ENG", "type_linesearch": "logarithmic_grid"},
    "lm": {"ng_algo": "ENG", "adaptive_matrix_regularization": True},
    "nystrom": {"ng_algo": "NNG"},
}


class Equation(StrongFormEllipticPDE):
    """The equation of a case in its coordinates, time among them, with its data as boundary values."""

    def __init__(self, space: Any, case: Case):
        super().__init__(space, linear=case.name != "burgers", residual_size=1, bc_residual_size=1)
        self.case, self.data = case, torch.as_tensor(case.data)[:, None]
        self.dims = range(0 if case.name == "poisson2d" else 1, case.layers[0])

    def combine(self, u, u_t, u_x, laplacian):
        """The left-hand side, of values and derivatives."""
        if self.case.name == "poisson2d":
            return -laplacian
        return u_t - laplacian / 4 if self.case.name == "heat2d" else u_t + u * u_x - NU * laplacian

    def rhs(self, w, x, mu):
        return source(self.case.name, x.x, torch.sin)[:, None].detach()

    def operator(self, w, x, mu):
        u = w.get_components()
        first = tuple(self.grad(u, x))
        laplacian = sum(tuple(self.grad(first[i], x))[i] for i in self.dims)
        return self.combine(u, first[0], first[1], laplacian)

    def functional_operator(self, func, x, mu, theta):
        at = lambda point: func(point, mu, theta).squeeze()
        hessian = torch.func.jacrev(torch.func.grad(at))(x)
        laplacian = sum(hessian[i, i] for i in self.dims)
        if self.case.name == "poisson2d":  # no need of the slope
            return -laplacian.reshape(1)
        slope = torch.func.grad(at)(x)
        return self.combine(at(x), slope[0], slope[1], laplacian).reshape(1)

    def bc_rhs(self, w, x, n, mu):
        return self.data

    def bc_operator(self, w, x, n, mu):
        return w.get_components()

    def functional_operator_bc(self, func, x, n, mu, theta):
        return func(x, mu, theta)


class Pinn(NaturalGradientPinnsElliptic):
    """Trains on the points of a case, and looks at the error before every epoch."""

    run: Run
    points: tuple[LabelTensor, ...]
    epoch = 0

    def sample_all_vars(self, **kwargs):
        if self.epoch:
            self.run.look(self.epoch, self.values)
        self.epoch += 1
        return self.points

    def values(self, x):
        """The network at points (n, d)."""
        with torch.no_grad():
            return self.space.evaluate(labelled(x), empty(len(x))).w.cpu().numpy()


def labelled(x: Any, **options: Any) -> LabelTensor:
    return LabelTensor(torch.tensor(x, dtype=torch.double, **options))


def empty(n: int) -> LabelTensor:
    """The parameters of the equation: none."""
    return LabelTensor(torch.zeros(n, 0))


def training(run: Run) -> None:
    """Until the run says that it is over."""
    case = run.case
    box = HypercubeND(list(zip(LOWER[case.name], UPPER[case.name], strict=True)), is_main_domain=True)
    sampler = TensorizedSampler((DomainSampler(box), UniformParametricSampler([])))
    options = {"layer_sizes": case.layers[1:-1], "activation_type": "tanh", "last_layer_has_bias": True}
    space = NNxSpace(1, 0, GenericMLP, box, sampler, **options)
    linears = [*space.network.hidden_layers, space.network.output_layer]
    with torch.no_grad():
        for linear, weight, bias in zip(linears, case.weights, case.biases, strict=True):
            linear.weight.copy_(torch.as_tensor(weight))
            linear.bias.copy_(torch.as_tensor(bias))
    pinn = Pinn(Equation(space, case), bc_type="weak", bc_weight=WEIGHT, **METHODS[run.method])
    boundary = labelled(case.boundary, requires_grad=True)
    interior = (labelled(case.interior, requires_grad=True), empty(len(case.interior)))
    pinn.run, pinn.points = run, (*interior, boundary, labelled(0 * case.boundary), empty(len(case.boundary)))
    run.record.ready()
    pinn.solve(epochs=10**6, silent=True)


if __name__ == "__main__":
    Run(__doc__, "scimba", tuple(METHODS), "torch").train(training)
