"""Natural gradient descent: damping, search, direction, the meta-algorithm, and the named optimizers."""

from natgrad.optim.balance import Balanced as Balanced
from natgrad.optim.baselines import BFGS as BFGS
from natgrad.optim.baselines import LBFGS as LBFGS
from natgrad.optim.baselines import Adam as Adam
from natgrad.optim.baselines import SSBroyden as SSBroyden
from natgrad.optim.baselines import Wolfe as Wolfe
from natgrad.optim.fastest import NGD as NGD
from natgrad.optim.ngd import NaturalGradient as NaturalGradient
from natgrad.optim.ngd import State as State
from natgrad.optim.ngd import StepInfo as StepInfo
from natgrad.optim.polish import Polish as Polish
from natgrad.optim.recipes import FullNGD as FullNGD
from natgrad.optim.recipes import KernelNGD as KernelNGD
from natgrad.optim.recipes import MatrixFreeNGD as MatrixFreeNGD
from natgrad.optim.recipes import NystromNGD as NystromNGD
from natgrad.optim.recipes import RPCholNGD as RPCholNGD
from natgrad.optim.resample import Resampled as Resampled
from natgrad.optim.takeover import Polished as Polished
