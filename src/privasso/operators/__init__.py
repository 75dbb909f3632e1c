"""Storages of the covariate matrix F: one interface, one class a memory layout."""

from privasso.operators._dense import ColumnMajor, RowMajor
from privasso.operators._operator import Block, Operator, as_operator
from privasso.operators._sparse import Sparse

__all__ = ["Block", "ColumnMajor", "Operator", "RowMajor", "Sparse", "as_operator"]
