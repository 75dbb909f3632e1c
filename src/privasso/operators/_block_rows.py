"""Tasks over blocks of public covariates, with results that do not depend on their order.

Entries are rounded to integers k = rint(x/2^e), e one for each column such that |k| ≤ 2²⁶. Their
sums and their products are integers too, and matrix products of them are computed without any
rounding. So are whitened rows, up to the last rounding of each entry. Everything is therefore the
same for any cut and order of the rows, in memory, in files or on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit

from privasso._blas import one_thread
from privasso.blocks import Chunk, Sums
from privasso.noise import Covariance, Diagonal

#: Bits of an entry, of the lower half of one, and of a digit of a whitening matrix.
BITS, HALF, _DIGIT = 26, 13, 14
#: Entries that are worked on at a time, and rows, so that sums of products stay below 2⁵³.
_BLOCK, _MOST_ROWS = 1 << 18, 1 << 12
#: Exponent of a column of zeros.
EMPTY = -5000
_X_FINITE = "X must be finite; fill or drop missing values before the fit"


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
                    raise ValueError(_X_FINITE)
                top = np.maximum(top, np.where(size > 0.0, np.frexp(size)[1], EMPTY))
            largest = top if largest is None else np.maximum(largest, top)
        return {} if largest is None else {"largest exponent": largest}


@dataclass(frozen=True, eq=False)
class ColumnGrid:
    """Entries as integers: k = rint(x/2^e) − centre."""

    exponents: np.ndarray
    centre: np.ndarray = field(repr=False)

    def integers(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """The integers of some rows at a time, as doubles."""
        for span, part in _cut(X):
            yield span, np.rint(np.ldexp(part, -self.exponents)) - self.centre


@dataclass(frozen=True, eq=False)
class IntegerMoments:
    """A task: sums of the integers and of their products."""

    grid: ColumnGrid

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
        """Return the sums."""
        n = self.grid.exponents.size
        parts = np.zeros((3, n, n), dtype=np.int64)
        total = np.zeros(n, dtype=np.int64)
        with one_thread():
            for X, _ in chunks:
                for _, k in self.grid.integers(X):
                    high = np.floor(np.ldexp(k, -HALF))
                    low = k - np.ldexp(high, HALF)
                    for part, (a, b) in zip(
                        parts, ((high, high), (high, low), (low, low)), strict=True
                    ):
                        part += (a.T @ b).astype(np.int64)
                    total += k.sum(axis=0).astype(np.int64)
        return {"products": parts, "sum": total}


@dataclass(frozen=True, eq=False)
class BlockWhitening:
    """f ↦ Σ^(−½) f for the live columns, with the same result for any block that a row is in.

    - `grid`: integers of all columns.
    - `live`: the columns of Σ.
    - `scale`: 2^e/σ for independent noise.
    - `digits` (2, N, rank): the whitening matrix in steps of `unit`, cut into two digits.
    """

    grid: ColumnGrid
    live: np.ndarray
    scale: np.ndarray | None
    digits: np.ndarray | None
    unit: float

    @staticmethod
    def of(covariance: Covariance, grid: ColumnGrid, live: np.ndarray) -> BlockWhitening:
        """That of a covariance over the live columns."""
        step = np.ldexp(1.0, grid.exponents[live])
        if isinstance(covariance, Diagonal):
            with np.errstate(divide="ignore"):
                return BlockWhitening(grid, live, step / covariance.sigma, None, 1.0)
        matrix = (covariance.whiten(np.eye(live.size)) * step).T
        unit = float(2.0 ** (np.frexp(np.max(np.abs(matrix)))[1] - 2 * _DIGIT))
        whole = np.rint(matrix / unit)
        high = np.rint(np.ldexp(whole, -_DIGIT))
        return BlockWhitening(
            grid, live, None, np.array([whole - np.ldexp(high, _DIGIT), high]), unit
        )

    @property
    def rank(self) -> int:
        """Entries of a whitened row."""
        return self.live.size if self.digits is None else self.digits.shape[2]

    def rows(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Whitened rows, some at a time."""
        for span, k in self.grid.integers(X):
            live = k if self.live.size == k.shape[1] else k[:, self.live]
            if self.digits is None:
                yield span, live * self.scale
            else:
                # Both products are of integers and exact.
                low, high = live @ self.digits[0], live @ self.digits[1]
                yield span, (np.ldexp(high, _DIGIT) + low) * self.unit


@dataclass(frozen=True, eq=False)
class LargestRow:
    """A task: the largest squared length of a whitened row."""

    whitening: BlockWhitening

    def __call__(self, chunks: Iterable[Chunk], state: Any) -> Sums:
        """Return it as the bits of a number that is not negative, which are ordered like these."""
        largest = 0.0
        with one_thread():
            for X, _ in chunks:
                for _, white in self.whitening.rows(X):
                    largest = max(largest, largest_square(np.ascontiguousarray(white)))
        return {"largest square": bits_of(largest)}


def bits_of(number: float) -> np.ndarray:
    """A number that is not negative as an integer; larger ones are larger integers."""
    return np.array([number], dtype=np.float64).view(np.int64)


def number_of(bits: np.ndarray) -> float:
    """The inverse of `bits_of`."""
    return float(np.ascontiguousarray(bits, dtype=np.int64).view(np.float64)[0])


@njit(cache=True, nogil=True)
def largest_square(rows: np.ndarray) -> float:  # pragma: no cover
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
