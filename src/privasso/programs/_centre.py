"""A centre of the labels, from noisy sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from privasso.programs._records import bounded_labels
from privasso.queries import Ask, Neighbours, NoisySum, Summand

#: Clipped labels are integers of this many bits.
CENTRE_BITS = 34
#: Rows whose sums fit 64 bits.
_ROWS = 1 << 20
#: Sums that are released: one of all labels, the others of labels clipped around the centre so far.
STEPS = 3
#: Which part of the labels is taken not to be clipped.
_INSIDE = 0.6


@dataclass(frozen=True, eq=False)
class ClippedLabels(Summand):
    """Labels between their bounds, clipped around a centre, as integers.

    Attributes
    ----------
    y_bounds : (float, float)
        Bounds of the labels.
    centre, radius : float
        Each adds clip(y − c, ±r)/r.
    empty : bool
        Whether a record whose label is NaN is empty and adds nothing; where labels alone are
        private, a missing one counts as the middle of the bounds.
    """

    y_bounds: tuple[float, float]
    centre: float
    radius: float
    empty: bool = True

    unit = CENTRE_BITS
    sentence = "noisy sums of clipped labels"
    columns = np.empty(0, dtype=np.intp)

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The sum."""
        labels = bounded_labels(np.asarray(y, np.float64), self.y_bounds, empty=self.empty)
        return np.array([clipped_total(labels, self.centre, self.radius, 1 << CENTRE_BITS)])

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """One clipped label, or the difference of two."""
        return np.array([math.ldexp(1.0 if neighbours.relation == "emptied" else 2.0, CENTRE_BITS)])


def noisy_centre(
    ask: Ask,
    y_bounds: tuple[float, float],
    radius: float,
    mu: float,
    neighbours: Neighbours,
) -> float:
    """Return a centre c for which Σ_μ clip(y_μ − c, ±r) is near zero, from three noisy sums.

    Each is a Gaussian mechanism with the sensitivity μ/√3, so that all have μ together. The first
    one gives the mean; the others are steps of Newton's method towards the centre of the clipped
    labels, with a public guess of the slope.

    Parameters
    ----------
    ask : Ask
        Who answers.
    y_bounds : (float, float)
        Bounds of the labels.
    radius : float
        r.
    mu : float
        Sensitivity of the three sums together.
    neighbours : Neighbours
        How data sets differ.
    """
    low, high = y_bounds
    half = 0.5 * high - 0.5 * low
    centre, within, slope = low + half, half, 1.0
    for _ in range(STEPS):
        labels = ClippedLabels(y_bounds, centre, within, empty=neighbours.empties)
        query = NoisySum(labels, mu / math.sqrt(STEPS) * (1.0 - 1e-15), neighbours)
        mean = float(ask(query)[0]) / ask.n_rows
        step = min(max(mean / slope, -1.0), 1.0)
        centre = min(max(centre + within * step, low), high)
        within, slope = min(radius, half), _INSIDE
    return centre


def clipped_integers(y: np.ndarray, centre: float, radius: float, largest: int) -> np.ndarray:
    """The integers nearest to clip(y − c, ±r)·largest/r, for each label by itself.

    A label that is NaN becomes zero: its record is an empty one and contributes nothing.

    Examples
    --------
    >>> clipped_integers(np.array([0.0, 1.25, 9.0, np.nan]), 1.0, 0.5, 1000).tolist()
    [-1000, 500, 1000, 0]
    """
    found = np.empty(len(y), dtype=np.int64)
    _integers(np.asarray(y, dtype=np.float64), float(centre), float(radius), float(largest), found)
    return found


def clipped_total(y: np.ndarray, centre: float, radius: float, largest: int) -> int:
    """The sum of `clipped_integers`.

    Examples
    --------
    >>> clipped_total(np.array([0.0, 1.25, 9.0, np.nan]), 1.0, 0.5, 1000)
    500
    """
    labels, total = np.asarray(y, dtype=np.float64), 0
    for start in range(0, len(labels), _ROWS):
        part = labels[start : start + _ROWS]
        total += int(_total(part, float(centre), float(radius), float(largest)))
    return total


@njit(nogil=True, cache=True, inline="always")
def _integer(y, centre, radius, largest):  # pragma: no cover
    relative = (y - centre) / radius
    relative = -1.0 if relative < -1.0 else relative
    relative = 1.0 if relative > 1.0 else relative
    return np.rint(relative * largest) if relative == relative else 0.0


@njit(nogil=True, cache=True)
def _integers(y, centre, radius, largest, found):  # pragma: no cover
    for i in range(y.size):
        found[i] = np.int64(_integer(y[i], centre, radius, largest))


@njit(nogil=True, cache=True)
def _total(y, centre, radius, largest):  # pragma: no cover
    total = np.int64(0)
    for i in range(y.size):
        total += np.int64(_integer(y[i], centre, radius, largest))
    return total
