"""A centre of the labels, from noisy sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from privasso.queries import BitSource, noise_deviation, noisy_integers

#: Clipped labels are integers of this many bits.
CENTRE_BITS = 34
#: Rows whose sums fit 64 bits.
_ROWS = 1 << 20
#: Sums that are released: one of all labels, the others of labels clipped around the centre so far.
STEPS = 3
#: Which part of the labels is taken not to be clipped.
_INSIDE = 0.6


def noisy_centre(
    y: np.ndarray,
    y_bounds: tuple[float, float],
    radius: float,
    mu: float,
    bits: BitSource,
    *,
    replaced: bool = False,
    seen: list[float] | None = None,
) -> float:
    """Return a centre c for which Σ_μ clip(y_μ − c, ±r) is near zero, from three noisy sums.

    Each is a Gaussian mechanism with the sensitivity μ/√3, so that all have μ together. The first
    one gives the mean; the others are steps of Newton's method towards the centre of the clipped
    labels, with a public guess of the slope.

    Parameters
    ----------
    y : ndarray of shape (M,)
        Labels.
    y_bounds : (float, float)
        Their bounds.
    radius : float
        r.
    mu : float
        Sensitivity of the three sums together.
    bits : BitSource
        Source of the noise.
    replaced : bool
        Whether neighbours differ in a label that was replaced. Otherwise it is left out.
    seen : list of float, optional
        Gets the noisy means, which are all that is released.

    Examples
    --------
    >>> from privasso.queries import bit_source
    >>> y = np.random.default_rng(0).exponential(1.0, 20_000)
    >>> bits = bit_source(np.random.default_rng(1))
    >>> 0.7 < noisy_centre(y, (0.0, 10.0), 0.5, 0.2, bits) < 0.95  # mean 1, median 0.69
    True
    """
    steps = CentreSteps(y_bounds, radius, mu, replaced)
    return moved_centre(steps, lambda: steps.total(y), y.size, bits, seen)


def moved_centre(
    steps: CentreSteps,
    total: Callable[[], int],
    n_rows: int,
    bits: BitSource,
    seen: list[float] | None,
) -> float:
    """The same from sums of labels that are clipped around the centre so far, wherever they are."""
    for _ in range(STEPS):
        mean = noisy_integers([total()], steps.deviation, CENTRE_BITS, bits)[0] / n_rows
        steps.move(float(mean))
        if seen is not None:
            seen.append(float(mean))
    return steps.centre


class CentreSteps:
    """The centre so far; it moves by noisy means alone.

    Parameters
    ----------
    y_bounds, radius, mu, replaced
        As in `noisy_centre`.

    Examples
    --------
    >>> steps = CentreSteps((0.0, 4.0), 0.5, 0.2, False)
    >>> steps.move(0.25)
    >>> steps.centre
    2.5
    """

    def __init__(
        self, y_bounds: tuple[float, float], radius: float, mu: float, replaced: bool
    ) -> None:
        self.low, self.high = y_bounds
        self.half = 0.5 * self.high - 0.5 * self.low
        self.centre, self.within, self.slope = self.low + self.half, self.half, 1.0
        self.radius = radius
        sensitivity = math.ldexp(2.0 if replaced else 1.0, CENTRE_BITS)
        #: Of the noise in a sum of integers.
        self.deviation = noise_deviation(sensitivity, mu / math.sqrt(STEPS) * (1.0 - 1e-15))

    def total(self, y: np.ndarray) -> int:
        """The sum of labels that are clipped around the centre so far, as an integer."""
        return clipped_total(y, self.centre, self.within, 1 << CENTRE_BITS)

    def log_density(self, mean: float, y: np.ndarray) -> float:
        """The logarithm of the density of the noisy mean, up to a constant."""
        off = math.ldexp(mean, CENTRE_BITS) * y.size - self.total(y)
        return -0.5 * (off / self.deviation) ** 2

    def move(self, mean: float) -> None:
        """Step by a noisy mean."""
        step = min(max(mean / self.slope, -1.0), 1.0)
        self.centre = min(max(self.centre + self.within * step, self.low), self.high)
        self.within, self.slope = min(self.radius, self.half), _INSIDE


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
