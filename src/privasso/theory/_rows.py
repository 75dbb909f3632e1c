"""The largest row norm, which sets the label sensitivity, predicted without data.

A row f of the model has f_i ~ N(0, v_i/N), so its squared Mahalanobis norm is a weighted sum of
independent χ²₁ variables,

    T = Σ_i f_i²/σ_i² = Σ_i a_i Z_i²,    a_i = v_i/(N σ_i²),

of mean E[v/σ_η²(v)] and variance (2/N) E[(v/σ_η²(v))²]. The release is calibrated to the largest
of M rows; its median is the 2^(−1/M) quantile of T. The tail of T is taken from the saddlepoint:
with the cumulant function K(t) = −½ Σ log(1 − 2a_i t), and x = K'(t),

    P(T > x) ≈ Q(r*),  r* = r + log(d/r)/r,  r = √(2(tx − K)),  d = t √K''.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

FloatArray = NDArray[np.float64]

#: With fewer than three rows the median of the largest is near the mean, where the expansion
#: degenerates; a quantile a little further up is used, which overstates the sensitivity.
_LARGEST_TAIL = 0.2


def largest_row_norm(
    ratios: FloatArray, w: FloatArray, n_features: int | None, alpha: float
) -> tuple[float, FloatArray]:
    """max_k Σ_i f_ki²/σ_i² over the rows f_k, and its derivatives in log(v/σ²).

    Parameters
    ----------
    ratios : ndarray
        v/σ_η²(v) on columns of weights `w` that sum to 1.
    n_features : int or None
        N; None is the limit of many columns, where every row has the mean E[v/σ_η²(v)].
    alpha : float
        M/N.

    Examples
    --------
    Equal columns: the median of the largest of 500 variables χ²₁₀₀₀/1000.

    >>> import numpy as np
    >>> from scipy.stats import chi2
    >>> found, _ = largest_row_norm(np.ones(1), np.ones(1), 1000, 0.5)
    >>> round(found, 4), round(float(chi2.ppf(0.5 ** (1 / 500), 1000)) / 1000, 4)
    (1.1391, 1.1391)
    """
    if n_features is None:
        parts = w * ratios
        return float(np.sum(parts)), parts
    rows = max(round(alpha * n_features), 1)
    tail = min(-math.expm1(-math.log(2.0) / rows), _LARGEST_TAIL)
    return _quantile(ratios / n_features, w * n_features, -float(ndtri(tail)))


def _quantile(a: FloatArray, counts: FloatArray, z: float) -> tuple[float, FloatArray]:
    """Return the x with r* = z, and its derivatives in log a."""
    top = float(np.max(a))
    a = a / top
    # The saddlepoint is at t = y/(2 + 2y)·(1/max a): y runs over (0, ∞).
    low, high = 0.0, math.inf
    y = 0.5 * z / math.sqrt(0.5 * float(counts @ a**2) + 0.5 * z)
    for _ in range(200):
        cumulants = _cumulants(0.5 * y / (1.0 + y), a, counts)
        miss = _signed_root(*cumulants[:4]) - z
        if miss < 0.0:
            low = y
        else:
            high = y
        # r* grows like √y·const at first, then like √(2 log y): a secant in log y, bracketed.
        slope = _slope(cumulants) * 0.5 * y / (1.0 + y) ** 2
        new = y * math.exp(min(max(-miss / slope, -2.0), 2.0))
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - y) <= 1e-13 * y:
            break
        y = new
    cumulants = _cumulants(0.5 * y / (1.0 + y), a, counts)
    t, K, x, K2 = cumulants[:4]
    # x = K'(t) where r*(t, K, K', K'') stays at z: dt follows from that.
    parts = _partials(t, K, x, K2)
    room = 1.0 - 2.0 * t * a
    by_K = counts * t * a / room
    by_x = counts * a / room**2
    by_K2 = counts * 4.0 * a**2 / room**3
    shift = -(parts[1] * by_K + parts[2] * by_x + parts[3] * by_K2) / _slope(cumulants)
    return top * x, top * (by_x + K2 * shift)


def _cumulants(t: float, a: FloatArray, counts: FloatArray) -> tuple[float, ...]:
    """t, K and its first three derivatives."""
    room = 1.0 - 2.0 * t * a
    b = a / room
    c = counts * b
    cb = c * b
    K = -0.5 * float(counts @ np.log(room))
    return t, K, float(np.sum(c)), 2.0 * float(np.sum(cb)), 8.0 * float(cb @ b)


def _signed_root(t: float, K: float, x: float, K2: float) -> float:
    """r* of the tail at x = K'(t)."""
    r = math.sqrt(2.0 * (t * x - K))
    return r + math.log(t * math.sqrt(K2) / r) / r


def _partials(t: float, K: float, x: float, K2: float) -> tuple[float, float, float, float]:
    """Derivatives of r* in its four arguments."""
    r = math.sqrt(2.0 * (t * x - K))
    log = math.log(t * math.sqrt(K2) / r)
    by_r = 1.0 - (1.0 + log) / (r * r)
    return by_r * x / r + 1.0 / (r * t), -by_r / r, by_r * t / r, 0.5 / (r * K2)


def _slope(cumulants: tuple[float, ...]) -> float:
    """dr*/dt along x = K'(t)."""
    t, K, x, K2, K3 = cumulants
    by_t, by_K, by_x, by_K2 = _partials(t, K, x, K2)
    return by_t + by_K * x + by_x * K2 + by_K2 * K3
