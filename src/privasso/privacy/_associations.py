"""Sums of products of columns and labels in integers, in one pass over the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

#: Entries and labels are integers of these sizes at most.
ENTRY, LABEL = 1 << 16, 1 << 20
#: Rows whose sums are exact in floating point, and columns whose sums stay in cache.
_ROWS, _COLUMNS = 1 << 15, 1024
#: More rows would not fit 64 bits.
_MOST_ROWS = 1 << 26
#: Adding and subtracting it rounds a small number to an integer.
_ROUND = 1.5 * 2.0**52
_NOT_FINITE = "X must be finite; fill or drop missing values before the fit"


@dataclass(frozen=True, eq=False)
class IntegerColumns:
    """How the entries of columns become integers, each by itself.

    An entry x becomes the integer nearest to 2^16·(x − origin)/unit, cut to [least, largest], which
    lies within ±2^16. A column whose unit is zero becomes zeros.

    Attributes
    ----------
    origin, unit : ndarray of shape (N,)
        As above.
    least, largest : ndarray of shape (N,)
        Integers, as floating-point numbers.
    """

    origin: np.ndarray = field(repr=False)
    unit: np.ndarray = field(repr=False)
    least: np.ndarray = field(repr=False)
    largest: np.ndarray = field(repr=False)

    @classmethod
    def within(cls, bounds: np.ndarray, origin: np.ndarray, unit: np.ndarray) -> IntegerColumns:
        """Columns whose values are cut to bounds that lie within one unit of the origin."""
        factor = _factor(unit)
        least, largest = (
            np.clip(np.rint((end - origin) * factor), -ENTRY, ENTRY)
            for end in (bounds[:, 0], bounds[:, 1])
        )
        return cls(origin, unit, least, largest)

    def products(self, X: Any, labels: np.ndarray) -> np.ndarray:
        """Σ_μ k_μi ℓ_μ for each column, exactly, of type int64.

        A record adds its own integers times its own label and changes nothing else, so the sums of
        two tables that differ in one record differ by at most 2^16·|ℓ| in each column.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (M, N)
            In any order, of any floating-point type, memory-mapped or not; CSR or CSC. Sparse
            columns are not filled, even where zero does not become zero.
        labels : ndarray of int64, shape (M,)
            ℓ, at most 2^20 in size.

        Examples
        --------
        >>> bounds = np.array([[0.0, 2.0], [-4.0, 4.0]])
        >>> columns = IntegerColumns.within(bounds, np.array([1.0, 0.0]), np.array([1.0, 4.0]))
        >>> columns.products(np.array([[2.0, 1.0], [0.5, -9.0]]), np.array([3, 5])).tolist()
        [32768, -278528]
        """
        if X.shape[0] >= _MOST_ROWS:
            raise ValueError(f"at most {_MOST_ROWS - 1} rows can be summed without rounding")
        if labels.size and int(np.max(np.abs(labels))) > LABEL:
            raise ValueError("labels must be at most 2^20 in size")
        ell = labels.astype(np.float64)
        if sp.issparse(X):
            return self._sparse(X, ell)
        return self._dense(np.asanyarray(X), ell)

    def of_zero(self) -> np.ndarray:
        """The integer that zero becomes in each column."""
        exact = np.rint((0.0 - self.origin) * _factor(self.unit))
        return np.clip(exact, self.least, self.largest)

    def _dense(self, X: np.ndarray, ell: np.ndarray) -> np.ndarray:
        m, n = X.shape
        total = np.zeros(n, dtype=np.int64)
        factor = _factor(self.unit)
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        for start in range(0, m, _ROWS):
            stop = min(start + _ROWS, m)
            block = np.asarray(X[start:stop])
            kernel = _by_columns if by_columns else _by_rows
            sums = np.zeros(n)
            kernel(block, ell[start:stop], self.origin, factor, self.least, self.largest, sums)
            total += _whole(sums)
        return total

    def _sparse(self, X: Any, ell: np.ndarray) -> np.ndarray:
        """Stored entries as far as they differ from zero, and what zeros would add."""
        if not X.has_canonical_format:
            # Two entries in one place would count twice.
            X = X.copy()
            X.sum_duplicates()
        n = X.shape[1]
        zero = self.of_zero()
        factor = _factor(self.unit)
        total = zero.astype(np.int64) * np.int64(ell.sum())
        stored = X if X.format in ("csr", "csc") else X.tocsr()
        parts = (stored.indptr, stored.indices, stored.data, ell)
        scaling = (self.origin, factor, self.least, self.largest, zero)
        by_rows = stored.format == "csr"
        # Blocks of rows, or of the stored entries of each column.
        largest = X.shape[0] if by_rows else int(np.max(np.diff(stored.indptr), initial=0))
        for start in range(0, largest, _ROWS):
            sums = np.zeros(n)
            if by_rows:
                _stored_rows(start, min(start + _ROWS, largest), *parts, *scaling, sums)
            else:
                _stored_columns(stored.indptr[:-1] + start, *parts, *scaling, sums)
            total += _whole(sums)
        return total


def _whole(sums: np.ndarray) -> np.ndarray:
    """Sums of integers as integers; they are not finite where an entry was not."""
    if not np.isfinite(sums).all():
        raise ValueError(_NOT_FINITE)
    return sums.astype(np.int64)


def _factor(unit: np.ndarray) -> np.ndarray:
    return np.where(unit > 0.0, ENTRY / np.where(unit > 0.0, unit, 1.0), 0.0)


@njit(nogil=True, cache=True)
def _by_rows(X, ell, origin, factor, least, largest, sums):  # pragma: no cover
    m, n = X.shape
    for first in range(0, n, _COLUMNS):
        last = min(first + _COLUMNS, n)
        start, times, low = origin[first:last], factor[first:last], least[first:last]
        high, total = largest[first:last], sums[first:last]
        for i in range(m):
            x, weight = X[i, first:last], ell[i]
            for j in range(last - first):
                k = (np.float64(x[j]) - start[j]) * times[j]
                # What is not a number stays so, and is found in the sums.
                if k < low[j]:
                    k = low[j]
                if k > high[j]:
                    k = high[j]
                total[j] += ((k + _ROUND) - _ROUND) * weight


@njit(nogil=True, cache=True)
def _by_columns(X, ell, origin, factor, least, largest, sums):  # pragma: no cover
    m, n = X.shape
    products = np.empty(m)
    for j in range(n):
        x = X[:, j]
        start, times, low, high = origin[j], factor[j], least[j], largest[j]
        for i in range(m):
            k = (np.float64(x[i]) - start) * times
            if k < low:
                k = low
            if k > high:
                k = high
            products[i] = ((k + _ROUND) - _ROUND) * ell[i]
        sums[j] = _sum(products)


@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _sum(x):  # pragma: no cover
    """A sum in any order, which makes no difference for integers."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@njit(nogil=True, cache=True)
def _integer(x, origin, factor, least, largest):  # pragma: no cover
    k = (np.float64(x) - origin) * factor
    if k < least:
        k = least
    if k > largest:
        k = largest
    return (k + _ROUND) - _ROUND


@njit(nogil=True, cache=True)
def _stored_rows(
    start, stop, indptr, indices, data, ell, origin, factor, least, largest, zero, sums
):  # pragma: no cover
    for i in range(start, stop):
        weight = ell[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            k = _integer(data[p], origin[j], factor[j], least[j], largest[j])
            sums[j] += (k - zero[j]) * weight


@njit(nogil=True, cache=True)
def _stored_columns(
    first, indptr, indices, data, ell, origin, factor, least, largest, zero, sums
):  # pragma: no cover
    """The same by columns, whose stored entries may be more than the sums of one block bear."""
    for j in range(indptr.size - 1):
        for p in range(max(indptr[j], first[j]), indptr[j + 1]):
            if p - first[j] >= _ROWS:
                break
            k = _integer(data[p], origin[j], factor[j], least[j], largest[j])
            sums[j] += (k - zero[j]) * ell[indices[p]]
