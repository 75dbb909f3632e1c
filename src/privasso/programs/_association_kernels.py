"""Compiled passes over a table that make integers of its entries and multiply them by labels.

Each entry becomes an integer by itself, in floating point. Products are summed in floating point
where no sum can leave the integers below 2^53, so that the order makes no difference.
"""

from __future__ import annotations

import numpy as np
from numba import njit

#: Rows whose sums are exact in floating point: entries are at most 2^17 and labels 2^20.
MOST_ROWS = 1 << 15
#: Columns whose sums stay in cache.
_COLUMNS = 4096
#: Adding and subtracting it rounds a small number to an integer.
_ROUND = 1.5 * 2.0**52


@njit(nogil=True, cache=True)
def rounded(x, origin, factor, least, largest):  # pragma: no cover
    """The integer of an entry: of a missing one the middle, and zero in a column without a unit."""
    k = (np.float64(x) - origin) * factor
    k = k if k == k else 0.5 * (least + largest)
    k = least if k < least else k
    k = largest if k > largest else k
    k = k if factor > 0.0 else 0.0
    return (k + _ROUND) - _ROUND


@njit(nogil=True, cache=True)
def by_rows(X, ell, origin, factor, least, largest, sums):  # pragma: no cover
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
                a, b = rounded(x0[j], o, f, s, t), rounded(x1[j], o, f, s, t)
                c, d = rounded(x2[j], o, f, s, t), rounded(x3[j], o, f, s, t)
                first_half = (a * w0 + b * w1) + (c * w2 + d * w3)
                a, b = rounded(x4[j], o, f, s, t), rounded(x5[j], o, f, s, t)
                c, d = rounded(x6[j], o, f, s, t), rounded(x7[j], o, f, s, t)
                total[j] += first_half + ((a * w4 + b * w5) + (c * w6 + d * w7))
        for i in range(whole, m):
            x, weight = X[i, first:last], ell[i]
            for j in range(last - first):
                total[j] += rounded(x[j], start[j], times[j], low[j], high[j]) * weight


@njit(nogil=True, cache=True)
def small_rows(X, ell, low, high, total):  # pragma: no cover
    """Add Σ clip(x)·ℓ of small integers; no sum of this block leaves 32 bits."""
    m, n = X.shape
    whole = m - m % 4
    sums = np.zeros(_COLUMNS, dtype=np.int32)
    for first in range(0, n, _COLUMNS):
        last = min(first + _COLUMNS, n)
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
def small_columns(X, ell, low, high, total):  # pragma: no cover
    """The same by columns."""
    m, n = X.shape
    for j in range(n):
        x, s, t = X[:, j], low[j], high[j]
        found = np.int32(0)
        for i in range(m):
            found = np.int32(found + np.int32(min(max(x[i], s), t)) * ell[i])
        total[j] += found


@njit(nogil=True, cache=True)
def by_columns(X, ell, origin, factor, least, largest, sums):  # pragma: no cover
    m, n = X.shape
    products = np.empty(m)
    for j in range(n):
        x = X[:, j]
        start, times, low, high = origin[j], factor[j], least[j], largest[j]
        for i in range(m):
            products[i] = rounded(x[i], start, times, low, high) * ell[i]
        sums[j] = _sum(products)


@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _sum(x):  # pragma: no cover
    """A sum in any order, which makes no difference for integers."""
    total = 0.0
    for i in range(x.size):
        total += x[i]
    return total


@njit(nogil=True, cache=True)
def moved(sums, total):  # pragma: no cover
    """Move sums of integers to totals."""
    for j in range(sums.size):
        total[j] += np.int64(sums[j])
        sums[j] = 0.0


@njit(nogil=True, cache=True)
def general_rows(start, stop, indptr, indices, data, ell, columns):  # pragma: no cover
    """Add what stored entries are more than zeros; False if a row is not in increasing order.

    All that belongs to a column lies in one row of `columns`: origin, factor, limits, what zero
    becomes, and its sum.
    """
    for i in range(start, stop):
        weight, places = ell[i], indices[indptr[i] : indptr[i + 1]]
        x = data[indptr[i] : indptr[i + 1]]
        if not increasing(places):
            return False
        for p in range(places.size):
            j = np.uint64(np.uint32(places[p]))
            k = rounded(x[p], columns[j, 0], columns[j, 1], columns[j, 2], columns[j, 3])
            columns[j, 5] += (k - columns[j, 4]) * weight
    return True


