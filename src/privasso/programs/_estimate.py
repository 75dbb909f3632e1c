"""Ranges and scales of columns that are found in the data with noise, before the fit.

For ranges the rows are counted, for each column, in bins (2^(e−1), 2^e], the same below zero, and
one at zero. A record is in one bin per column, so that an emptied record changes N counts by one,
and the counts of all columns together by √N in the Euclidean norm. Gaussian noise on all counts is
the only step that reads the data; ranges are chosen from the noisy counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import ndtri

from privasso._validation import separated
from privasso.programs._records import half_ranges, held_records
from privasso.queries import EMPTIED, ROUNDING, Ask, Neighbours, NoisySum, Summand

#: Exponents of the largest bin and of the smallest: 2^±64 is about 10^±19.
LARGEST, SMALLEST = 64, -63
_BINS = LARGEST - SMALLEST + 1
_ZERO = _BINS
#: Counts are integers of this many further bits, so that the noise is a large integer.
COUNT_BITS = 34
#: A column is found where so many neighbouring bins are too full for noise. One false column, with
#: a range far from its values, would spoil the fit: the probability of one among all is below this.
_WINDOWS, _FALSE = (1, 3), 1e-4
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

    unit = COUNT_BITS
    sentence = "noisy counts of the magnitudes of the columns"

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Counts of the bins of all columns, one column after the other."""
        n, size = len(self.bounds), 2 * _BINS + 1
        places = magnitude_bins(held_records(X, y, self.bounds)) + size * np.arange(n)
        return np.bincount(places.ravel(), minlength=n * size).astype(np.int64) << COUNT_BITS

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """√N, and √(2N) where a record may be in other bins than before."""
        n, size = len(self.bounds), 2 * _BINS + 1
        squared = n if neighbours.relation == "emptied" else 2 * n
        return np.full(n * size, math.sqrt(squared) * 2.0**COUNT_BITS)


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
        return cls(counts, math.ldexp(float(query.deviations[0]), -COUNT_BITS), ask.n_rows)

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Low and high of each column, and which columns were found at all.

        A column is found where one or three neighbouring magnitudes hold more than noise explains
        in any of all columns, up to a probability of 1e-4. From the fullest of them the range
        grows by factors of two; each must bring 0.5 % of the rows and 1.5 deviations of noise.
        A side of zero with next to no rows is left out, and so is the inner half of the other
        side. A column that is not found has the range (0, 0).
        """
        below, above = self.counts[:, :_BINS], self.counts[:, _BINS + 1 :]
        zero = self.counts[:, _ZERO]
        both = below + above
        first, found = self._fullest(below, above)
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
        ranges[~found] = 0.0
        return ranges, found

    def _fullest(self, below: np.ndarray, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The fullest bin of the fullest window, and whether noise alone would not fill it.

        Windows of one bin and of several, on one side of zero or on both, are compared by how many
        deviations of their noise they hold.
        """
        n = below.shape[0]
        rows, tests = np.arange(n), 0
        best, first = np.full(n, -np.inf), np.zeros(n, dtype=np.int64)
        for counts, bins in ((below, 1), (above, 1), (below + above, 2)):
            for window in _WINDOWS:
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


