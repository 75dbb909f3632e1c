"""The mean of the residuals of a fit, from a noisy sum, by which its intercept is corrected.

A fit of clipped residuals has their median rather than their mean at zero. Where labels are skewed,
or are zeros and ones, its predictions are off by the difference of the two. The mean is released
with Gaussian noise. As differences are small for most tables and large for some, what is added to
the intercept is their mean given the noisy one, under a prior that mixes two normal laws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privasso.privacy._integer_noise import noise_deviation, noisy_integers
from privasso.privacy._label_centre import clipped_integers
from privasso.privacy._rounded_gaussian import BitSource

#: Clipped residuals are integers of this many bits.
_BITS = 34
#: Deviations of small and large differences, which are equally likely, as parts of the range.
_SMALL, _LARGE = 0.004, 0.1


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
    """

    mu: float
    width: float

    def release(self, residuals: np.ndarray, bits: BitSource) -> float:
        """Return what is to be added to the intercept, from residuals of what was released before.

        Residuals that are NaN are those of empty records and count as zero.

        Examples
        --------
        >>> from privasso.privacy import bit_source
        >>> residuals = np.where(np.arange(5000) % 4 == 0, -1.0, 0.0)
        >>> level = Level(0.1, 1.0).release(residuals, bit_source(np.random.default_rng(0)))
        >>> -0.26 < level < -0.23
        True
        """
        mean = self.noisy_mean(residuals, bits)
        return self.width * min(max(self.expected(mean, residuals.size), -1.0), 1.0)

    def noisy_mean(self, residuals: np.ndarray, bits: BitSource) -> float:
        """The mean of clipped residuals with its noise, as a part of the range of the labels."""
        whole = clipped_integers(residuals, 0.0, self.width, 1 << _BITS)
        total = sum(part.sum().item() for part in np.array_split(whole, whole.size // 2**20 + 1))
        deviation = noise_deviation(math.ldexp(1.0, _BITS), self.mu * (1.0 - 1e-15))
        return float(noisy_integers([total], deviation, _BITS, bits)[0]) / whole.size

    def expected(self, mean: float, n_rows: int) -> float:
        """The difference that is expected from its noisy mean, both as parts of the range.

        Examples
        --------
        >>> level = Level(0.05, 1.0)
        >>> round(level.expected(0.01, 2000), 3), round(level.expected(0.2, 2000), 3)
        (0.003, 0.198)
        """
        noise = 1.0 / (self.mu * n_rows)
        variances = np.array([_SMALL, _LARGE]) ** 2
        logs = -0.5 * mean**2 / (variances + noise**2) - 0.5 * np.log(variances + noise**2)
        weights = np.exp(logs - logs.max())
        return float(weights / weights.sum() @ (variances / (variances + noise**2)) * mean)
