"""Storages of the covariate matrix F: one interface, one class per memory layout."""

from privasso.operators._centred import Centred
from privasso.operators._covariates import Covariates
from privasso.operators._dense import ColumnMajor, RowMajor
from privasso.operators._operator import Block, Operator, as_operator
from privasso.operators._reduce import square_root
from privasso.operators._sparse import Sparse

__all__ = [
    "Block",
    "Centred",
    "ColumnMajor",
    "Covariates",
    "Operator",
    "RowMajor",
    "Sparse",
    "as_operator",
    "square_root",
]
