"""Sums of products of columns and labels in integers, in one pass over the table."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numba import njit

from privasso.operators import Genotypes

#: Entries and labels are integers of these sizes at most.
ENTRY, LABEL = 1 << 16, 1 << 20
#: Rows whose sums are exact in floating point, and columns whose sums stay in cache.
_ROWS, _COLUMNS = 1 << 15, 4096
#: The same for columns of small integers.
_SMALL_COLUMNS = 1024
#: The same for sparse rows: no difference of two entries is larger than 2^17.
_SPARSE_ROWS = 1 << 16
#: Entries of sparse columns that are made integers before they are summed.
_ENTRIES = 1 << 17
#: More rows would not fit 64 bits, and the places of more columns not 32.
_MOST_ROWS, _MOST_COLUMNS = 1 << 26, 1 << 32
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
        As above. Columns that are all alike may be described by one: then the shape is (1,).
    least, largest : ndarray of shape (N,)
        Integers, as floating-point numbers.
    """

    origin: np.ndarray = field(repr=False)
    unit: np.ndarray = field(repr=False)
    least: np.ndarray = field(repr=False)
    largest: np.ndarray = field(repr=False)

    @cached_property
    def factor(self) -> np.ndarray:
        """2^16/unit, or zero."""
        return _factor(self.unit)

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
        X : ndarray, sparse matrix or Genotypes of shape (M, N)
            In any order, of any floating-point type or of integers, memory-mapped or not; CSR or
            CSC. Sparse columns are not filled, even where zero does not become zero. Matrices of
            int8, such as genotypes, are read as they are, and so are genotypes in two bits.
        labels : ndarray of int64, shape (M,)
            ℓ, at most 2^20 in size.

        Examples
        --------
        >>> bounds = np.array([[0.0, 2.0], [-4.0, 4.0]])
        >>> columns = IntegerColumns.within(bounds, np.array([1.0, 0.0]), np.array([1.0, 4.0]))
        >>> columns.products(np.array([[2.0, 1.0], [0.5, -9.0]]), np.array([3, 5])).tolist()
        [32768, -278528]
        """
        if X.shape[1] >= _MOST_COLUMNS:
            raise ValueError(f"at most {_MOST_COLUMNS - 1} columns can be summed")
        if X.shape[0] >= _MOST_ROWS:
            raise ValueError(f"at most {_MOST_ROWS - 1} rows can be summed without rounding")
        if labels.size and int(np.max(np.abs(labels))) > LABEL:
            raise ValueError("labels must be at most 2^20 in size")
        ell = labels.astype(np.float64)
        if isinstance(X, Genotypes):
            return self._packed(X, ell)
        if sp.issparse(X):
            return self._sparse(X, ell)
        X, each = np.asanyarray(X), self._each(X.shape[1])
        found = each._small(X, ell) if X.dtype in (np.int8, np.bool_) else None
        return each._dense(X, ell) if found is None else found

    def _each(self, n: int) -> IntegerColumns:
        """The same with a description of each of N columns."""
        parts = (self.origin, self.unit, self.least, self.largest)
        if self.origin.size == n:
            return self
        return IntegerColumns(*(np.full(n, part[0]) for part in parts))

    def of_zero(self) -> np.ndarray:
        """The integer that zero becomes in each column."""
        return self._of(0.0).astype(np.float64)

    def _dense(self, X: np.ndarray, ell: np.ndarray) -> np.ndarray:
        m, n = X.shape
        total = np.zeros(n, dtype=np.int64)
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        for start in range(0, m, _ROWS):
            stop = min(start + _ROWS, m)
            block = np.asarray(X[start:stop])
            kernel = _by_columns if by_columns else _by_rows
            sums = np.zeros(n)
            kernel(block, ell[start:stop], self.origin, self.factor, self.least, self.largest, sums)
            total += _whole(sums)
        return total

    def _sparse(self, X: Any, ell: np.ndarray) -> np.ndarray:
        """Stored entries as far as they differ from zero, and what zeros would add."""
        if not X.has_canonical_format:
            # Two entries in one place would count twice.
            X = X.copy()
            X.sum_duplicates()
        stored = X if X.format in ("csr", "csc") else X.tocsr()
        parts = (stored.indptr, stored.indices, stored.data)
        longest, total_label = int(np.max(np.diff(stored.indptr), initial=0)), int(ell.sum())
        scaling = (self.origin, self.factor, self.least, self.largest, self.of_zero())
        total = np.empty(X.shape[1], dtype=np.int64)
        total[:] = scaling[-1].astype(np.int64) * total_label
        if stored.format == "csc":
            # Labels of 21 bits are exact in 32, and half as long to read.
            short = ell.astype(np.float32)
            o, f, s, t, z = (np.broadcast_to(part, total.size) for part in scaling)
            room = np.empty(max(_ENTRIES, min(longest, _ROWS)))
            if not _stored_columns(*parts, short, o, f, s, t, z, total, room):
                raise ValueError(_NOT_FINITE)
            return total
        alike = self.origin.size == 1
        room, sums = np.empty(max(_ENTRIES, longest) if alike else 0), np.zeros(total.size)
        columns = np.zeros((0 if alike else total.size, 8))
        if not alike:
            columns[:, :5] = np.column_stack(scaling)
        for start in range(0, X.shape[0], _SPARSE_ROWS):
            stop = min(start + _SPARSE_ROWS, X.shape[0])
            if alike:
                o, f, s, t, z = (float(part[0]) for part in scaling)
                _alike_rows(start, stop, *parts, ell, o, f, s, t, z, sums, room)
            else:
                _stored_rows(start, stop, *parts, ell, columns)
                sums, columns[:, 5] = columns[:, 5].copy(), 0.0
            if not _moved(sums, total):
                raise ValueError(_NOT_FINITE)
        return total

    def _packed(self, X: Genotypes, ell: np.ndarray) -> np.ndarray:
        """The sums of genotypes in two bits, from sums of labels over rows with the same genotype.

        An entry is one of four numbers, and so is k. Where k grows by the same step from each copy
        to the next, and missing genotypes are one copy, Σ copies·ℓ is enough.
        """
        check_public_fill(X)
        assert X.given_fill is not None
        alike = self.origin.size == 1 and np.ptp(X.given_fill) == 0.0
        fill = X.given_fill[:1] if alike else X.given_fill
        none, one, two, gone = (self._of(x) for x in (0.0, 1.0, 2.0, fill))
        total = int(ell.sum())
        if np.all(two - one == one - none) and np.all(gone == one):
            found = X.sums_of_copies(ell).astype(np.int64)
            found *= one - none
            found += none * total
            return found
        sums = X.sums_of_kinds(ell).astype(np.int64)
        return (
            none * total + (one - none) * sums[0] + (two - none) * sums[1] + (gone - none) * sums[2]
        )

    def _of(self, x: float | np.ndarray) -> np.ndarray:
        """The integer that a number becomes in each column."""
        k = np.clip((x - self.origin) * self.factor, self.least, self.largest)
        return np.rint(k).astype(np.int64)

    def _small(self, X: np.ndarray, ell: np.ndarray) -> np.ndarray | None:
        """The sums of small integers, of genotypes for instance; None where k is not a multiple.

        Where 2^16/unit and its product with the origin are integers, k = (2^16/unit)·(x − origin)
        needs no rounding, and the sums of x·ℓ are enough.
        """
        factor = self.factor
        offset = factor * self.origin
        whole = (np.rint(factor) == factor) & (np.rint(offset) == offset) & (factor > 0.0)
        if not whole.all():
            return None
        # The integers whose k is within the limits.
        low = np.ceil((self.least + offset) / factor)
        high = np.floor((self.largest + offset) / factor)
        exact = (low * factor - offset == self.least) & (high * factor - offset == self.largest)
        size = int(max(np.max(np.abs(low)), np.max(np.abs(high)), 1.0)) if exact.all() else 128
        if size > 127:
            return None
        ends = low.astype(np.int8), high.astype(np.int8)
        if X.dtype != np.int8:
            X = X.view(np.int8)
        total, weights = np.zeros(X.shape[1], dtype=np.int64), ell.astype(np.int32)
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        kernel = _small_columns if by_columns else _small_rows
        rows = (1 << 31) // (LABEL * (size + 1))
        for start in range(0, X.shape[0], rows):
            kernel(np.asarray(X[start : start + rows]), weights[start : start + rows], *ends, total)
        sums = int(ell.sum())
        return factor.astype(np.int64) * total - offset.astype(np.int64) * sums


def check_public_fill(X: Genotypes) -> None:
    """Refuse entries that depend on other records: scaled columns, and means for missing ones.

    >>> check_public_fill(Genotypes(np.zeros((1, 1), dtype=np.uint8), 3))
    Traceback (most recent call last):
    ...
    ValueError: means and deviations of genotypes would reveal something about the records; open \
