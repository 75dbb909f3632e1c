"""Compiled passes over genotypes packed in two bits, four to a byte.

The two bits of an entry are 00, 10 and 11 for two, one and no copies of the counted allele, and 01
where the genotype is missing (the layout of PLINK's .bed files). With all bits inverted, the sum
of the two bits is the number of copies, and 1 where it is missing.

A vector over the rows is stored in four planes: plane k holds the entries 4i + k, so that the
entries of the four genotypes of byte i are at place i of each plane. Loops over bytes then use
vector registers. Planes are longer than the vector by up to three entries, which are zero.

Popcounts of words compute products of two columns: with x the inverted bits of one column and y
those of another, the sum of the products of copies is the number of common bits in x and y plus
that in x and y with the two bits of each entry exchanged. These sums are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

_FAST = {"reassoc", "contract", "nsz"}
#: Bytes of a column that are read at a time: with the planes they need 128 KB of cache.
_STRIP = 4096
#: Columns that are read strip by strip before the next ones: they are close to one another in
#: the file.
_GROUP = 64
#: Words of a column that are compared with those of others at a time.
_WORDS = 1024

_LOW = np.uint64(0x5555555555555555)
_ONE = np.uint64(1)


def _type_popcount(typingctx, a):  # pragma: no cover
    """Number of bits of a word that are set."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), codegen


_popcount: Any = intrinsic(_type_popcount)


@njit(nogil=True, cache=True)
def load(column, n_rows, as_bytes, as_words, copies, missing):  # pragma: no cover
    """The bits of a packed column as words: those of the copies, and both bits where missing.

    `as_bytes` and `as_words` are the same zeroed memory. A missing genotype has no copies.
    """
    for i in range(column.size):
        as_bytes[i] = column[i] ^ np.uint8(255)
    rest = n_rows % 4
    if rest:
        as_bytes[column.size - 1] &= np.uint8((1 << (2 * rest)) - 1)
    for w in range(as_words.size):
        x = as_words[w]
        gone = (x >> _ONE) & ~x & _LOW
        gone |= gone << _ONE
        copies[w] = x & ~gone
        missing[w] = gone


@njit(nogil=True, cache=True)
def count(packed, lo, hi, n_rows, as_bytes, as_words, buffer, counts):  # pragma: no cover
    """``counts[j]`` = rows with one copy, with two copies, and missing, of columns lo..hi."""
    for j in range(lo, hi):
        load(packed[j], n_rows, as_bytes, as_words, buffer[0], buffer[1])
        single = np.uint64(0)
        double = np.uint64(0)
        gone = np.uint64(0)
        for w in range(as_words.size):
            x = buffer[0, w]
            both = x & (x >> _ONE) & _LOW
            double += _popcount(both)
            single += _popcount(x)
            gone += _popcount(buffer[1, w] & _LOW)
        counts[j, 0] = single - double - double
        counts[j, 1] = double
        counts[j, 2] = gone


@njit(nogil=True, cache=True)
def exchange(words, out):  # pragma: no cover
    """``out`` = the words with the two bits of each entry exchanged."""
    for i in range(words.shape[0]):
        for w in range(words.shape[1]):
            x = words[i, w]
            out[i, w] = ((x & _LOW) << _ONE) | ((x >> _ONE) & _LOW)


@njit(nogil=True, cache=True)
def common_bits(A, B, out):  # pragma: no cover
    """``out[i, j]`` += number of bits set both in line i of A and in line j of B."""
    n_words = A.shape[1]
    for start in range(0, n_words, _WORDS):
        stop = min(n_words, start + _WORDS)
        for i in range(A.shape[0]):
            a = A[i, start:stop]
            for j in range(B.shape[0]):
                b = B[j, start:stop]
                total = np.uint64(0)
                for w in range(a.size):
                    total += _popcount(a[w] & b[w])
                out[i, j] += np.int64(total)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dot(column, a, b, c, d):  # pragma: no cover
    """Copies times the vector, of a column of which nothing is missing."""
    s = 0.0
    t = 0.0
    u = 0.0
    v = 0.0
    for i in range(column.size):
        x = np.int32(column[i]) ^ 255
        x = (x & 0x55) + ((x >> 1) & 0x55)
        s += np.float64(x & 3) * a[i]
        t += np.float64((x >> 2) & 3) * b[i]
        u += np.float64((x >> 4) & 3) * c[i]
        v += np.float64(x >> 6) * d[i]
    return s + t + u + v


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dot_missing(column, a, b, c, d):  # pragma: no cover
    """The same for any column, and the sum of the vector where the column is missing."""
    s = 0.0
    t = 0.0
    for i in range(column.size):
        x = np.int32(column[i]) ^ 255
        gone = (x >> 1) & ~x & 0x55
        x = (x & 0x55) + ((x >> 1) & 0x55) - gone
        s += np.float64(x & 3) * a[i] + np.float64((x >> 2) & 3) * b[i]
        s += np.float64((x >> 4) & 3) * c[i] + np.float64(x >> 6) * d[i]
        t += np.float64(gone & 1) * a[i] + np.float64((gone >> 2) & 1) * b[i]
        t += np.float64((gone >> 4) & 1) * c[i] + np.float64(gone >> 6) * d[i]
    return s, t


