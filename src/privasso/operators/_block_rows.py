"""Tasks over blocks of public covariates, with results that do not depend on their order.

Entries are rounded to integers k = rint(x/2^e), e one for each column such that |k| ≤ 2²⁶. Their
sums and their products are integers too, and matrix products of them are computed without any
rounding. Everything is therefore the same for any cut and order of the rows, in memory, in files or
on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from privasso._blas import one_thread
from privasso._validation import X_FINITE
from privasso.blocks import Chunk, Sums
from privasso.operators._whitening import Whitening

#: Bits of an entry, and of the lower half of one.
BITS, HALF = 26, 13
#: Entries that are worked on at a time, and rows, so that sums of products stay below 2⁵³.
_BLOCK, _MOST_ROWS = 1 << 18, 1 << 12
#: Exponent of a column of zeros.
EMPTY = -5000


@dataclass(frozen=True)
class LargestEntries:
    """A task: the exponents of the largest entries, after a check that all are finite."""

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
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

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
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

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
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