the file with Genotypes.open(path, scaling='none', missing=1)
    """
    if X.given_fill is None:
        raise ValueError(
            "means and deviations of genotypes would reveal something about the records; open "
            "the file with Genotypes.open(path, scaling='none', missing=1)"
        )


def _whole(sums: np.ndarray) -> np.ndarray:
    """Sums of integers as integers; they are not finite where an entry was not."""
    if not np.isfinite(sums).all():
        raise ValueError(_NOT_FINITE)
    return sums.astype(np.int64)


def _factor(unit: np.ndarray) -> np.ndarray:
    return np.divide(float(ENTRY), unit, out=np.zeros(unit.size), where=unit > 0.0)


@njit(nogil=True, cache=True, inline="always")
def _integer(x, origin, factor, least, largest):  # pragma: no cover
    """What is not a number stays so, and is found in the sums."""
    k = (np.float64(x) - origin) * factor
    if k < least:
        k = least
    if k > largest:
        k = largest
    return (k + _ROUND) - _ROUND


@njit(nogil=True, cache=True)
def _by_rows(X, ell, origin, factor, least, largest, sums):  # pragma: no cover
    """Eight rows at a time, so that what belongs to a column is loaded once for them."""
    m, n = X.shape
    whole = m - m % 8
    for first in range(0, n, _COLUMNS):
        last = min(first + _COLUMNS, n)
        start, times, low = origin[first:last], factor[first:last], least[first:last]
        high, total = largest[first:last], sums[first:last]
        for i in range(0, whole, 8):
            x0, x1, x2 = X[i, first:last], X[i + 1, first:last], X[i + 2, first:last]
            x3, x4, x5 = X[i + 3, first:last], X[i + 4, first:last], X[i + 5, first:last]
            x6, x7 = X[i + 6, first:last], X[i + 7, first:last]
            w0, w1, w2, w3 = ell[i], ell[i + 1], ell[i + 2], ell[i + 3]
            w4, w5, w6, w7 = ell[i + 4], ell[i + 5], ell[i + 6], ell[i + 7]
            for j in range(last - first):
                o, f, s, t = start[j], times[j], low[j], high[j]
                a, b = _integer(x0[j], o, f, s, t), _integer(x1[j], o, f, s, t)
                c, d = _integer(x2[j], o, f, s, t), _integer(x3[j], o, f, s, t)
                first_half = (a * w0 + b * w1) + (c * w2 + d * w3)
                a, b = _integer(x4[j], o, f, s, t), _integer(x5[j], o, f, s, t)
                c, d = _integer(x6[j], o, f, s, t), _integer(x7[j], o, f, s, t)
                total[j] += first_half + ((a * w4 + b * w5) + (c * w6 + d * w7))
        for i in range(whole, m):
            x, weight = X[i, first:last], ell[i]
            for j in range(last - first):
                total[j] += _integer(x[j], start[j], times[j], low[j], high[j]) * weight


@njit(nogil=True, cache=True)
def _small_rows(X, ell, low, high, total):  # pragma: no cover
    """Add Σ clip(x)·ℓ of small integers; no sum of this block leaves 32 bits."""
    m, n = X.shape
    whole = m - m % 4
    sums = np.zeros(_SMALL_COLUMNS, dtype=np.int32)
    for first in range(0, n, _SMALL_COLUMNS):
        last = min(first + _SMALL_COLUMNS, n)
        least, largest = low[first:last], high[first:last]
        sums[:] = 0
        for i in range(0, whole, 4):
            x0, x1 = X[i, first:last], X[i + 1, first:last]
            x2, x3 = X[i + 2, first:last], X[i + 3, first:last]
            w0, w1, w2, w3 = ell[i], ell[i + 1], ell[i + 2], ell[i + 3]
            for j in range(last - first):
                s, t = least[j], largest[j]
                a = np.int32(min(max(x0[j], s), t)) * w0
                b = np.int32(min(max(x1[j], s), t)) * w1
                c = np.int32(min(max(x2[j], s), t)) * w2
                d = np.int32(min(max(x3[j], s), t)) * w3
                sums[j] = np.int32(sums[j] + np.int32(a + b) + np.int32(c + d))
        for i in range(whole, m):
            x, weight = X[i, first:last], ell[i]
            for j in range(last - first):
                x_ = np.int32(min(max(x[j], least[j]), largest[j]))
                sums[j] = np.int32(sums[j] + x_ * weight)
        for j in range(last - first):
            total[first + j] += sums[j]


@njit(nogil=True, cache=True)
def _small_columns(X, ell, low, high, total):  # pragma: no cover
    """The same by columns."""
    m, n = X.shape
    for j in range(n):
        x, s, t = X[:, j], low[j], high[j]
        found = np.int32(0)
        for i in range(m):
            found = np.int32(found + np.int32(min(max(x[i], s), t)) * ell[i])
        total[j] += found


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
def _moved(sums, total):  # pragma: no cover
    """Move sums of integers to totals; False if one is not finite."""
    for j in range(sums.size):
        if not np.isfinite(sums[j]):
            return False
        total[j] += np.int64(sums[j])
        sums[j] = 0.0
    return True


@njit(nogil=True, cache=True)
def _stored_rows(start, stop, indptr, indices, data, ell, columns):  # pragma: no cover
    """All that belongs to a column lies in one row of `columns`, and its sum too."""
    for i in range(start, stop):
        weight = ell[i]
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            k = (np.float64(data[p]) - columns[j, 0]) * columns[j, 1]
            k = columns[j, 2] if k < columns[j, 2] else k
            k = columns[j, 3] if k > columns[j, 3] else k
            columns[j, 5] += (((k + _ROUND) - _ROUND) - columns[j, 4]) * weight


@njit(nogil=True, cache=True)
def _alike_rows(
    start, stop, indptr, indices, data, ell, origin, factor, least, largest, zero, sums, room
):  # pragma: no cover
    """The same where all columns have the same bounds.

    The products of many rows are put into `room` first, which the processor does for several
    entries at once, and then added to the sums of their columns.
    """
    first = start
    while first < stop:
        last = _filled(indptr, first, stop, room.size)
        begin = indptr[first]
        for i in range(first, last):
            p, q = indptr[i], indptr[i + 1]
            part = room[p - begin : q - begin]
            _times(ell[i], data[p:q], origin, factor, least, largest, zero, part)
        _scatter(room, indices[begin : indptr[last]], sums)
        first = last


@njit(nogil=True, cache=True)
def _stored_columns(
    indptr, indices, data, ell, origin, factor, least, largest, zero, total, room
):  # pragma: no cover
    """The same by columns; False if an entry is not finite.

    Labels are put into `room` first. No sum is of more entries than a floating-point number bears.
    """
    n, first = indptr.size - 1, 0
    while first < n:
        last = _filled(indptr, first, n, room.size)
        begin, end = indptr[first], indptr[last]
        held = end - begin <= room.size
        if held:
            _gather(ell, indices[begin:end], room)
        for j in range(first, last):
            for p in range(indptr[j], indptr[j + 1], _ROWS):
                q = min(p + _ROWS, indptr[j + 1])
                labels = room[p - begin : q - begin]
                if not held:
                    labels = room[: q - p]
                    _gather(ell, indices[p:q], labels)
                o, f, s, t, z = origin[j], factor[j], least[j], largest[j], zero[j]
                _multiply(labels, data[p:q], o, f, s, t, z)
                found = _sum(labels)
                if not np.isfinite(found):
                    return False
                total[j] += np.int64(found)
        first = last
    return True


@njit(nogil=True, cache=True)
def _filled(indptr, first, stop, size):  # pragma: no cover
    """The end of the rows or columns from the first on that have so many entries; one at least."""
    last = first + 1
    while last < stop and indptr[last + 1] - indptr[first] <= size:
        last += 1
    return last


@njit(nogil=True, cache=True)
def _gather(ell, places, found):  # pragma: no cover
    for p in range(places.size):
        found[p] = ell[np.uint64(np.uint32(places[p]))]


@njit(nogil=True, cache=True)
def _scatter(products, places, sums):  # pragma: no cover
    for p in range(places.size):
        sums[np.uint64(np.uint32(places[p]))] += products[p]


@njit(nogil=True, cache=True)
def _times(label, x, origin, factor, least, largest, zero, found):  # pragma: no cover
    """The integers of entries less that of zero, times one label."""
    base = _ROUND + zero
    for i in range(x.size):
        k = (np.float64(x[i]) - origin) * factor
        k = least if k < least else k
        k = largest if k > largest else k
        found[i] = ((k + _ROUND) - base) * label


@njit(nogil=True, cache=True)
def _multiply(labels, x, origin, factor, least, largest, zero):  # pragma: no cover
    """Multiply labels by the integers of entries less that of zero."""
    base = _ROUND + zero
    for i in range(x.size):
        k = (np.float64(x[i]) - origin) * factor
        k = least if k < least else k
        k = largest if k > largest else k
        labels[i] *= (k + _ROUND) - base
