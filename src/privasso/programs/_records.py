"""What a record becomes, by itself: cells within bounds, units, rows of bounded length, residuals.

No cell is a reason to refuse. Where whole records are private, a record whose label is missing
(NaN) is an empty one: it adds nothing to any sum, count or choice, whatever its covariates are. A
covariate that is missing counts as the middle of its bounds, and ±inf as the bound on that side.
Where bounds are found with noise, the middle is that of the bounds so far: zero at first, and
afterwards the middle of what was found. Where only labels are private, a missing label counts as
the middle of the bounds, or its record as an empty one where neighbours are said to differ by an
emptied label.

So what a record becomes depends on that record, and on numbers that are public or were released, to
the last bit: not on its place in the table, nor on how the table is cut into blocks or stored. The
entries of rows are rounded towards zero, so that no row becomes longer. The minimiser of the
rounded rows can be computed with sums that are exact (see `privasso.solvers.ExactPass`), and a
rounding of records on their way into a mechanism costs no privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numba import njit

from privasso._tuned import ORIGIN
from privasso.solvers import LABEL_BITS, entry_grid


def empty_records(y: np.ndarray) -> np.ndarray:
    """Which records are empty.

    >>> empty_records(np.array([1.0, np.nan, np.inf])).tolist()
    [False, True, False]
    """
    return np.isnan(y)


def middles(bounds: np.ndarray) -> np.ndarray:
    """What missing cells count as, for bounds of shape (N, 2)."""
    return 0.5 * bounds[:, 0] + 0.5 * bounds[:, 1]


def within(X: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Cells as finite numbers between the bounds of their columns; a copy.

    >>> bounds = np.array([[0.0, 4.0], [5.0, 5.0]])
    >>> within(np.array([[np.nan, np.nan], [-np.inf, 7.0]]), bounds).tolist()
    [[2.0, 5.0], [0.0, 5.0]]
    """
    cells = np.where(np.isnan(X), middles(bounds), X)
    return np.clip(cells, bounds[:, 0], bounds[:, 1], out=cells)


