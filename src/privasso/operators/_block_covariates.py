"""Covariates in blocks of rows, known by exact sums over them (see `_block_rows`)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privasso._blas import one_thread, threads_for
from privasso.blocks import RowBlocks
from privasso.noise import Covariance, Factored
from privasso.operators._block_rows import (
    BITS,
    EMPTY,
    HALF,
    IntegerMoments,
    LargestEntries,
    LargestRow,
    number_of,
)
from privasso.operators._covariates import Covariates
from privasso.operators._operator import Operator, as_operator

#: Most rows for which all sums are exact.
_MOST_TOTAL = 1 << 30
_IN_MEMORY = "this needs the table in memory; pass an array instead of blocks of rows"


class BlockCovariates(Covariates):
    """Public covariates in blocks of rows: means, norms and the Gram matrix by exact sums.

    It takes two passes. Whatever is solved from a release uses the Gram matrix alone.

    `table`: blocks of rows or an array; where it has labels, they are not read here.
    """

    #: Most columns for which all sums are exact.
    MOST_COLUMNS = 2048

    def __init__(self, table: RowBlocks | np.ndarray, *, centre: bool) -> None:
        m, n = table.shape
        if n > self.MOST_COLUMNS or m > _MOST_TOTAL:
            raise ValueError(
                f"labels of blocks of rows are released for at most {self.MOST_COLUMNS} columns "
                f"and {_MOST_TOTAL} rows; choose some columns"
            )
        self.shape, self.centred = (m, n), centre
        self._F = table
        in_blocks = isinstance(table, RowBlocks)
        self._blocks = blocks = table if in_blocks else RowBlocks.of_arrays(table, np.zeros(m))
        self.weights, self.total = None, float(m)
        first = blocks.sum(LargestEntries(), None)
        top = first["largest exponent"]
        exponents = np.where(top == EMPTY, 0, top - BITS).astype(np.int32)
        sums = blocks.sum(IntegerMoments(exponents), None)
        total = sums["sum"].astype(object)
        middle = np.array([_nearest(int(s), m) if centre else 0 for s in total], dtype=object)
        high, mixed, low = (part.astype(object) for part in sums["products"])
        exact = (high << (2 * HALF)) + ((mixed + mixed.T) << HALF) + low
        exact = exact - np.outer(middle, total) - np.outer(total, middle)
        exact = exact + m * np.outer(middle, middle)
        step = np.ldexp(1.0, exponents)
        self.mean = middle.astype(np.float64) * step
        self.column_sums = (total - m * middle).astype(np.float64) * step
        gram = exact.astype(np.float64) * np.outer(step, step)
        self.squares = np.diagonal(gram).copy()
        self.live = np.array([bool(exact[j, j] > 0) for j in range(n)])
        if not self.live.any():
            raise ValueError("every column has one value only, from which nothing can be learnt")
        self.gram = gram[np.ix_(self.live, self.live)]

    @property
    def sparse(self) -> bool:
        return False

    def labelled(self, labels: np.ndarray | RowBlocks) -> RowBlocks:
        """The blocks themselves where these have the labels."""
        if isinstance(labels, RowBlocks):
            return labels
        return RowBlocks.of_arrays(self._F, labels)

    def table(self) -> RowBlocks:
        """The blocks themselves."""
        return self._blocks

    def squared_row_norms(self, covariance: Covariance) -> np.ndarray:
        """The largest f_μᵀΣ⁻¹f_μ, rounded up, as the only entry: a pass over the rows."""
        slack = 1.0 + (self.shape[1] + 16) * np.finfo(np.float64).eps
        found = self._blocks.sum(LargestRow(self.whitening(covariance)), None)
        return np.array([slack * number_of(found["largest square"])])

    def best_for_equal_weights(self) -> Factored:
        """Σ ∝ A^½ with the second moments A of standardised columns.

        It has the least trace among all noise with the same mean squared size of a row.
        """
        scale = np.sqrt(self.squares[self.live])
        with one_thread():
            d, Q = np.linalg.eigh(self.gram / np.outer(scale, scale))
        # Directions in which columns are dependent get as much noise as small ones.
        d = np.maximum(d, 1e-6 * d[-1])
        return Factored(scale[:, None] * (Q * d**0.25))

    def moments(self, weights: np.ndarray | None, *, ones: bool = False) -> np.ndarray:
        if weights is not None:
            raise ValueError(_IN_MEMORY)
        if not ones:
            return self.gram
        n = len(self.gram)
        found = np.zeros((n + 1, n + 1))
        found[:n, :n] = self.gram
        found[n, :n] = found[:n, n] = self.column_sums[self.live]
        found[n, n] = self.shape[0]
        return found

    def normal_products(self, x: np.ndarray) -> np.ndarray:
        return self.gram @ x

    def rmatvec(self, r: np.ndarray) -> np.ndarray:
        """Fᵀr for a vector r of equal entries, which is all that sums over the rows tell."""
        if r.size and np.ptp(r) > 0.0:
            raise ValueError(_IN_MEMORY)
        return np.where(self.live, (r[0] if r.size else 0.0) * self.column_sums, 0.0)

    def operator(self) -> Operator:
        """A square matrix with the same Gram matrix."""
        with one_thread():
            d, Q = np.linalg.eigh(self.gram)
        return as_operator(np.sqrt(np.maximum(d, 0.0))[:, None] * Q.T)

    def reweighted(self, weights: np.ndarray | None) -> Covariates:
        if weights is not None:
            raise ValueError(_IN_MEMORY)
        return self

    def sampled(self, index: np.ndarray) -> Covariates:
        raise ValueError(_IN_MEMORY)

    def selected(self, columns: np.ndarray) -> Covariates:
        raise ValueError(_IN_MEMORY)

    def blocks(
        self, entries: int = 0, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        raise ValueError(_IN_MEMORY)


def _nearest(total: int, count: int) -> int:
    """The integer nearest to total/count."""
    return (2 * total + count) // (2 * count)


#: Rows per column from which on the Gram matrix is the shorter road.
_TALL = 4
#: The Gram matrix costs their square for each row: beyond this many, passes over F are cheaper.
_MOST_COLUMNS = 1024
#: Smallest pivot of the correlation matrix: the rounding of its factor, about 1e-13, must stay
#: far below the accuracy of the solvers even after division by this number.
_SMALLEST_PIVOT = 1e-4


def square_root(rows: Covariates) -> np.ndarray | None:
    """R of shape (N, N) with RᵀR = FᵀF over the live columns, or None where F is the better road.

    The LASSO sees F only through FᵀF and b, so that (R, b, λ) has the same minimiser as
    (F, b, λ). It also has full column rank, and with it a minimiser at every λ. None where F is
    sparse, has few rows for its columns, or columns that are nearly collinear, for which the
    Gram matrix has lost too many digits.
    """
    n = int(rows.live.sum())
    if rows.sparse or n == 0 or n > _MOST_COLUMNS or rows.shape[0] < _TALL * n:
        return None
    norms = np.sqrt(np.diag(rows.gram))
    try:
        with threads_for(n**3 / 3):
            lower = np.linalg.cholesky(rows.gram / norms / norms[:, None])
    except np.linalg.LinAlgError:
        return None
    if np.min(np.diag(lower)) < _SMALLEST_PIVOT:
        return None
    return np.ascontiguousarray(lower.T * norms)
