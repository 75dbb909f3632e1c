"""Records as rows of bounded length with entries on a grid: a map of single records.

What a record becomes depends on that record and on public numbers alone, to the last bit: not on
its place in the table, nor on how the table is cut into blocks or stored. The entries are rounded
towards zero, so that no row becomes longer. The minimiser of the rounded rows can be computed with
sums that are exact (see `privasso.solvers.ExactPass`), and a rounding of records on their way into
a mechanism costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from privasso.solvers import LABEL_BITS, entry_grid

#: Rows are shrunk by this part more than needed, so that rounding never leaves one too long.
_SHORTER = 2.0**-40
#: Numbers that are scaled at a time: they stay in cache from the first step to the last.
_BLOCK = 1 << 15
_LABELS = "y must be finite; fill or drop missing labels before the fit"
NOT_FINITE = "X must be finite; fill or drop missing values before the fit"


def shorter(width: int) -> float:
    """A factor slightly below 1, by which rounding never leaves a row of so many entries too long.

    >>> 1.0 - 1e-11 < shorter(10) < 1.0
    True
    """
    return 1.0 - _SHORTER - (width + 16) * 2.0**-52


@dataclass(frozen=True, eq=False)
class RecordMap:
    """Scale, clip and shrink records, and round their entries to a grid.

    Attributes
    ----------
    bounds : ndarray of shape (N, 2)
        Values outside are clipped.
    origin, half : ndarray of shape (N,)
        Entries are (value − origin)/half, zero where half is zero.
    y_bounds : (float, float)
        Labels outside are clipped.
    middle, width : float
        Labels become (y − middle)/width.
    intercept : bool
        Whether a column of ones follows.
    radius : float
        Rows longer than this are shrunk to it together with their labels.
    missing_labels : bool
        Whether a record whose label is NaN is an empty one; otherwise it is refused.
    """

    bounds: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)
    half: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    middle: float
    width: float
    intercept: bool
    radius: float
    missing_labels: bool = False

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return len(self.bounds) + self.intercept

    @property
    def grid(self) -> int:
        """The s of the grid 2⁻ˢ of the entries; none is larger than 2²⁰ steps of it."""
        scale = np.where(self.half > 0.0, self.half, np.inf)
        reach = np.abs(self.bounds - self.origin[:, None]) / scale[:, None]
        largest = max(float(reach.max(initial=0.0)), float(self.intercept), 2.0**-20)
        return entry_grid(min(largest, self.radius) * (1.0 + 1e-12))

    def __call__(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of a chunk; the rows are stored column by column if the chunk is."""
        by_columns = X.flags.f_contiguous and not X.flags.c_contiguous
        rows = np.empty((len(y), self.n_columns), order="F" if by_columns else "C")
        labels = np.empty(len(y))
        self.fill(X, y, rows, labels)
        return rows, labels

    def fill(self, X: np.ndarray, y: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> None:
        """Write rows and labels of a chunk to arrays of the caller."""
        flat = self.half == 0.0
        low, high = self.bounds[:, 0].copy(), self.bounds[:, 1].copy()
        scale, longest = np.where(flat, 1.0, self.half), self.radius * shorter(self.n_columns)
        label = np.array([*self.y_bounds, self.middle, self.width])
        step = max(1, _BLOCK // self.n_columns)
        y = np.ascontiguousarray(y, dtype=np.float64)
        if not self.missing_labels and not np.isfinite(y).all():
            raise ValueError(_LABELS)
        for start in range(0, len(y), step):
            take = slice(start, start + step)
            if not _fill(
                X[take],
                y[take],
                low,
                high,
                self.origin,
                scale,
                flat,
                longest,
                math.ldexp(1.0, self.grid),
                math.ldexp(1.0, LABEL_BITS),
                label,
                rows[take],
                labels[take],
            ):
                raise ValueError(NOT_FINITE)


@njit(nogil=True, cache=True)
def _fill(
    X, y, low, high, origin, scale, flat, longest, grid, label_grid, label, rows, labels
):  # pragma: no cover
    """Fill rows and labels; False if an entry is not a number.

    A sum over the entries of a row is taken in the order of the columns, whatever the storage.
    """
    m, n = X.shape
    squares = np.zeros(m)
    good = True
    for j in range(n):
        lo, hi, mid, div = low[j], high[j], origin[j], scale[j]
        if flat[j]:
            for i in range(m):
                good &= not np.isnan(X[i, j])
                rows[i, j] = 0.0
            continue
        for i in range(m):
            v = np.float64(X[i, j])
            good &= not np.isnan(v)
            v = (min(max(v, lo), hi) - mid) / div
            good &= np.isfinite(v)
            rows[i, j] = v
            squares[i] += v * v
    width = rows.shape[1]
    for i in range(m):
        if width > n:
            squares[i] += 1.0
            rows[i, n] = 1.0
        factor = 1.0
        if squares[i] > 0.0:
            factor = min(1.0, longest / np.sqrt(squares[i]))
        if np.isnan(y[i]):
            factor = 0.0
            labels[i] = 0.0
        else:
            v = (min(max(y[i], label[0]), label[1]) - label[2]) / label[3]
            labels[i] = np.trunc(factor * v * label_grid) / label_grid
        squares[i] = factor
    for j in range(width):
        for i in range(m):
            rows[i, j] = np.trunc(rows[i, j] * squares[i] * grid) / grid
    return good
