"""The covariates as a release reads them: row block by row block, centred on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from privasso._blas import one_thread
from privasso._threads import n_threads, run
from privasso._types import MatrixLike, SparseMatrix
from privasso._validation import real_array
from privasso.blocks import RowBlocks
from privasso.noise import Covariance, Diagonal, Factored
from privasso.operators._block_rows import Whitening
from privasso.operators._operator import Operator, as_operator, finite_squares
from privasso.operators._sparse import Centred, SparseRows

#: Entries of F in one block of rows: half a megabyte, which stays in cache.
_CHUNK = 1 << 16
#: The same for products of two matrices, which are faster on larger blocks.
_GRAM_CHUNK = 1 << 20
#: A centred column whose entries are this small relative to its mean holds nothing but rounding.
_CONSTANT = 1e-12
#: Fewer rows than this part are summed by themselves; smaller weights would lose digits.
_MOST_CHANGED, _LOST = 0.6, 1e-3
#: Squared norms below this have lost digits to underflow.
_SMALLEST_SQUARE = 1e-290
_EPS = np.finfo(np.float64).eps


class Covariates:
    """The rows f_μ of F, or f_μ − mean if centred, without a copy of F.

    Dense covariates are read in row blocks, sparse ones stay sparse. With weights w_μ ≥ 0 of the
    rows, means, norms and products become weighted ones, such as FᵀDF with D = diag w; `blocks` and
    `squared_row_norms` give the rows themselves.

    `mean` are the column means, zero when not centred, `squares` the squared norms Σ_μ w_μ f_μi² of
    the (centred) columns, and `live` columns carry data: not zero and, when centred, not constant.
    """

    def __init__(self, F: MatrixLike, *, centre: bool, weights: ArrayLike | None = None) -> None:
        if sp.issparse(F):
            as_operator(F)  # refuses what is empty or not numeric
            self._F: SparseMatrix = _canonical(F)
        else:
            self._F = real_array("F", F, ndim=2, dtype=None, finite=False)
        self.shape: tuple[int, int] = self._F.shape
        self.centred = centre
        self.weights = None if weights is None else _row_weights(weights, self.shape[0])
        self.total = float(self.shape[0] if self.weights is None else self.weights.sum())
        self.mean = self._mean() if centre else np.zeros(self.shape[1])
        self.squares = finite_squares(self._squares())
        rounding = self.total * (_CONSTANT * self.mean) ** 2
        self.live = self.squares > rounding
        self._refuse_tiny_columns()

    def _refuse_tiny_columns(self) -> None:
        """Refuse columns with entries whose squares underflow: they would be taken for zero."""
        for column in np.flatnonzero(self.squares < _SMALLEST_SQUARE):
            entries = self._F[:, [column]]
            largest = float(np.max(np.abs(entries.data if self.sparse else entries), initial=0.0))
            if 0.0 < largest < np.sqrt(_SMALLEST_SQUARE):
                raise ValueError(
                    f"the entries of column {column} of F are too small to be squared; change its "
                    "units"
                )

    @property
    def sparse(self) -> bool:
        """Whether F is stored sparse."""
        return bool(sp.issparse(self._F))

    @property
    def stored(self) -> SparseMatrix:
        """The live columns of sparse F as they are stored, not centred, in CSR form."""
        return self._F if self.live.all() else sp.csr_array(self._F[:, self.live])

    @property
    def v(self) -> np.ndarray:
        """Squared scales (N/M)‖F_i‖² of the live columns."""
        return self.squares[self.live] * (self.shape[1] / self.total)

    def whitening(self, covariance: Covariance) -> Whitening:
        """How rows are whitened by noise over the live columns."""
        return Whitening.of(covariance, self.mean, self.live)

    def labelled(self, labels: np.ndarray | RowBlocks) -> RowBlocks:
        """Rows with labels, or with those of the table that they were taken from, as a table.

        Weights are a further column.
        """
        F, y = self._F, labels.labels if isinstance(labels, RowBlocks) else labels
        if self.weights is not None:
            stack = sp.hstack if self.sparse else np.hstack
            F = stack([F, self.weights[:, None]])
            F = sp.csr_array(F) if self.sparse else F
        return RowBlocks.of_arrays(F, y)

    def table(self) -> RowBlocks:
        """Rows whose labels do not matter, as a table."""
        return self.labelled(np.zeros(self.shape[0]))

    def squared_row_norms(self, covariance: Covariance) -> np.ndarray:
        """f_μᵀΣ⁻¹f_μ of all rows, Σ over the live columns; infinite where Σ does not cover a row.

        Rounding is added on top, so that no result is too small.
        """
        slack = 1.0 + (self.shape[1] + 16) * _EPS
        if not self.live.any():
            return np.zeros(self.shape[0])
        if sp.issparse(self._F) and isinstance(covariance, Diagonal):
            return self._sparse_row_norms(covariance.diagonal, slack)
        out = np.empty(self.shape[0])
        if self._pays and isinstance(covariance, Factored) and covariance.rank == covariance.size:

            def measure_sparse(start: int, stop: int) -> None:
                out[start:stop] = self._sparse_rows.squared_norms(covariance, start, stop)

            self._threaded(measure_sparse)
            return slack * out

        def measure(start: int, stop: int) -> None:
            for span, block in self._live_blocks(_GRAM_CHUNK, start, stop):
                out[span] = covariance.row_norms(block)

        self._threaded(measure)
        return slack * out * out

    def _sparse_row_norms(self, variances: np.ndarray, slack: float) -> np.ndarray:
        w = np.zeros(self.shape[1])
        with np.errstate(divide="ignore"):
            w[self.live] = 1.0 / variances
        if not np.isfinite(w).all():
            return np.full(self.shape[0], np.inf)
        indices = self._F.indices
        # A column stored in every row is never absent; its mean may be huge against its spread.
        full = np.bincount(indices, minlength=self.shape[1]) == self.shape[0]
        base = np.where(self.live & ~full, w * self.mean**2, 0.0)
        deviation = self._F.data - self.mean[indices]
        change = self._row_sums(w[indices] * deviation**2)
        replaced = self._row_sums(base[indices])
        total = float(base.sum())
        rows = change + (total - replaced)
        return rows * slack + total * (slack - 1.0)

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
        """FᵀDF of the live columns, F centred if asked for."""
        if sp.issparse(self._F):
            return self.operator().gram()
        return self.moments(self.weights)

    def moments(self, weights: np.ndarray | None, *, ones: bool = False) -> np.ndarray:
        """Σ_μ w_μ f_μf_μᵀ over the live columns, for given weights of the rows.

        With `ones` each row has a 1 as its last entry. The rows stay centred as they are. Sums with
        their own weights are kept, and those with the last weights that cannot be written to.
        """
        if weights is self.weights:
            found = self._own_moments
        elif weights is None or weights.flags.writeable:
            found = self._summed(weights)
        else:
            known = self.__dict__.get("_last_moments")
            if known is None or known[0] is not weights:
                known = self._last_moments = weights, self._summed(weights)
            found = known[1]
        found.setflags(write=False)  # the next caller gets the same numbers
        return found if ones else found[:-1, :-1]

    @cached_property
    def _own_moments(self) -> np.ndarray:
        return self._summed(self.weights)

    def _summed(self, weights: np.ndarray | None) -> np.ndarray:
        """`moments` with a 1 as last entry of each row."""
        if self._pays:
            return self._sparse_rows.moments(weights)
        if weights is not None and self.weights is None and np.all(weights >= _LOST):
            # Where few rows have other weights than 1, the others need not be summed again.
            change = 1.0 - weights
            if np.min(change) >= 0.0 and np.count_nonzero(change) < _MOST_CHANGED * change.size:
                return self._own_moments - self._products(change)
        return self._products(weights)

    def _products(self, weights: np.ndarray | None) -> np.ndarray:
        n = int(self.live.sum())
        parts: dict[int, np.ndarray] = {}

        def add(start: int, stop: int) -> None:
            total = np.zeros((n + 1, n + 1))
            for span, block in self._live_blocks(_GRAM_CHUNK, start, stop):
                w = np.ones(len(block)) if weights is None else weights[span]
                used = w != 0.0
                if np.mean(used) < _MOST_CHANGED:
                    w, block = w[used], block[used]
                total[-1, :-1] += w @ block
                total[-1, -1] += w.sum()
                block = block if weights is None else np.sqrt(w[:, None]) * block
                total[:-1, :-1] += block.T @ block
            total[:-1, -1] = total[-1, :-1]
            parts[start] = total

        self._threaded(add)
        # Always in the same order, whichever thread is the first to end.
        return np.sum([parts[start] for start in sorted(parts)], axis=0)

    @cached_property
    def _pays(self) -> bool:
        return self.sparse and SparseRows.pay(self._F)

    @cached_property
    def _sparse_rows(self) -> SparseRows:
        return SparseRows.of(self.stored, self.mean[self.live])

    def _threaded(self, work: Callable[[int, int], None]) -> None:
        """Run `work(start, stop)` on one span of rows per thread, each with serial BLAS."""
        count = max(min(n_threads(), self.shape[0]), 1)  # no span is empty, so that starts differ
        edges = [self.shape[0] * k // count for k in range(count + 1)]
        with one_thread():
            run([partial(work, start, stop) for start, stop in pairwise(edges)])

    def normal_products(self, x: np.ndarray) -> np.ndarray:
        """FᵀDFX over the live columns, for X of shape (number of live columns, K)."""
        if sp.issparse(self._F):
            op = self.operator()
            return op.rmatmat(op.matmat(x))
        padded = np.zeros((self.shape[1], x.shape[1]))
        padded[self.live] = x
        out = np.zeros_like(padded)
        for span, block in self.blocks(_GRAM_CHUNK):
            image = block @ padded
            out += block.T @ (image if self.weights is None else self.weights[span, None] * image)
        return out[self.live]

    def operator(self) -> Operator:
        """D^½F, live columns only, as an operator for the solvers.

        A dense F that is centred or weighted is copied once.
        """
        everything = bool(self.live.all())
        roots = None if self.weights is None else np.sqrt(self.weights)
        if sp.issparse(self._F):
            F = self._F if everything else self._F[:, self.live]
            F = F if roots is None else sp.csr_array(sp.diags_array(roots) @ F)
            if not self.centred:
                return as_operator(F)
            return Centred(F, self.mean[self.live], self.squares[self.live], roots)
        if not self.centred and roots is None:
            return as_operator(self._F if everything else self._F[:, self.live])
        dtype = self._F.dtype if self._F.dtype == np.float32 else np.float64
        F = np.empty((self.shape[0], int(self.live.sum())), dtype=dtype)
        for span, block in self._live_blocks():
            F[span] = block if roots is None else roots[span, None] * block
        return as_operator(F)

    def reweighted(self, weights: np.ndarray | None) -> Covariates:
        """Return the same rows with other weights, centred anew."""
        return Covariates(self._F, centre=self.centred, weights=weights)

    def sampled(self, index: np.ndarray) -> Covariates:
        """Return the rows of these indices, with the means and scales of all rows."""
        part = object.__new__(Covariates)
        part.__dict__.update(self.__dict__)
        for kept in ("gram", "_own_moments", "_last_moments", "_pays", "_sparse_rows"):
            part.__dict__.pop(kept, None)
        part._F, part.shape = self._F[index], (index.size, self.shape[1])
        part.weights = None if self.weights is None else self.weights[index]
        share = index.size / self.shape[0]
        part.squares, part.total = share * self.squares, share * self.total
        return part

    def selected(self, columns: np.ndarray) -> Covariates:
        """Return some of the columns, by their indices, with the same weights of the rows."""
        return Covariates(self._F[:, columns], centre=self.centred, weights=self.weights)

    def _live_blocks(
        self, entries: int = _CHUNK, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        everything = bool(self.live.all())
        for span, block in self.blocks(entries, start, stop):
            yield span, block if everything else block[:, self.live]

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
            # In one order whatever the storage, on which the last bits of products depend.
            block = np.ascontiguousarray(dense, dtype=np.float64)
            yield rows, block - self.mean if self.centred else block

    def _mean(self) -> np.ndarray:
        m, n = self.shape
        w = self.weights
        if sp.issparse(self._F):
            return (self._F.T @ (np.ones(m) if w is None else w)) / self.total
        # Relative to the first row, so that the mean of a constant column is exactly its value.
        first = self._F[0].astype(np.float64)
        total, step = np.zeros(n), max(1, _CHUNK // n)
        with np.errstate(invalid="ignore", over="ignore"):  # `finite_squares` refuses them
            for start in range(0, m, step):
                part = np.ascontiguousarray(self._F[start : start + step]) - first
                total += part.sum(axis=0) if w is None else w[start : start + step] @ part
            return first + total / self.total

    def _squares(self) -> np.ndarray:
        n, w = self.shape[1], self.weights
        with np.errstate(invalid="ignore", over="ignore"):
            if not sp.issparse(self._F):
                parts = [
                    np.sum(b * b, axis=0) if w is None else w[span] @ (b * b)
                    for span, b in self.blocks()
                ]
                return np.sum(parts, axis=0)
            indices = self._F.indices
            own = None if w is None else np.repeat(w, np.diff(self._F.indptr))
            deviation = (self._F.data - self.mean[indices]) ** 2
            deviation = deviation if own is None else own * deviation
            stored = np.bincount(indices, weights=deviation, minlength=n)
            absent = self.total - np.bincount(indices, weights=own, minlength=n)
            # Where no row with weight is absent, the difference is rounding.
            counts = np.bincount(indices, None if own is None else own > 0.0, minlength=n)
            some = counts < (self.shape[0] if w is None else np.count_nonzero(w))
            return stored + np.where(some, np.maximum(absent, 0.0), 0.0) * self.mean**2

    def _row_sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of the values of each row, given one value per stored entry of F."""
        matrix = sp.csr_array((values, self._F.indices, self._F.indptr), shape=self.shape)
        return matrix @ np.ones(self.shape[1])


def _row_weights(weights: ArrayLike, m: int) -> np.ndarray:
    w = real_array("weights", weights, shape=(m,))
    if np.min(w) < 0.0 or not np.max(w) > 0.0:
        raise ValueError("weights of rows must be zero or more, and not all zero")
    return w


def _canonical(F: SparseMatrix) -> SparseMatrix:
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
