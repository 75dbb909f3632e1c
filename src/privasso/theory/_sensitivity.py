"""The label sensitivity of noise in a model, set by the largest row norm, without data.

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
from typing import SupportsIndex

import numpy as np
from scipy.special import ndtri

from privasso._validation import integer
from privasso.model import Model
from privasso.noise import NoiseDesign, PowerLaw
from privasso.scales import Constant, Empirical
from privasso.theory._nodes import REFINEMENTS, Nodes, Tail, columns, quadrature, tail_exponent
from privasso.theory._state_evolution import check
from privasso.theory._system import FloatArray

#: With fewer than three rows the median of the largest is near the mean, where the expansion
#: degenerates; a quantile a little further up is used, which overstates the sensitivity.
_LARGEST_TAIL = 0.2


def label_sensitivity(
    model: Model, noise: NoiseDesign, *, n_features: SupportsIndex | None = None
) -> float:
    """Predict μ = max_k (Σ_i f_ki²/σ_i²)^½ over the rows f_k, for labels in an interval of width 1.

    In the limit of many columns every row has μ² = E[v/σ_η²(v)]. With n_features the columns are
    the quantiles of the law, and the answer is the median of the maximum over M = αN rows (see
    `docs/design.md`). Multiply by the width of the label bounds, and compare with `LabelDP.mu`.
    A fit computes the maximum from its own rows; this predicts it without data.

    It is inf where small columns get too little noise: no level of this noise then protects the
    labels in the limit of many columns.
    """
    check(model, noise)
    count = None if n_features is None else integer("n_features", n_features, minimum=1)
    if noise.sigma == 0.0:
        return math.inf
    unit = noise.with_sigma(1.0)
    law = model.scales
    if count is None and not isinstance(law, (Constant, Empirical)):
        gamma = tail_exponent(law, unit)
        if gamma == math.inf or not math.isfinite(law.moment(1.0 - gamma)):
            return math.inf
        if isinstance(unit, PowerLaw):
            return math.sqrt(law.moment(gamma) * law.moment(1.0 - gamma)) / noise.sigma
        bounded = bool(np.isfinite(law.quantile([1.0])[0]))
        nodes: Nodes | None = quadrature(
            law, unit, REFINEMENTS - 1, Tail.SLOW if bounded else Tail.LIGHT
        )
    else:
        nodes = columns(law, unit, count)
    assert nodes is not None
    with np.errstate(divide="ignore", over="ignore"):
        ratios = nodes.v / nodes.profile
    # A node so small that its variance underflows has no weight either.
    counted = nodes.w * ratios > 0.0 if count is not None else nodes.profile > 0.0
    if not np.isfinite(ratios[counted]).all():
        return math.inf
    squared, _ = largest_row_norm(ratios[counted], nodes.w[counted], count, model.alpha)
    return math.sqrt(squared) / noise.sigma


def largest_row_norm(
    ratios: FloatArray, w: FloatArray, n_features: int | None, alpha: float
) -> tuple[float, FloatArray]:
    """max_k Σ_i f_ki²/σ_i² over the rows f_k, and its derivatives in log(v/σ²).

    `ratios` are v/σ_η²(v) on columns of weights `w` that sum to 1. Without n_features, in the limit
    of many columns, every row has the mean E[v/σ_η²(v)].
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
