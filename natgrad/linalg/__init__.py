"""Matrices, and nothing of PDEs or networks: functions take products, columns and diagonals as arguments."""

from natgrad.linalg.cholesky import orthonormalize as orthonormalize
from natgrad.linalg.cholesky import safe_cholesky as safe_cholesky
from natgrad.linalg.nystrom import LowRank as LowRank
from natgrad.linalg.nystrom import from_factor as from_factor
from natgrad.linalg.nystrom import nystrom as nystrom
from natgrad.linalg.nystrom import nystrom_from_columns as nystrom_from_columns
from natgrad.linalg.pcg import PCGResult as PCGResult
from natgrad.linalg.pcg import pcg as pcg
from natgrad.linalg.power import power_method as power_method
from natgrad.linalg.preconditioner import LowRankPreconditioner as LowRankPreconditioner
from natgrad.linalg.preconditioner import WoodburyPreconditioner as WoodburyPreconditioner
from natgrad.linalg.preconditioner import nystrom_preconditioner as nystrom_preconditioner
from natgrad.linalg.preconditioner import rpcholesky_preconditioner as rpcholesky_preconditioner
from natgrad.linalg.products import cross as cross
from natgrad.linalg.products import gram as gram
from natgrad.linalg.products import gram_diagonal as gram_diagonal
from natgrad.linalg.products import matmul as matmul
from natgrad.linalg.products import row_gram as row_gram
from natgrad.linalg.rpcholesky import RPCholesky as RPCholesky
from natgrad.linalg.rpcholesky import rpcholesky as rpcholesky
from natgrad.linalg.sketch import gaussian as gaussian
from natgrad.linalg.sketch import sample_diagonal as sample_diagonal
from natgrad.linalg.sketch import sample_uniform as sample_uniform
