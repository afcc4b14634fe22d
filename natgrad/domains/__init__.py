"""Domains, and quadrature points on them by Monte Carlo, Sobol and Gauss rules."""

from natgrad.domains.ball import Ball as Ball
from natgrad.domains.box import Box as Box
from natgrad.domains.combined import Combined as Combined
from natgrad.domains.domain import Domain as Domain
from natgrad.domains.mesh import Mesh as Mesh
from natgrad.domains.mesh import Surface as Surface
from natgrad.domains.moving import ByResidual as ByResidual
from natgrad.domains.parameters import Parameters as Parameters
from natgrad.domains.parameters import Parametric as Parametric
from natgrad.domains.points import Points as Points
from natgrad.domains.points import as_points as as_points
from natgrad.domains.polygon import Polygon as Polygon
from natgrad.domains.spacetime import Interval as Interval
from natgrad.domains.spacetime import SpaceTime as SpaceTime
