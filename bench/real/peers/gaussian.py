"""The analytic calibration of the Gaussian mechanism.

Balle and Wang (2018), Improving the Gaussian mechanism for differential privacy: analytical
calibration and optimal denoising. Written apart from privasso, so that the peers of the benchmark
share no code with what they are compared with.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr


def delta_of(epsilon: float, mu: float) -> float:
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), where μ is sensitivity over standard deviation."""
    first = log_ndtr(mu / 2.0 - epsilon / mu)
    second = epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)
    return float(np.exp(first) * -np.expm1(min(second - first, 0.0)))


@cache
def mu_for(epsilon: float, delta: float) -> float:
    """The largest μ with δ(ε) ≤ δ."""
    low, high = 1e-6, 1.0
    while delta_of(epsilon, high) < delta:
        high *= 2.0
    return float(brentq(lambda mu: delta_of(epsilon, mu) - delta, low, high, xtol=1e-12))


def release(
    value: np.ndarray, sensitivity: float, mu: float, rng: np.random.Generator
) -> np.ndarray:
    """One Gaussian mechanism: the value plus noise of standard deviation sensitivity/μ.

    Neighbouring data change the value by at most `sensitivity` in the Euclidean norm. Several
    releases together are one of μ = √(μ₁² + μ₂² + …).
    """
    return value + (sensitivity / mu) * rng.standard_normal(np.shape(value))
