"""The covariate matrix F: one interface, and one class per way to store it in memory."""

from privasso.operators._block_covariates import BlockCovariates, square_root
from privasso.operators._block_rows import Whitening
from privasso.operators._covariates import Covariates
from privasso.operators._dense import ColumnMajor, RowMajor
from privasso.operators._enclosed import Enclosed, two_product, two_sum
from privasso.operators._genotypes import Genotypes, PackedColumns
from privasso.operators._operator import Block, Metered, Operator, as_operator, finite_squares
from privasso.operators._rough import Rough
from privasso.operators._sparse import Centred, Columns, Sparse

__all__ = [
    "Block",
    "BlockCovariates",
    "Centred",
    "ColumnMajor",
    "Columns",
    "Covariates",
    "Enclosed",
    "Genotypes",
    "Metered",
    "Operator",
    "PackedColumns",
    "Rough",
    "RowMajor",
    "Sparse",
    "Whitening",
    "as_operator",
    "finite_squares",
    "square_root",
    "two_product",
    "two_sum",
]