@njit(nogil=True, cache=True)
def scaled_rows(
    start, stop, indptr, indices, data, ell, factor, least, largest, sums, room
):  # pragma: no cover
    """The same where all limits are the same and zero becomes zero: x·factor is enough.

    The factors of the entries of many rows are put into `room`, then the products in their place,
    and then these are added to the sums of their columns. Of all columns only the factors are read
    in the first step and only the sums in the last one, so that they stay in cache.
    """
    first = start
    while first < stop:
        last = _filled(indptr, first, stop, room.size)
        begin = indptr[first]
        _look_up(indices[begin : indptr[last]], factor, room)
        for i in range(first, last):
            p, q = indptr[i], indptr[i + 1]
            if not increasing(indices[p:q]):
                return False
            _times_factors(ell[i], data[p:q], least, largest, room[p - begin : q - begin])
        _scatter(room, indices[begin : indptr[last]], sums)
        first = last
    return True


@njit(nogil=True, cache=True)
def alike_rows(
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
            if not increasing(indices[p:q]):
                return False
            part = room[p - begin : q - begin]
            _times(ell[i], data[p:q], origin, factor, least, largest, zero, part)
        _scatter(room, indices[begin : indptr[last]], sums)
        first = last
    return True


@njit(nogil=True, cache=True)
def stored_columns(
    indptr, indices, data, ell, origin, factor, least, largest, zero, total
):  # pragma: no cover
    """The same by columns; no sum is of more entries than a floating-point number bears."""
    for j in range(indptr.size - 1):
        o, f, s, t, z = origin[j], factor[j], least[j], largest[j], zero[j]
        if not increasing(indices[indptr[j] : indptr[j + 1]]):
            return False
        for p in range(indptr[j], indptr[j + 1], MOST_ROWS):
            q = min(p + MOST_ROWS, indptr[j + 1])
            total[j] += np.int64(_product(indices[p:q], data[p:q], ell, o, f, s, t, z))
    return True


@njit(nogil=True, cache=True)
def increasing(places):  # pragma: no cover
    """Whether each is larger than the one before, so that none is there twice."""
    wrong = 0
    for p in range(1, places.size):
        wrong += places[p] <= places[p - 1]
    return wrong == 0


@njit(nogil=True, cache=True)
def _filled(indptr, first, stop, size):  # pragma: no cover
    """The end of the rows from the first on that have so many entries; one at least."""
    last = first + 1
    while last < stop and indptr[last + 1] - indptr[first] <= size:
        last += 1
    return last


@njit(nogil=True, cache=True)
def _scatter(products, places, sums):  # pragma: no cover
    for p in range(places.size):
        sums[np.uint64(np.uint32(places[p]))] += products[p]


@njit(nogil=True, cache=True)
def _look_up(places, values, found):  # pragma: no cover
    for p in range(places.size):
        found[p] = values[np.uint64(np.uint32(places[p]))]


@njit(nogil=True, cache=True)
def _times_factors(label, x, least, largest, found):  # pragma: no cover
    """The integers of entries times one label, in place of the factors."""
    for i in range(x.size):
        found[i] = rounded(x[i], 0.0, found[i], least, largest) * label


@njit(nogil=True, cache=True)
def _times(label, x, origin, factor, least, largest, zero, found):  # pragma: no cover
    """The integers of entries less that of zero, times one label."""
    for i in range(x.size):
        found[i] = (rounded(x[i], origin, factor, least, largest) - zero) * label


@njit(nogil=True, cache=True, fastmath={"reassoc"})
def _product(places, x, ell, origin, factor, least, largest, zero):  # pragma: no cover
    """The sum of labels times the integers of entries less that of zero, in any order.

    Rounding is in a function of its own, which may not be reordered.
    """
    total = 0.0
    for p in range(places.size):
        k = rounded(x[p], origin, factor, least, largest) - zero
        total += k * np.float64(ell[np.uint64(np.uint32(places[p]))])
    return total
