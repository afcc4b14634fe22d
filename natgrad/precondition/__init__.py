"""Builders of preconditioners for G + μI."""

from natgrad.precondition.base import Approximation as Approximation
from natgrad.precondition.base import Preconditioner as Preconditioner
from natgrad.precondition.identity import Identity as Identity
from natgrad.precondition.nystrom import Nystrom as Nystrom
from natgrad.precondition.pivoted import PivotedRowFactor as PivotedRowFactor
from natgrad.precondition.row_factor import RowFactor as RowFactor
from natgrad.precondition.rpcholesky import RPCholesky as RPCholesky
