"""Rows in units of a noise, and tasks over blocks of them that do not depend on their order.

Entries are rounded to integers k = rint(x/2^e), e one for each column such that |k| ≤ 2²⁶. Their
sums and their products are integers too, and matrix products of them are computed without any
rounding. Everything is therefore the same for any cut and order of the rows, in memory, in files or
on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numba import njit

from privasso._blas import one_thread
from privasso._types import Matrix, SparseMatrix
from privasso._validation import X_FINITE
from privasso.blocks import Chunk, Sums
from privasso.noise import Covariance

#: Entries that are worked on at a time; they stay in cache.
_WHITENED = 1 << 16
#: Rows for which an entry of the matrix is read once.
_TILE = 8
#: Sparse rows of this many columns or more are multiplied without being written out.
_WIDE = 512


@dataclass(frozen=True, eq=False)
class Whitening:
    """x ↦ Σ^(−½)(x − mean) over the live columns, the same to the last bit in every block of rows.

    Attributes
    ----------
    mean : ndarray of shape (N,)
        Of all columns.
    live : ndarray of int
        The columns of Σ.
    matrix : ndarray of shape (number of live columns, rank) or (number of live columns,)
        The transpose of Σ^(−½), or its diagonal for independent noise.
    """

    mean: np.ndarray = field(repr=False)
    live: np.ndarray = field(repr=False)
    matrix: np.ndarray = field(repr=False)

    @staticmethod
    def of(covariance: Covariance, mean: np.ndarray, live: np.ndarray) -> Whitening:
        """That of a covariance over the live columns, which are given by a mask."""
        matrix = np.ascontiguousarray(covariance.whitener.T)
        return Whitening(mean, np.flatnonzero(live), matrix)

    @cached_property
    def _first(self) -> np.ndarray:
        """Where each row of the matrix begins, before which it and all below it are zero."""
        first = np.where(self.matrix.any(axis=1), np.argmax(self.matrix != 0.0, axis=1), self.rank)
        return np.minimum.accumulate(first[::-1])[::-1].copy()

    @property
    def rank(self) -> int:
        """Entries of a whitened row."""
        return self.matrix.shape[-1]

    def rows(self, X: Matrix) -> Iterator[tuple[slice, np.ndarray]]:
        """Whitened rows, some at a time; X may have further columns, and be sparse."""
        n = self.mean.size
        if sp.issparse(X) and self.matrix.ndim == 2 and n >= _WIDE:
            yield from self._sparse_rows(X)
            return
        step = max(1, _WHITENED // max(n, 1))
        for start in range(0, X.shape[0], step):
            span = slice(start, min(start + step, X.shape[0]))
            part = X[span]
            part = part if isinstance(part, np.ndarray) else part.toarray()
            centred = np.asarray(part[:, :n], dtype=np.float64) - self.mean
            if self.live.size < n:
                centred = centred[:, self.live]
            if self.matrix.ndim == 1:
                yield span, centred * self.matrix
                continue
            white = np.zeros((len(centred), self.rank))
            _multiply(np.ascontiguousarray(centred), self.matrix, self._first, white)
            yield span, white

    def _sparse_rows(self, X: SparseMatrix) -> Iterator[tuple[slice, np.ndarray]]:
        """The same as x ↦ Σ_stored x_j a_j − Σ_j mean_j a_j, a_j the rows of the matrix."""
        base = np.zeros((1, self.rank))
        _multiply(-self.mean[None, self.live], self.matrix, self._first, base)
        place = np.full(X.shape[1], -1)
        place[self.live] = np.arange(self.live.size)
        step = max(1, _WHITENED // self.rank)
        for start in range(0, X.shape[0], step):
            span = slice(start, min(start + step, X.shape[0]))
            part: SparseMatrix = sp.csr_array(X[span], dtype=np.float64)
            part.sort_indices()
            white = np.tile(base, (part.shape[0], 1))
            _multiply_stored(part.data, place[part.indices], part.indptr, self.matrix, white)
            yield span, white


@njit(cache=True, nogil=True)
def _multiply_stored(values, columns, starts, matrix, out):  # pragma: no cover
    """Add rows·matrix to `out` for the stored entries of rows; columns below zero do not count."""
    for i in range(out.shape[0]):
        to = out[i]
        for at in range(starts[i], starts[i + 1]):
            if columns[at] >= 0:
                x, a = values[at], matrix[columns[at]]
                for k in range(to.size):
                    to[k] += x * a[k]


@njit(cache=True, nogil=True)
def _multiply(rows, matrix, first, out):  # pragma: no cover
    """Add rows·matrix to `out`; each entry is summed in the order of the columns."""
    m, n = rows.shape
    for start in range(0, m, _TILE):
        stop = min(start + _TILE, m)
        j = 0
        while j + 4 <= n:
            a, b = matrix[j, first[j] :], matrix[j + 1, first[j] :]
            c, d = matrix[j + 2, first[j] :], matrix[j + 3, first[j] :]
            i = start
            while i + 4 <= stop:  # what is read of the matrix serves four rows
                e, f, g, h = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
                w0, x0, y0, z0 = e[j], e[j + 1], e[j + 2], e[j + 3]
                w1, x1, y1, z1 = f[j], f[j + 1], f[j + 2], f[j + 3]
                w2, x2, y2, z2 = g[j], g[j + 1], g[j + 2], g[j + 3]
                w3, x3, y3, z3 = h[j], h[j + 1], h[j + 2], h[j + 3]
                to0, to1 = out[i, first[j] :], out[i + 1, first[j] :]
                to2, to3 = out[i + 2, first[j] :], out[i + 3, first[j] :]
                for k in range(to0.size):
                    p, q, r, s = a[k], b[k], c[k], d[k]
                    to0[k] = (((to0[k] + w0 * p) + x0 * q) + y0 * r) + z0 * s
                    to1[k] = (((to1[k] + w1 * p) + x1 * q) + y1 * r) + z1 * s
                    to2[k] = (((to2[k] + w2 * p) + x2 * q) + y2 * r) + z2 * s
                    to3[k] = (((to3[k] + w3 * p) + x3 * q) + y3 * r) + z3 * s
                i += 4
            while i < stop:
                w, x, y, z = rows[i, j], rows[i, j + 1], rows[i, j + 2], rows[i, j + 3]
                to = out[i, first[j] :]
                for k in range(to.size):
                    to[k] = (((to[k] + w * a[k]) + x * b[k]) + y * c[k]) + z * d[k]
                i += 1
            j += 4
        while j < n:
            a = matrix[j, first[j] :]
            for i in range(start, stop):
                w, to = rows[i, j], out[i, first[j] :]
                for k in range(to.size):
                    to[k] += w * a[k]
            j += 1


#: Bits of an entry, and of the lower half of one.
BITS, HALF = 26, 13
#: Entries that are worked on at a time, and rows, so that sums of products stay below 2⁵³.
_BLOCK, _MOST_ROWS = 1 << 18, 1 << 12
#: Exponent of a column of zeros.
EMPTY = -5000


@dataclass(frozen=True)
class LargestEntries:
    """A task: the exponents of the largest entries, after a check that all are finite."""

    def __call__(self, chunks: Iterable[Chunk], state: object) -> Sums:
        """Return them."""
        largest = None
        for X, _ in chunks:
            top = np.full(X.shape[1], EMPTY)
            for _, part in _cut(X):
                size = np.max(np.abs(part), axis=0, initial=0.0)
                if not np.isfinite(size).all():
                    raise ValueError(X_FINITE)
                top = np.maximum(top, np.where(size > 0.0, np.frexp(size)[1], EMPTY))
            largest = top if largest is None else np.maximum(largest, top)
        return {} if largest is None else {"largest exponent": largest}


@dataclass(frozen=True, eq=False)
class IntegerMoments:
    """A task: sums of k = rint(x/2^e) and of their products, e one exponent for each column."""

    exponents: np.ndarray

    def __call__(self, chunks: Iterable[Chunk], state: object) -> Sums:
        """Return the sums."""
        n = self.exponents.size
        parts = np.zeros((3, n, n), dtype=np.int64)
        total = np.zeros(n, dtype=np.int64)
        with one_thread():
            for X, _ in chunks:
                for _, part in _cut(X):
                    k = np.rint(np.ldexp(part, -self.exponents))
                    high = np.floor(np.ldexp(k, -HALF))
                    low = k - np.ldexp(high, HALF)
                    for into, (a, b) in zip(
                        parts, ((high, high), (high, low), (low, low)), strict=True
                    ):
                        into += (a.T @ b).astype(np.int64)
                    total += k.sum(axis=0).astype(np.int64)
        return {"products": parts, "sum": total}


@dataclass(frozen=True, eq=False)
class LargestRow:
    """A task: the largest squared length of a whitened row."""

    whitening: Whitening

    def __call__(self, chunks: Iterable[Chunk], state: object) -> Sums:
        """Return it as the bits of a number that is not negative, which are ordered like these."""
        largest = 0.0
        with one_thread():
            for X, _ in chunks:
                for _, white in self.whitening.rows(X):
                    largest = max(largest, _largest_square(np.ascontiguousarray(white)))
        return {"largest square": _bits_of(largest)}


def _bits_of(number: float) -> np.ndarray:
    """A number that is not negative as an integer; larger ones are larger integers."""
    return np.array([number], dtype=np.float64).view(np.int64)


def number_of(bits: np.ndarray) -> float:
    """The inverse of `_bits_of`."""
    return float(np.ascontiguousarray(bits, dtype=np.int64).view(np.float64)[0])


@njit(cache=True, nogil=True)
def _largest_square(rows: np.ndarray) -> float:  # pragma: no cover
    """The largest squared length of a row, each summed in the order of its entries."""
    largest = 0.0
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        if not total <= largest:  # also NaN
            largest = total
    return largest


def _cut(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows as doubles."""
    step = max(1, min(_MOST_ROWS, _BLOCK // X.shape[1]))
    for start in range(0, X.shape[0], step):
        span = slice(start, start + step)
        yield span, np.ascontiguousarray(X[span], dtype=np.float64)
