"""Problems: an energy over a network, the features of its metric, and the errors of its solution."""

from natgrad.problem.base import Features as Features
from natgrad.problem.base import Problem as Problem
from natgrad.problem.coupling import Coupling as Coupling
from natgrad.problem.energy import Energy as Energy
from natgrad.problem.energy import EnergyMinimization as EnergyMinimization
from natgrad.problem.errors import ErrorNorms as ErrorNorms
from natgrad.problem.evolution import Evolution as Evolution
from natgrad.problem.feinn import FEINN as FEINN
from natgrad.problem.feinn import FEINNEnergy as FEINNEnergy
from natgrad.problem.feinn import FEINNLeastSquares as FEINNLeastSquares
from natgrad.problem.function import ResidualFunction as ResidualFunction
from natgrad.problem.least_squares import LeastSquares as LeastSquares
from natgrad.problem.least_squares import Residual as Residual
from natgrad.problem.metrics import Metric as Metric
from natgrad.problem.window import Window as Window
from natgrad.problem.window import Windows as Windows
