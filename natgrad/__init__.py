"""natgrad: natural gradient descent for neural networks that solve PDEs.

Everything a user may touch is listed here; the rest is private.
"""

from natgrad import fem as fem
from natgrad import linalg as linalg
from natgrad.backend.parallel import devices as devices
from natgrad.backend.parallel import shard as shard
from natgrad.backend.programs import clear_cache as clear_cache
from natgrad.calculus import divergence as divergence
from natgrad.calculus import gradient as gradient
from natgrad.calculus import hessian as hessian
from natgrad.calculus import laplacian as laplacian
from natgrad.calculus import partial as partial
from natgrad.calculus import value_gradient_laplacian as value_gradient_laplacian
from natgrad.domains import Ball as Ball
from natgrad.domains import Box as Box
from natgrad.domains import Interval as Interval
from natgrad.domains import Points as Points
from natgrad.domains import Polygon as Polygon
from natgrad.domains import SpaceTime as SpaceTime
from natgrad.gramian import Gramian as Gramian
from natgrad.gramian import gramian as gramian
from natgrad.networks import MLP as MLP
from natgrad.networks import Apply as Apply
from natgrad.networks import Fields as Fields
from natgrad.networks import FourierFeatures as FourierFeatures
from natgrad.networks import HardBoundary as HardBoundary
from natgrad.networks import Normalized as Normalized
from natgrad.networks import Periodic as Periodic
from natgrad.networks import num_parameters as num_parameters
from natgrad.optim import BFGS as BFGS
from natgrad.optim import LBFGS as LBFGS
from natgrad.optim import NGD as NGD
from natgrad.optim import Adam as Adam
from natgrad.optim import Balanced as Balanced
from natgrad.optim import FullNGD as FullNGD
from natgrad.optim import KernelNGD as KernelNGD
from natgrad.optim import MatrixFreeNGD as MatrixFreeNGD
from natgrad.optim import NaturalGradient as NaturalGradient
from natgrad.optim import NystromNGD as NystromNGD
from natgrad.optim import RPCholNGD as RPCholNGD
from natgrad.optim import SSBroyden as SSBroyden
from natgrad.optim import Wolfe as Wolfe
from natgrad.optim import damping as damping
from natgrad.optim.damping import Damping as Damping
from natgrad.optim.direction import PCG as PCG
from natgrad.optim.direction import Direct as Direct
from natgrad.optim.direction import Direction as Direction
from natgrad.optim.kernel import Kernel as Kernel
from natgrad.optim.linesearch import Armijo as Armijo
from natgrad.optim.linesearch import GridSearch as GridSearch
from natgrad.optim.linesearch import LineSearch as LineSearch
from natgrad.optim.ngd import State as State
from natgrad.optim.ngd import StepInfo as StepInfo
from natgrad.plan import plan as plan
from natgrad.precondition import Identity as Identity
from natgrad.precondition import Nystrom as Nystrom
from natgrad.precondition import PivotedRowFactor as PivotedRowFactor
from natgrad.precondition import Preconditioner as Preconditioner
from natgrad.precondition import RowFactor as RowFactor
from natgrad.precondition import RPCholesky as RPCholesky
from natgrad.problem import Energy as Energy
from natgrad.problem import EnergyMinimization as EnergyMinimization
from natgrad.problem import FEINNEnergy as FEINNEnergy
from natgrad.problem import FEINNLeastSquares as FEINNLeastSquares
from natgrad.problem import LeastSquares as LeastSquares
from natgrad.problem import Metric as Metric
from natgrad.problem import Problem as Problem
from natgrad.problem import Residual as Residual
from natgrad.problem import ResidualFunction as ResidualFunction
from natgrad.problem import metrics as metrics
from natgrad.solve import History as History
from natgrad.solve import Solution as Solution
from natgrad.solve import solve as solve

__version__ = "0.1.0"
