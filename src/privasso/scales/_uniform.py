"""Scales spread evenly over an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import roots_legendre

from privasso._validation import nonnegative_float, positive_float, squarable
from privasso.scales._law import FloatArray, ScaleLaw


@dataclass(frozen=True)
class Uniform(ScaleLaw):
    """s uniform on (low, high], with 0 <= low < high.

    With low = 0 there are columns of arbitrarily small scale and E[v**k] = E[s**(2k)] diverges
    for k <= -1/2; in particular E[1/v] is infinite.

    Parameters
    ----------
    low, high : float
        Ends of the interval of s (not of v).

    Examples
    --------
    >>> from privasso import Uniform
    >>> law = Uniform(1.0, 2.0)
    >>> law.moment(-1)  # E[1/s²] = 1/(low·high)
    0.5
    >>> law.inverse_mean_is_finite, Uniform().inverse_mean_is_finite
    (True, False)
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low = squarable("low", nonnegative_float("low", self.low))
        high = squarable("high", positive_float("high", self.high))
        if high <= low:
            raise ValueError(
                f"high must exceed low, not low={low!r} and high={high!r}; "
                "use Constant for a single value"
            )
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Whether E[1/v] = 1/(low·high) is finite, that is whether low > 0."""
        return self.low > 0.0

    def _quantile(self, p: FloatArray) -> FloatArray:
        # A convex combination is exact at both ends; clipping absorbs a last-digit excess.
        return np.clip(self.low * (1.0 - p) + self.high * p, self.low, self.high)

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        p, weights = _gauss_legendre(n)
        s = self.low * (1.0 - p) + self.high * p
        return s * s, weights.copy()

    def _moment(self, k: float) -> float:
        # E[v**k] = (high**p - low**p) / (p (high - low)) with p = 2k + 1. Near p = 0 and near
        # high = low the difference cancels, so it is written as an expm1 of p·log(low/high);
        # factoring out the larger of the two powers keeps that exponent negative.
        low, high, p = self.low, self.high, 2.0 * k + 1.0
        if low == 0.0:
            return high ** (2.0 * k) / p if p > 0.0 else math.inf
        width = high - low
        log_ratio = (
            math.log1p(-width / high) if 2.0 * low > high else math.log(low) - math.log(high)
        )
        if p == 0.0:
            return -log_ratio / width
        anchor = high if p > 0.0 else low
        return anchor ** (2.0 * k) * (anchor / width) * -math.expm1(abs(p) * log_ratio) / abs(p)


@lru_cache(maxsize=16)
def _gauss_legendre(n: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes on (0, 1) and weights that sum to 1, read-only because shared."""
    x, weights = roots_legendre(n)
    p = 0.5 * (1.0 + x)
    weights = weights / np.sum(weights)
    p.flags.writeable = weights.flags.writeable = False
    return p, weights
