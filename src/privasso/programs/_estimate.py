"""Ranges and scales of columns that are found in the data with noise, before the fit."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from privasso._validation import separated
from privasso.programs._magnitudes import LARGEST, Magnitudes
from privasso.programs._records import half_ranges, held_records
from privasso.queries import EMPTIED, ROUNDING, Ask, Neighbours, NoisySum, Summand

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


def noisy_scales(ask: Ask, query: NoisySum, *, centred: bool) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale of columns with values in [−1, 1]; see `noisy_moments`."""
    return noisy_moments(ask, query, centred=centred)[:2]


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
        centre, scale = noisy_scales(ask, query, centred=centred)
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