#: Values in [−1, 1] are integers of this many bits, and their squares of twice as many.
_BITS = 16
#: Mean and variance of z² for z uniform in [−1, 1], and variance of z: what is believed beforehand.
_SQUARE, _SQUARE_VARIANCE, _VARIANCE = 1.0 / 3.0, 4.0 / 45.0, 1.0 / 3.0
#: A scale is not taken to be below this part of half the range.
_SMALLEST = 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class ScaleSums(Summand):
    """z_i and z_i² − ½ of each column, z = (x − middle)/half in [−1, 1]; nothing of empty records.

    Attributes
    ----------
    bounds : ndarray of shape (N, 2)
        Values outside are clipped.
    middle, half : ndarray of shape (N,)
        Middle and half width of the range of each column.
    columns : ndarray of int or None
        See `Summand`.
    """

    bounds: np.ndarray = field(repr=False)
    middle: np.ndarray = field(repr=False)
    half: np.ndarray = field(repr=False)
    columns: np.ndarray | None = field(default=None, repr=False)

    unit = 2 * _BITS
    sentence = "noisy sums of the columns"

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Σ k·2^16 and Σ k² − 2^31 of the integers k = rint(2^16 z), in units of 2^−32."""
        held = held_records(X, y, self.bounds)
        Z = (held - self.middle) / np.where(self.half > 0.0, self.half, 1.0)
        k = np.rint(np.ldexp(np.clip(Z, -1.0, 1.0), _BITS)).astype(np.int64)
        middle = len(k) << (2 * _BITS - 1)
        return np.concatenate([k.sum(axis=0) << _BITS, (k * k).sum(axis=0) - middle])

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """√(5N/4), and √(4N) for two records: z² + (z² − ½)² ≤ 5/4 in each column."""
        per_column = 1.25 if neighbours.relation == "emptied" else 4.0
        n = len(self.bounds)
        return np.full(2 * n, math.ldexp(math.sqrt(per_column * n), 2 * _BITS) * ROUNDING)


def noisy_moments(
    ask: Ask, query: NoisySum, *, centred: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Centre and scale of columns with values in [−1, 1], and squares of scales with their doubt.

    The sums become the means that are to be expected after them, for columns that are uniform in
    [−1, 1] as far as is known beforehand. So where the noise hides the moments, a column keeps the
    centre and the scale of its range.

    Parameters
    ----------
    ask : Ask
        Who answers.
    query : NoisySum
        Of `ScaleSums`.
    centred : bool
        Whether the scale is a deviation from the centre; if not, from zero, and the centre is zero.
    """
    noisy, n_rows = ask(query), ask.n_rows
    n = len(noisy) // 2
    # The means of all records; variance of their noise.
    first, second = noisy[:n] / n_rows, noisy[n:] / n_rows + 0.5
    variance = (math.ldexp(float(query.deviations[0]), -2 * _BITS) / n_rows) ** 2
    first = np.clip(first * _VARIANCE / (_VARIANCE + variance), -1.0, 1.0)
    weight = _SQUARE_VARIANCE / (_SQUARE_VARIANCE + variance)
    second = _SQUARE + weight * (second - _SQUARE)
    if not centred:
        first = np.zeros(n)
    doubt, squares = math.sqrt(weight * variance), second - first**2
    scale = np.sqrt(np.clip(squares, max(doubt, _SMALLEST**2), 1.0))
    return first, scale, np.clip(squares, 0.0, 1.0), doubt


@dataclass(frozen=True)
class Estimate:
    """What is released about the columns before the fit.

    Attributes
    ----------
    mu : float
        Sensitivity of each release.
    scales : bool
        Whether centres and scales are found too, not ranges alone.
    bounded : bool
        Whether there are public bounds, which a column keeps whose range is lost in the noise.
        Without them such a column is left out.
    neighbours : Neighbours
        How data sets differ.
    """

    mu: float
    scales: bool
    bounded: bool
    neighbours: Neighbours = EMPTIED

    def ranges(self, ask: Ask, bounds: np.ndarray) -> np.ndarray:
        """Low and high of each column within its bounds, from noisy counts."""
        ranges, found = Magnitudes.asked(ask, bounds, self.mu, self.neighbours).ranges()
        return _within(ranges, found, bounds) if self.bounded else ranges

    def scaling(
        self, ask: Ask, bounds: np.ndarray, *, centred: bool
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Centre and scale of each column within its range, from noisy sums, if wanted."""
        if not self.scales:
            return None
        middle, half = half_ranges(bounds, centred)
        query = NoisySum(ScaleSums(bounds, middle, half), self.mu, self.neighbours)
        centre, scale, *_ = noisy_moments(ask, query, centred=centred)
        return middle + half * centre, half * scale


def widest_bounds(n_columns: int) -> np.ndarray:
    """Bounds of columns about which nothing is known: the ends of the grid of magnitudes."""
    return np.tile([-(2.0**LARGEST), 2.0**LARGEST], (n_columns, 1))


def _within(ranges: np.ndarray, found: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Ranges cut to the bounds; a column that was not found keeps its bounds.

    So does one of whose range hardly anything lies within them.

    >>> ranges = np.array([[-8.0, 8.0], [0.0, 0.0], [4.0, 8.0]])
    >>> bounds = np.array([[0.0, 100.0], [-2.0, 2.0], [9.0, 10.0]])
    >>> _within(ranges, np.array([True, False, True]), bounds).tolist()
    [[0.0, 8.0], [-2.0, 2.0], [9.0, 10.0]]
    """
    low, high = np.maximum(ranges[:, 0], bounds[:, 0]), np.minimum(ranges[:, 1], bounds[:, 1])
    usable = found & separated(low, high)
    return np.where(usable[:, None], np.stack([low, high], axis=1), bounds)
