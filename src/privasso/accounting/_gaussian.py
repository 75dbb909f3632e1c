"""The analytic Gaussian mechanism: (ε, δ) of a Gaussian shift by μ standard deviations.

With t = ε/μ the identity φ(μ/2 − t) = e^ε φ(μ/2 + t) turns the textbook difference

    δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

into δ = φ(t − μ/2)·[R(t − μ/2) − R(t + μ/2)] with the Mills ratio R(x) = (1 − Φ(x))/φ(x). The
exponentially small factor is now explicit, and what is left is the difference of two numbers
of moderate size, or, where they are close, the integral of −R'(x) = 1 − x R(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from privasso._validation import nonnegative_float, positive_float, probability

#: The inverses aim this much below log δ: more than rounding errors, but a negligible loss.
_MARGIN = 1e-6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_LARGE = 50.0
#: Logarithms of the least and the largest double, nearly.
_LEAST, _LARGEST = -740.0, 709.0


def log_gaussian_delta(epsilon: float, mu: float) -> float:
    """Return log δ(ε; μ), accurate also where δ itself is below the smallest float."""
    epsilon = nonnegative_float("epsilon", epsilon)
    mu = nonnegative_float("mu", mu)
    if mu == 0.0:
        return -math.inf
    low, high = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    if low < 0.0:
        # δ is no longer small against its terms, except that both are near ½ when μ is tiny.
        if mu < 0.5:
            return _log_density(low) + math.log(_slope_integral(epsilon / mu, mu))
        return math.log(float(ndtr(-low)) - math.exp(_log_density(low)) * _mills(high))
    if mu <= 0.5 * max(1.0, low):
        difference = _slope_integral(epsilon / mu, mu)
    else:
        difference = _mills(low) - _mills(high)
    # The difference underflows only where the density does.
    return _log_density(low) + math.log(difference) if difference > 0.0 else -math.inf


def gaussian_delta(epsilon: float, mu: float) -> float:
    """δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ).

    The smallest δ for which releasing N(m, S) is (ε, δ)-indistinguishable from releasing
    N(m', S), where μ = ‖S^(−½)(m − m')‖ is the Mahalanobis distance of the means.

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    return math.exp(log_gaussian_delta(epsilon, mu))


@lru_cache(maxsize=128)
def sensitivity_for(epsilon: float, delta: float) -> float:
    """Return the largest μ with δ(ε; μ) ≤ δ, rounded so that the inequality holds strictly.

    The achieved δ lies between 0.999 δ and δ.

    Examples
    --------
    >>> mu = sensitivity_for(1.0, 1e-5)
    >>> round(mu, 4), gaussian_delta(1.0, mu) <= 1e-5
    (0.2681, True)
    """
    epsilon = positive_float("epsilon", epsilon)
    target = math.log(probability("delta", delta)) - _MARGIN
    # δ(ε; μ) < Φ(μ/2 − ε/μ), so the μ at which that bound equals δ is too small.
    z = float(ndtri(math.exp(target)))
    root = math.hypot(z, math.sqrt(2.0 * epsilon))
    low = 2.0 * epsilon / (root - z) if z < 0.0 else root + z

    def excess(log_mu: float) -> float:
        return log_gaussian_delta(epsilon, math.exp(log_mu)) - target

    at = math.log(low)
    return math.exp(_root(excess, *_bracket(excess, at, 0.1)))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the smallest ε ≥ 0 with δ(ε; μ) ≤ δ, rounded up; inf where no double is large enough.

    Examples
    --------
    >>> round(gaussian_epsilon(1e-5, sensitivity_for(1.0, 1e-5)), 4)
    1.0
    """
    target = math.log(probability("delta", delta)) - _MARGIN * 1e-3
    mu = nonnegative_float("mu", mu)
    if log_gaussian_delta(0.0, mu) <= target:
        return 0.0

    def excess(epsilon: float) -> float:
        return target - log_gaussian_delta(epsilon, mu)

    high = mu * (mu / 2.0 - float(ndtri(math.exp(target))))
    high = max(high, 1e-300) * (1.0 + 1e-9)
    if math.isinf(high):
        return math.inf
    root, step = _root(excess, 0.0, high), 1e-14
    while math.isfinite(root) and not excess(root) >= 0.0:
        root, step = math.nextafter(root, math.inf) * (1.0 + step), 2.0 * step
    return root


def _log_density(x: float) -> float:
    return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)


def _mills(x: float) -> float:
    """R(x) = (1 − Φ(x))/φ(x)."""
    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


def _slope_integral(middle: float, width: float) -> float:
    """∫ (1 − x R(x)) dx over an interval short against the scale on which R varies."""
    x = middle + 0.5 * width * _NODES
    near = np.minimum(x, _LARGE)
    slope = 1.0 - near * math.sqrt(math.pi / 2.0) * erfcx(near / math.sqrt(2.0))
    far = (1.0 / np.maximum(x, _LARGE)) ** 2
    series = far * (1.0 + far * (-3.0 + far * (15.0 + far * (-105.0 + far * 945.0))))
    values = np.where(x > _LARGE, series, slope)
    return float(0.5 * width * (_WEIGHTS @ values))


def _bracket(excess: Callable[[float], float], low: float, step: float) -> tuple[float, float]:
    """Logarithms of numbers between which `excess` becomes positive, found in growing steps."""
    down, up = step, step
    while excess(low) > 0.0 and low > _LEAST:
        low, down = low - down, 2.0 * down
    high = low + up
    while excess(high) <= 0.0 and high < _LARGEST:
        high, up = min(high + up, _LARGEST), 2.0 * up
    return low, high


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq  # slow to import

    return float(brentq(excess, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))  # pyright: ignore[reportArgumentType]
