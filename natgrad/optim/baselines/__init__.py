"""The optimizers natural gradient descent is compared with, behind its interface: Adam, L-BFGS, BFGS, SSBroyden."""

from natgrad.optim.baselines.adam import Adam as Adam
from natgrad.optim.baselines.bfgs import BFGS as BFGS
from natgrad.optim.baselines.lbfgs import LBFGS as LBFGS
from natgrad.optim.baselines.ssbroyden import SSBroyden as SSBroyden
from natgrad.optim.baselines.wolfe import Wolfe as Wolfe