def held_records(X: np.ndarray, y: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """The records that are not empty, with cells between their bounds; a copy.

    >>> X, bounds = np.array([[1.0], [np.nan], [9.0]]), np.array([[0.0, 4.0]])
    >>> held_records(X, np.array([np.nan, 1.0, 1.0]), bounds).tolist()
    [[2.0], [4.0]]
    """
    empty = empty_records(y)
    return within(X[~empty] if empty.any() else X, bounds)


def bounded_labels(
    y: np.ndarray, bounds: tuple[float, float], *, empty: bool = False
) -> np.ndarray:
    """Labels between their bounds; a missing one is the middle, or stays so where it is empty.

    >>> bounded_labels(np.array([np.nan, np.inf, -3.0, 0.5]), (0.0, 4.0)).tolist()
    [2.0, 4.0, 0.0, 0.5]
    """
    if empty:
        return np.clip(np.asarray(y, dtype=np.float64), *bounds)
    return within(y[:, None], np.array([bounds]))[:, 0]


#: Rows are shrunk by this part more than needed, so that rounding never leaves one too long.
_SHORTER = 2.0**-40
#: Numbers that are scaled at a time: they stay in cache from the first step to the last.
_BLOCK = 1 << 16


def half_ranges(bounds: np.ndarray, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half range of each column, or zero and the largest absolute value."""
    low, high = bounds[:, 0], bounds[:, 1]
    if centred:
        return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
    return np.zeros_like(low), np.maximum(np.abs(low), np.abs(high))


def origins(bounds: np.ndarray) -> np.ndarray:
    """Where the values of the columns are measured from, between their bounds.

    It is the middle where values may be negative. Amounts, counts and indicators are more often
    near their lower bound; measuring them from 0.35 of the way makes most rows shorter.
    """
    low, high = bounds[:, 0], bounds[:, 1]
    place = np.where(low < 0.0, 0.5, ORIGIN)
    return (1.0 - place) * low + place * high


def measured(bounds: np.ndarray, indicators: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Origin and unit of each column beside an intercept.

    An indicator is measured from its lower bound, in units of its range. From anywhere else a rare
    level would be nearly constant, and take over a part of the intercept, which has a ridge.

    >>> measured(np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([False, True]))
    (array([0.35, 0.  ]), array([0.5, 1. ]))
    """
    origin, half = origins(bounds), half_ranges(bounds, centred=True)[1]
    if indicators is None:
        return origin, half
    low, high = bounds[:, 0], bounds[:, 1]
    return np.where(indicators, low, origin), np.where(indicators, high - low, half)


def shorter(width: int) -> float:
    """A factor slightly below 1, by which rounding never leaves a row of so many entries too long.

    >>> 1.0 - 1e-11 < shorter(10) < 1.0
    True
    """
    return 1.0 - _SHORTER - (width + 16) * 2.0**-52


@dataclass(frozen=True, eq=False)
class RecordMap:
    """Scale, clip and shrink records, and round their entries to a grid.

    An empty record becomes zeros, and a missing covariate the middle of its bounds; see `_cells`.

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
    empty : bool
        Whether a record without a label is an empty one; otherwise its label is the middle.
    """

    bounds: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)
    half: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    middle: float
    width: float
    intercept: bool
    radius: float
    empty: bool = True

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return len(self.bounds) + self.intercept

    @property
    def largest_label(self) -> float:
        """Largest absolute value of a scaled label, from the numbers that labels are scaled by.

        Rounding is monotone, so that no label between the bounds becomes larger than these do.
        """
        return float(np.max(np.abs(np.array(self.y_bounds) - self.middle)) / self.width)

    def weights(self, rows: np.ndarray) -> None:
        """All are 1: long rows are shrunk."""

    @property
    def grid(self) -> int:
        """The s of the grid 2⁻ˢ of the entries; none is larger than 2²⁰ steps of it."""
        return self._grid

    @cached_property
    def _grid(self) -> int:
        scale = np.where(self.half > 0.0, self.half, np.inf)
        reach = np.abs(self.bounds - self.origin[:, None]) / scale[:, None]
        largest = max(float(reach.max(initial=0.0)), float(self.intercept), 2.0**-20)
        return entry_grid(min(largest, self.radius) * (1.0 + 1e-12))

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of some records of a chunk, stored column by column if the chunk is."""
        if not isinstance(X, np.ndarray):  # genotypes, which are decoded now
            X, y, start, stop = X[start:stop], y[start:stop], 0, stop - start
        by_columns = X.strides[0] < X.strides[1]
        shape = stop - start, self.n_columns
        rows, labels = np.empty(shape, order="F" if by_columns else "C"), np.empty(stop - start)
        y = np.array(y[start:stop], dtype=np.float64)  # one kind of array: one kernel
        step = max(1, _BLOCK // self.n_columns)
        squares = np.empty(min(step, len(labels)))
        for low in range(0, len(labels), step):
            high = min(low + step, len(labels))
            _scale(X.T, y, start, low, high, self._columns, self._label, squares, rows.T, labels)
        return rows, labels

    @cached_property
    def _columns(self) -> np.ndarray:
        """Low, high, middle, origin and inverse scale of each column; zero where it has none."""
        with np.errstate(divide="ignore"):
            inverse = np.where(self.half > 0.0, 1.0 / self.half, 0.0)
        return np.array([*self.bounds.T, middles(self.bounds), self.origin, inverse])

    @cached_property
    def _label(self) -> np.ndarray:
        """What concerns labels and lengths."""
        longest = self.radius * shorter(self.n_columns)
        grids = math.ldexp(1.0, self.grid), math.ldexp(1.0, LABEL_BITS)
        return np.array([*self.y_bounds, self.middle, self.width, longest, *grids, self.empty])


@njit(nogil=True, cache=True)
def _scale(X, y, start, low, high, columns, label, squares, rows, labels):  # pragma: no cover
    """Fill some rows and labels, given with columns first; y begins with the row `start` of X.

    A sum over the entries of a row is taken in the order of the columns, whatever the storage. Each
    loop over records is over slices, which lets the compiler use vector registers.
    """
    n, width, count = columns.shape[1], rows.shape[0], high - low
    squares = squares[:count]
    squares[:] = 0.0
    for j in range(n):
        lo, hi, gap = columns[0, j], columns[1, j], columns[2, j]
        mid, per = columns[3, j], columns[4, j]
        values, out = X[j, start + low : start + high], rows[j, low:high]
        for i in range(count):
            v = np.float64(values[i])
            v = v if v == v else gap
            v = lo if v < lo else v
            v = hi if v > hi else v
            v = (v - mid) * per
            out[i] = v
            squares[i] += v * v
    for i in range(count):
        if width > n:
            squares[i] += 1.0
            rows[n, low + i] = 1.0
        total = squares[i]
        factor = 1.0
        if total > 0.0:
            factor = min(1.0, label[4] / np.sqrt(total))
        v = y[low + i]
        if np.isnan(v):
            factor = 0.0 if label[7] else factor
            labels[low + i] = 0.0
        else:
            v = (min(max(v, label[0]), label[1]) - label[2]) / label[3]
            labels[low + i] = np.trunc(factor * v * label[6]) * (1.0 / label[6])
        squares[i] = factor
    grid, step = label[5], 1.0 / label[5]
    for j in range(width):
        out = rows[j, low:high]
        for i in range(count):
            out[i] = np.trunc(out[i] * squares[i] * grid) * step


def ordered_residuals(
    X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float
) -> np.ndarray:
    """Residuals y − X @ coef − intercept, the same to the last bit for a row in any block.

    >>> ordered_residuals(np.eye(2), np.ones(2), np.array([0.5, 2.0]), 0.25)
    array([ 0.25, -1.25])
    """
    residuals = np.array(y, dtype=np.float64)
    _subtract(X, coef, residuals)
    residuals -= intercept
    return residuals


def full_residuals(G: np.ndarray, labels: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Residuals of records before their rows and labels were shrunk; NaN for empty records.

    The last entry of a row is the factor by which it was shrunk, because it was 1.
    """
    residuals = np.array(labels, dtype=np.float64)
    _subtract(G, u, residuals)
    factor = G[:, -1]
    return np.divide(residuals, factor, out=np.full(residuals.size, np.nan), where=factor > 0.0)


@njit(nogil=True, cache=True)
def _subtract(G, u, residuals):  # pragma: no cover
    """Subtract each product in the order of the columns, whatever the storage."""
    for j in range(u.size):
        for i in range(residuals.size):
            residuals[i] -= G[i, j] * u[j]
