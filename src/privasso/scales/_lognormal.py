"""Scales whose logarithm is Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from privasso._validation import nonnegative_float, real_float
from privasso.scales._law import FloatArray, ScaleLaw

# Farthest node of the quadrature in standard deviations: exp(-37²/2) is still a normal float.
_FARTHEST = 37.0
# Half-width that cuts off less than 1e-16 of the Gaussian mass.
_BULK = 8.5
# The weight of v**k sits 2kσ from the centre; moments up to this |k| lose nothing to truncation.
_HIGHEST_MOMENT = 3.0


@dataclass(frozen=True)
class LogNormal(ScaleLaw):
    """log s ~ N(mu, sigma²), so that E[v**k] = exp(2kμ + 2k²σ²) is finite for every k.

    Parameters
    ----------
    mu, sigma : float
        Mean and standard deviation of log s (not of log v, which has twice both). sigma = 0
        puts all mass at exp(mu).

    Examples
    --------
    >>> from privasso import LogNormal
    >>> LogNormal(mu=0.0, sigma=0.5).moment(1)  # exp(½)
    1.6487212707001282
    >>> LogNormal().inverse_mean_is_finite
    True
    """

    mu: float = 0.0
    sigma: float = 0.5

    def __post_init__(self) -> None:
        mu, sigma = real_float("mu", self.mu), nonnegative_float("sigma", self.sigma)
        if 2.0 * (abs(mu) + _FARTHEST * sigma) > 690.0:
            raise ValueError(
                f"mu={mu!r} and sigma={sigma!r} put v = s² outside the range of a float; "
                "keep |mu| + 37·sigma below 345 (both are on the log scale)"
            )
        object.__setattr__(self, "mu", mu)
        object.__setattr__(self, "sigma", sigma)

    @property
    def inverse_mean_is_finite(self) -> bool:
        """Always true: E[1/v] = exp(-2μ + 2σ²)."""
        return True

    def _draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        return rng.lognormal(self.mu, self.sigma, shape)

    def _quantile(self, p: FloatArray) -> FloatArray:
        if self.sigma == 0.0:  # 0·ndtri(0) would be NaN
            return np.full(p.shape, math.exp(self.mu))
        return np.exp(self.mu + self.sigma * ndtri(p))

    def _quadrature(self, n: int) -> tuple[FloatArray, FloatArray]:
        # Midpoint rule in z = (log s - mu)/sigma on [-T, T]. On the whole line its error for a
        # Gaussian times exp(cz) is exp(-2π²/h²) with step h = 2T/n, and the truncation costs
        # about exp(-T²/2); T² = πn balances the two. Beyond the width where truncation no longer
        # matters, more nodes make the step smaller instead, which is what functions with a
        # narrow strip of analyticity need, such as exp(-1/v). Gauss–Hermite is no alternative:
        # its outer weights underflow to zero from n ≈ 380 and most of its nodes are wasted.
        enough = min(_BULK + 2.0 * _HIGHEST_MOMENT * self.sigma, _FARTHEST)
        half_width = min(math.sqrt(math.pi * n), enough)
        z = half_width * (2.0 * np.arange(n) + 1.0 - n) / n
        weights = np.exp(-0.5 * z * z)
        return np.exp(2.0 * (self.mu + self.sigma * z)), weights / np.sum(weights)

    def _moment(self, k: float) -> float:
        return math.exp(2.0 * k * self.mu + 2.0 * (k * self.sigma) ** 2)
