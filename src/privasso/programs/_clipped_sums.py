"""The mean of the residuals of a fit, from a noisy sum, by which its intercept is corrected.

A fit of clipped residuals has their median rather than their mean at zero. Where labels are skewed,
or are zeros and ones, its predictions are off by the difference of the two. The mean is released
with Gaussian noise. As differences are small for most tables and large for some, what is added to
the intercept is their mean given the noisy one, under a prior that mixes two normal laws.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from privasso._tuned import LARGE_SHIFT, SHIFT_NOISE, SHIFT_OFTEN, SHIFT_PART, SMALL_SHIFT
from privasso.accounting import sensitivity_for
from privasso.blocks import View
from privasso.programs._records import bounded_labels
from privasso.queries import EMPTIED, Ask, Neighbours, NoisySum, Summand

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


#: Clipped residuals are integers of this many bits.
_BITS = 34
#: Values of a normal number over which means are taken.
_NORMAL = np.linspace(-8.0, 8.0, 321)


@dataclass(frozen=True, eq=False)
class ResidualSum(Summand):
    """Residuals clipped at the range of the labels, as integers; an empty record adds nothing.

    Attributes
    ----------
    residuals : callable
        Returns the residuals of rows and labels, NaN for an empty record.
    width : float
        Where they are clipped.
    columns, view
        See `Summand`.
    """

    residuals: Callable[[np.ndarray, np.ndarray], np.ndarray]
    width: float
    columns: np.ndarray | None = field(default=None, repr=False)
    view: View | None = field(default=None, repr=False)

    unit = _BITS
    sentence = "a noisy mean of the residuals that corrects the intercept"

    def sums(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The sum."""
        return np.array([clipped_total(self.residuals(X, y), 0.0, self.width, 1 << _BITS)])

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """One clipped residual, the difference of two labels, or of two clipped residuals."""
        # Two rounded integers may differ by slightly more than what they are rounded from.
        return np.array([math.ldexp(_length(neighbours), _BITS) + 2.0])


def _length(neighbours: Neighbours) -> float:
    """How far the sum of clipped residuals of two neighbours can be apart, in clips."""
    return 2.0 if neighbours.unit == "record" and neighbours.relation == "replaced" else 1.0


@dataclass(frozen=True)
class Level:
    """How the mean of residuals is released.

    Attributes
    ----------
    mu : float
        Sensitivity of the sum. A record that is emptied moves it by a clipped residual, and a label
        that is replaced by the difference of two labels: by the range of the labels at most.
    width : float
        Range of the labels, at which residuals are clipped.
    often : float
        Prior chance that the difference is large.
    neighbours : Neighbours
        How data sets differ.
    """

    mu: float
    width: float
    often: float = 0.5
    neighbours: Neighbours = EMPTIED

    def correction(
        self,
        ask: Ask,
        residuals: Callable[[np.ndarray, np.ndarray], np.ndarray],
        *,
        columns: np.ndarray | None = None,
        view: View | None = None,
        n_rows: float | None = None,
    ) -> float:
        """Ask for the mean, and return what is to be added to the intercept.

        Parameters
        ----------
        ask : Ask
            Who answers.
        residuals : callable
            Returns the residuals of rows and labels, in units of `width`.
        columns, view
            Which columns it needs, and what records become before; see `Summand`.
        n_rows : float, optional
            The sum of the weights, where rows have weights of at most 1.
        """
        summand = ResidualSum(residuals, self.width, columns, view)
        total = float(ask(NoisySum(summand, self.mu * (1.0 - 1e-15), self.neighbours))[0])
        n_rows = ask.n_rows if n_rows is None else n_rows
        return self.width * min(max(self.expected(total / n_rows, n_rows), -1.0), 1.0)

    def noise(self, n_rows: float) -> float:
        """Deviation of the noise in the mean, as a part of the range of the labels."""
        return _length(self.neighbours) / (self.mu * n_rows)

    def expected(self, mean: float, n_rows: float) -> float:
        """The difference that is expected from its noisy mean, both as parts of the range.

        It grows with the mean, so that the one can be found from the other.
        """
        return float(self._expected(np.array([mean]), n_rows)[0])

    def _expected(self, means: np.ndarray, n_rows: float) -> np.ndarray:
        variances = np.array([SMALL_SHIFT, LARGE_SHIFT]) ** 2
        both = variances + self.noise(n_rows) ** 2
        logs = -0.5 * means[:, None] ** 2 / both - 0.5 * np.log(both)
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs) * [1.0 - self.often, self.often]
        return weights @ (variances / both) / weights.sum(axis=1) * means

    def error(self, n_rows: float) -> float:
        """The mean square of what is added where there is no difference, in parts of the range."""
        found = self._expected(self.noise(n_rows) * _NORMAL, n_rows)
        return float(np.average(found**2, weights=np.exp(-0.5 * _NORMAL**2)))


@dataclass(frozen=True)
class FromMean:
    """What is summed for the mean of the labels: w(y − m), the bracket clipped at ±1.

    Attributes
    ----------
    ones : float
        Last entry of a row with the weight 1; others have √w times this, and the label √w·y.
    mean : float
        m, as a part of the range of the labels.
    """

    ones: float
    mean: float

    def __call__(self, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """For rows and labels as a fit has them."""
        roots = np.minimum(rows[:, -1] / self.ones, 1.0)
        return roots * np.clip(labels - roots * self.mean, -roots, roots)


def direct_level(
    epsilon: float,
    delta: float,
    n_rows: int,
    *,
    asked: bool | None,
    neighbours: Neighbours = EMPTIED,
) -> Level | None:
    """The correction for a fit of all columns, for residuals in units of the range of the labels.

    It takes a hundredth of the squared sensitivity of a Gaussian mechanism with the whole budget.
    Unless it is `asked` for, there is none where rows are so few that the noise would hide all but
    the largest differences. Both depend on the budget and the number of rows alone.
    """
    if asked is False:
        return None
    level = Level(SHIFT_PART * sensitivity_for(epsilon, delta), 1.0, SHIFT_OFTEN, neighbours)
    return level if asked or level.noise(n_rows) <= SHIFT_NOISE else None
