"""Ranges of columns from noisy counts on a public logarithmic grid.

For each column the rows are counted in bins (2^(e−1), 2^e], the same below zero, and one at zero. A
record is in one bin per column, so that an emptied record changes N counts by one, and the counts
of all columns together by √N in the Euclidean norm. Gaussian noise on all counts is the only step
that reads the data; ranges are chosen from the noisy counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtri

from privasso.programs._records import held_records
from privasso.queries import EMPTIED, Ask, Neighbours, NoisySum, Summand

#: Exponents of the largest bin and of the smallest: 2^±64 is about 10^±19.
LARGEST, SMALLEST = 64, -63
_BINS = LARGEST - SMALLEST + 1
_ZERO = _BINS
#: Counts are integers of this many further bits, so that the noise is a large integer.
_COUNT_BITS = 34
#: A column is found where so many neighbouring bins are too full for noise. One false column, with
#: a range far from its values, would spoil the fit: the probability of one among all is below this.
_WINDOWS, _FALSE = (1, 3), 1e-4
#: Further bins together where the likeliest range is taken, as of labels over many magnitudes.
_WIDEST = 7
#: A range is made twice as wide only for this part of the rows, or so many deviations of noise.
_PART, _TIMES = 0.005, 1.5
#: Where noise can hide more than this part of the rows in a bin, ranges are made wider.
_MANY = 0.075
#: A side of zero, or the inner half of one, is left out if at most this part of the rows is in its
#: so many largest bins, and certainly not more than the second.
_EMPTY, _SURELY, _SIDE = 0.02, 0.15, 6


@dataclass(frozen=True, eq=False)
class MagnitudeCounts(Summand):
    """One for the bin of each column that a record is in, and nothing for an empty record.

    Attributes
    ----------
    bounds : ndarray of shape (N, 2)
        Public bounds of the columns.
    """

    bounds: np.ndarray = field(repr=False)

    unit = _COUNT_BITS
    sentence = "noisy counts of the magnitudes of the columns"

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Counts of the bins of all columns, one column after the other."""
        n, size = len(self.bounds), 2 * _BINS + 1
        places = magnitude_bins(held_records(X, y, self.bounds)) + size * np.arange(n)
        return np.bincount(places.ravel(), minlength=n * size).astype(np.int64) << _COUNT_BITS

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """√N, and √(2N) where a record may be in other bins than before."""
        n, size = len(self.bounds), 2 * _BINS + 1
        squared = n if neighbours.relation == "emptied" else 2 * n
        return np.full(n * size, math.sqrt(squared) * 2.0**_COUNT_BITS)


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """Noisy counts of the magnitudes of all columns; the guarantee covers them.

    Attributes
    ----------
    counts : ndarray of shape (N, 257)
        Bins below zero from small to large magnitudes, zero, then those above zero likewise.
    sigma : float
        Standard deviation of the noise on each count.
    n_rows : int
        Number of rows.
    """

    counts: np.ndarray = field(repr=False)
    sigma: float
    n_rows: int

    @classmethod
    def asked(
        cls, ask: Ask, bounds: np.ndarray, mu: float, neighbours: Neighbours = EMPTIED
    ) -> Magnitudes:
        """Ask for counts, such that one record changes the counts by μ deviations at most."""
        query = NoisySum(MagnitudeCounts(bounds), mu, neighbours)
        counts = ask(query).reshape(len(bounds), -1)
        return cls(counts, math.ldexp(float(query.deviations[0]), -_COUNT_BITS), ask.n_rows)

    def ranges(self, *, certain: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """Low and high of each column, and which columns were found at all.

        A column is found where one or three neighbouring magnitudes hold more than noise explains
        in any of all columns, up to a probability of 1e-4. From the fullest of them the range
        grows by factors of two; each must bring 0.5 % of the rows and 1.5 deviations of noise.
        A side of zero with next to no rows is left out, and so is the inner half of the other
        side. A column that is not found has the range (0, 0), or the likeliest one if it need not
        be certain.
        """
        below, above = self.counts[:, :_BINS], self.counts[:, _BINS + 1 :]
        zero = self.counts[:, _ZERO]
        both = below + above
        windows = _WINDOWS if certain else (*_WINDOWS, _WIDEST)
        first, found = self._fullest(below, above, windows)
        top = self._grown(both, first)
        seen = np.zeros_like(both)
        place = np.arange(_BINS)
        seen[(place > top[:, None] - _SIDE) & (place <= top[:, None])] = 1.0
        deviation = math.sqrt(_SIDE) * self.sigma
        few = max(_EMPTY * self.n_rows, deviation)
        few = min(few, _SURELY * self.n_rows - 2.0 * deviation)
        sides = [np.sum(seen * part, axis=1) for part in (below, above)]
        # With both sides in doubt both are kept.
        absent = [sides[0] < np.minimum(few, sides[1]), sides[1] < np.minimum(few, sides[0])]
        high = np.exp2(top + SMALLEST)
        ranges = np.stack([np.where(absent[0], 0.0, -high), np.where(absent[1], 0.0, high)], axis=1)
        last = place == top[:, None]
        for side, part, empty in ((1, above, absent[0]), (0, below, absent[1])):
            inner = np.sum(np.where(last, 0.0, seen * part), axis=1) + zero
            half = empty & (inner < few)
            ranges[half, 1 - side] = 0.5 * ranges[half, side]
        if certain:
            ranges[~found] = 0.0
        return ranges, found

    def _fullest(
        self, below: np.ndarray, above: np.ndarray, windows: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """The fullest bin of the fullest window, and whether noise alone would not fill it.

        Windows of one bin and of several, on one side of zero or on both, are compared by how many
        deviations of their noise they hold.
        """
        n = below.shape[0]
        rows, tests = np.arange(n), 0
        best, first = np.full(n, -np.inf), np.zeros(n, dtype=np.int64)
        for counts, bins in ((below, 1), (above, 1), (below + above, 2)):
            for window in windows:
                sums = sliding_window_view(counts, window, axis=1).sum(axis=2)
                sums /= math.sqrt(bins * window) * self.sigma
                tests += sums.size
                start = np.argmax(sums, axis=1)
                better = sums[rows, start] > best
                inside = np.stack([counts[rows, start + k] for k in range(window)], axis=1)
                fullest = start + np.argmax(inside, axis=1)
                first = np.where(better, fullest, first)
                best = np.maximum(best, sums[rows, start])
        return first, best > -float(ndtri(_FALSE / tests))

    def _grown(self, both: np.ndarray, first: np.ndarray) -> np.ndarray:
        """The last bin: the best sum of counts outwards from the first, less a price for each."""
        price = max(_TIMES * math.sqrt(2.0) * self.sigma, _PART * self.n_rows)
        place = np.arange(_BINS)
        gains = np.where(place > first[:, None], both - price, 0.0)
        worth = np.cumsum(gains, axis=1)
        top = np.argmax(np.where(place >= first[:, None], worth, -np.inf), axis=1)
        # Where noise can hide many rows, a range that is too wide does less harm.
        wider = max(0, math.ceil(math.log2(price / (_MANY * self.n_rows))))
        return np.minimum(top + wider, _BINS - 1)


def magnitude_bins(X: np.ndarray) -> np.ndarray:
    """Bin of each number: (2^(e−1), 2^e] with its sign, or zero."""
    fraction, exponent = np.frexp(np.abs(X))
    exponent = exponent - (fraction == 0.5)
    exponent = np.where(np.isinf(X), LARGEST, np.minimum(exponent, LARGEST))
    place = exponent - SMALLEST
    sided = np.where(X > 0.0, _ZERO + 1 + place, place)
    return np.where((X == 0.0) | (place < 0), _ZERO, sided)