@njit(nogil=True, cache=True)
def dots(packed, lo, hi, complete, mean, planes, out):  # pragma: no cover
    """``out[r, j]`` = column j, its mean where missing, times vector r; for columns lo..hi."""
    n_bytes = packed.shape[1]
    n_vectors = planes.shape[0]
    for r in range(n_vectors):
        for j in range(lo, hi):
            out[r, j] = 0.0
    for first in range(lo, hi, _GROUP):
        last = min(hi, first + _GROUP)
        for start in range(0, n_bytes, _STRIP):
            stop = min(n_bytes, start + _STRIP)
            for j in range(first, last):
                column = packed[j, start:stop]
                for r in range(n_vectors):
                    # One by one: the compiler must see that their entries are neighbours.
                    a = planes[r, 0, start:stop]
                    b = planes[r, 1, start:stop]
                    c = planes[r, 2, start:stop]
                    d = planes[r, 3, start:stop]
                    if complete[j]:
                        out[r, j] += _dot(column, a, b, c, d)
                    else:
                        known, gone = _dot_missing(column, a, b, c, d)
                        out[r, j] += known + mean[j] * gone


@njit(nogil=True, cache=True, fastmath=_FAST)
def _dot_each(column, a, b, c, d):  # pragma: no cover
    """The sums of the vector over the rows with one copy, with two copies, and missing."""
    s = 0.0
    t = 0.0
    u = 0.0
    for i in range(column.size):
        x = np.int32(column[i]) ^ 255
        low, high = x & 0x55, (x >> 1) & 0x55
        one, two, gone = low & ~high, low & high, high & ~low
        s += np.float64(one & 1) * a[i] + np.float64((one >> 2) & 1) * b[i]
        s += np.float64((one >> 4) & 1) * c[i] + np.float64(one >> 6) * d[i]
        t += np.float64(two & 1) * a[i] + np.float64((two >> 2) & 1) * b[i]
        t += np.float64((two >> 4) & 1) * c[i] + np.float64(two >> 6) * d[i]
        u += np.float64(gone & 1) * a[i] + np.float64((gone >> 2) & 1) * b[i]
        u += np.float64((gone >> 4) & 1) * c[i] + np.float64(gone >> 6) * d[i]
    return s, t, u


@njit(nogil=True, cache=True)
def dots_each(packed, lo, hi, planes, out):  # pragma: no cover
    """``out[:, j]`` = the sums of a vector over the rows of each kind; for columns lo..hi."""
    n_bytes = packed.shape[1]
    out[:, lo:hi] = 0.0
    for first in range(lo, hi, _GROUP):
        last = min(hi, first + _GROUP)
        for start in range(0, n_bytes, _STRIP):
            stop = min(n_bytes, start + _STRIP)
            a, b = planes[0, start:stop], planes[1, start:stop]
            c, d = planes[2, start:stop], planes[3, start:stop]
            for j in range(first, last):
                one, two, gone = _dot_each(packed[j, start:stop], a, b, c, d)
                out[0, j] += one
                out[1, j] += two
                out[2, j] += gone


@njit(nogil=True, cache=True, fastmath=_FAST)
def _axpy(column, x, a, b, c, d):  # pragma: no cover
    for i in range(column.size):
        k = np.int32(column[i]) ^ 255
        k = (k & 0x55) + ((k >> 1) & 0x55)
        a[i] += np.float64(k & 3) * x
        b[i] += np.float64((k >> 2) & 3) * x
        c[i] += np.float64((k >> 4) & 3) * x
        d[i] += np.float64(k >> 6) * x


@njit(nogil=True, cache=True, fastmath=_FAST)
def _axpy_missing(column, x, mean, a, b, c, d):  # pragma: no cover
    y = mean * x
    for i in range(column.size):
        k = np.int32(column[i]) ^ 255
        gone = (k >> 1) & ~k & 0x55
        k = (k & 0x55) + ((k >> 1) & 0x55) - gone
        a[i] += np.float64(k & 3) * x + np.float64(gone & 1) * y
        b[i] += np.float64((k >> 2) & 3) * x + np.float64((gone >> 2) & 1) * y
        c[i] += np.float64((k >> 4) & 3) * x + np.float64((gone >> 4) & 1) * y
        d[i] += np.float64(k >> 6) * x + np.float64(gone >> 6) * y


@njit(nogil=True, cache=True)
def axpys(packed, lo, hi, index, x, complete, mean, planes):  # pragma: no cover
    """``planes`` += columns `index`, their means where missing, times x; over bytes lo..hi."""
    for start in range(lo, hi, _STRIP):
        stop = min(hi, start + _STRIP)
        a = planes[0, start:stop]
        b = planes[1, start:stop]
        c = planes[2, start:stop]
        d = planes[3, start:stop]
        for k in range(index.size):
            j = index[k]
            column = packed[j, start:stop]
            if complete[j]:
                _axpy(column, x[k], a, b, c, d)
            else:
                _axpy_missing(column, x[k], mean[j], a, b, c, d)


@njit(nogil=True, cache=True)
def decode(packed, index, rows, values, out):  # pragma: no cover
    """``out[k, i]`` = the value of column index[k] in row rows[i].

    ``values[k, c]`` is what the two bits c of a genotype of this column stand for.
    """
    for k in range(index.size):
        j = index[k]
        for i in range(rows.size):
            row = rows[i]
            out[k, i] = values[k, (packed[j, row >> 2] >> (2 * (row & 3))) & 3]
