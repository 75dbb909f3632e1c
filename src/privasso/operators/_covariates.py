"""The covariates as a release reads them: row block by row block, centred on request."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from privasso._blas import one_thread
from privasso._threads import n_threads, run
from privasso._validation import real_array
from privasso.noise import Covariance, Diagonal
from privasso.operators._centred import Centred
from privasso.operators._operator import Operator, as_operator, finite_squares

#: Entries of F in one block of rows: half a megabyte, which stays in cache.
_CHUNK = 1 << 16
#: The same for products of two matrices, which are faster on larger blocks.
_GRAM_CHUNK = 1 << 20
#: A centred column whose entries are this small relative to its mean holds nothing but rounding.
_CONSTANT = 1e-12
#: Squared norms below this have lost digits to underflow.
_SMALLEST_SQUARE = 1e-290
_EPS = np.finfo(np.float64).eps


class Covariates:
    """The rows f_μ of F, or f_μ − mean if centred, without a copy of F.

    Parameters
    ----------
    F : array_like or sparse matrix, shape (M, N)
        Covariates; dense ones are read in row blocks, sparse ones stay sparse.
    centre : bool
        Subtract the column means.

    Attributes
    ----------
    mean : ndarray of shape (N,)
        Column means, zero when not centred.
    squares : ndarray of shape (N,)
        Squared norms of the (centred) columns.
    live : ndarray of bool, shape (N,)
        Columns that carry data: not zero and, when centred, not constant.

    Examples
    --------
    >>> import numpy as np
    >>> Covariates(np.array([[1.0, 5.0], [3.0, 5.0]]), centre=True).live
    array([ True, False])
    """

    def __init__(self, F: Any, *, centre: bool) -> None:
        if sp.issparse(F):
            as_operator(F)  # refuses what is empty or not numeric
            self._F: Any = _canonical(F)
        else:
            self._F = real_array("F", F, ndim=2, dtype=None, finite=False)
        self.shape: tuple[int, int] = self._F.shape
        self.centred = centre
        self.mean = self._mean() if centre else np.zeros(self.shape[1])
        self.squares = finite_squares(self._squares())
        rounding = self.shape[0] * (_CONSTANT * self.mean) ** 2
        self.live = self.squares > rounding
        self._refuse_tiny_columns()

    def _refuse_tiny_columns(self) -> None:
        """Refuse columns with entries whose squares underflow: they would be taken for zero."""
        for column in np.flatnonzero(self.squares < _SMALLEST_SQUARE):
            entries = self._F[:, [column]]
            largest = float(np.max(np.abs(entries.data if self.sparse else entries), initial=0.0))
            if 0.0 < largest < np.sqrt(_SMALLEST_SQUARE):
                raise ValueError(
                    f"the entries of column {column} of F are at most {largest:.3g}, too small to "
                    "be squared; change its units"
                )

    @property
    def sparse(self) -> bool:
        """Whether F is stored sparse."""
        return bool(sp.issparse(self._F))

    @property
    def stored(self) -> Any:
        """The live columns of sparse F as they are stored, not centred, in CSR form."""
        return self._F if self.live.all() else sp.csr_array(self._F[:, self.live])

    @property
    def v(self) -> np.ndarray:
        """Squared scales (N/M)‖F_i‖² of the live columns."""
        m, n = self.shape
        return self.squares[self.live] * (n / m)

    def largest_row(self, covariance: Covariance) -> float:
        """max_μ f_μᵀΣ⁻¹f_μ, Σ over the live columns; infinite where Σ does not cover a row.

        Rounding is added on top, so that the result is never too small.
        """
        slack = 1.0 + (self.shape[1] + 16) * _EPS
        if sp.issparse(self._F) and isinstance(covariance, Diagonal):
            return self._largest_sparse_row(covariance.diagonal, slack)
        everything = bool(self.live.all())
        largest = 0.0
        for _, block in self.blocks():
            norms = covariance.row_norms(block if everything else block[:, self.live])
            largest = max(largest, float(np.max(norms)))
        return slack * largest * largest

    def _largest_sparse_row(self, variances: np.ndarray, slack: float) -> float:
        w = np.zeros(self.shape[1])
        with np.errstate(divide="ignore"):
            w[self.live] = 1.0 / variances
        if not np.isfinite(w).all():
            return np.inf
        indices = self._F.indices
        # A column stored in every row is never absent; its mean may be huge against its spread.
        full = np.bincount(indices, minlength=self.shape[1]) == self.shape[0]
        base = np.where(self.live & ~full, w * self.mean**2, 0.0)
        deviation = self._F.data - self.mean[indices]
        change = self._row_sums(w[indices] * deviation**2)
        replaced = self._row_sums(base[indices])
        total = float(base.sum())
        rows = change + (total - replaced)
        return float(np.max(rows) * slack + total * (slack - 1.0))

    def rmatvec(self, r: np.ndarray) -> np.ndarray:
        """Fᵀr, F centred if asked for; zero for columns that carry no data."""
        if sp.issparse(self._F):
            out = self._F.T @ r - self.mean * np.sum(r)
        else:
            out = np.zeros(self.shape[1])
            for rows, block in self.blocks():
                out += block.T @ r[rows]
        return np.where(self.live, out, 0.0)

    @cached_property
    def gram(self) -> np.ndarray:
        """FᵀF of the live columns, F centred if asked for."""
        if sp.issparse(self._F):
            return self.operator().gram()
        m = self.shape[0]
        everything = bool(self.live.all())
        parts = [np.zeros((int(self.live.sum()),) * 2) for _ in range(n_threads())]
        edges = [m * k // len(parts) for k in range(len(parts) + 1)]

        def add(total: np.ndarray, start: int, stop: int) -> None:
            for _, block in self.blocks(_GRAM_CHUNK, start, stop):
                block = block if everything else block[:, self.live]
                total += block.T @ block

        with one_thread():
            spans = zip(parts, pairwise(edges), strict=True)
            run([partial(add, total, lo, hi) for total, (lo, hi) in spans])
        return np.sum(parts, axis=0)

    def normal_products(self, x: np.ndarray) -> np.ndarray:
        """FᵀFX over the live columns, for X of shape (number of live columns, K)."""
        if sp.issparse(self._F):
            op = self.operator()
            return op.rmatmat(op.matmat(x))
        padded = np.zeros((self.shape[1], x.shape[1]))
        padded[self.live] = x
        out = np.zeros_like(padded)
        for _, block in self.blocks(_GRAM_CHUNK):
            out += block.T @ (block @ padded)
        return out[self.live]

    def operator(self) -> Operator:
        """The live columns as an operator for the solvers; a centred dense F is copied once."""
        everything = bool(self.live.all())
        if not self.centred:
            return as_operator(self._F if everything else self._F[:, self.live])
        if sp.issparse(self._F):
            F = self._F if everything else self._F[:, self.live]
            return Centred(F, self.mean[self.live], self.squares[self.live])
        dtype = self._F.dtype if self._F.dtype == np.float32 else np.float64
        F = np.empty((self.shape[0], int(self.live.sum())), dtype=dtype)
        for rows, block in self.blocks():
            F[rows] = block if everything else block[:, self.live]
        return as_operator(F)

    def blocks(
        self, entries: int = _CHUNK, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of that many entries from the rows start to stop, dense, float64, centred."""
        m, n = self.shape
        step, end = max(1, entries // n), m if stop is None else stop
        for first in range(start, end, step):
            rows = slice(first, min(first + step, end))
            part = self._F[rows]
            dense = part.toarray() if self.sparse else part
            block = dense.astype(np.float64, copy=False)
            yield rows, block - self.mean if self.centred else block

    def _mean(self) -> np.ndarray:
        m, n = self.shape
        if sp.issparse(self._F):
            return np.asarray(self._F.sum(axis=0)).ravel() / m
        # Relative to the first row, so that the mean of a constant column is exactly its value.
        first = self._F[0].astype(np.float64)
        total, step = np.zeros(n), max(1, _CHUNK // n)
        with np.errstate(invalid="ignore", over="ignore"):  # `finite_squares` refuses them
            for start in range(0, m, step):
                total += np.sum(self._F[start : start + step] - first, axis=0)
            return first + total / m

    def _squares(self) -> np.ndarray:
        m, n = self.shape
        with np.errstate(invalid="ignore", over="ignore"):
            if not sp.issparse(self._F):
                return np.sum([np.sum(b * b, axis=0) for _, b in self.blocks()], axis=0)
            indices = self._F.indices
            deviation = self._F.data - self.mean[indices]
            stored = np.bincount(indices, weights=deviation**2, minlength=n)
            absent = m - np.bincount(indices, minlength=n)
            return stored + absent * self.mean**2

    def _row_sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of the values of each row, given one value per stored entry of F."""
        matrix = sp.csr_array((values, self._F.indices, self._F.indptr), shape=self.shape)
        return matrix @ np.ones(self.shape[1])


def _canonical(F: Any) -> Any:
    """Sparse F in CSR with sorted columns, each once, without ever writing to the arrays of F.

    SciPy sorts and adds up entries in place, also in arrays that belong to the caller.
    """
    csr = sp.csr_array(F, dtype=np.float64)
    # A new object, because the answer is remembered in it, and F itself may be the other one.
    csr = sp.csr_array((csr.data, csr.indices, csr.indptr), shape=csr.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr
