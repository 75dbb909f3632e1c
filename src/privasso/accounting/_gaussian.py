"""Functions of normal laws: (ε, δ) of a Gaussian shift, and bounds for objective perturbation.

With t = ε/μ the identity φ(μ/2 − t) = e^ε φ(μ/2 + t) turns the textbook difference

    δ(ε; μ) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)

into δ = φ(t − μ/2)·[R(t − μ/2) − R(t + μ/2)] with the Mills ratio R(x) = (1 − Φ(x))/φ(x). The
exponentially small factor is now explicit, and what is left is the difference of two numbers
of moderate size, or, where they are close, the integral of −R'(x) = 1 − x R(x).

The functions of a vector of ε and one c return logarithms that are never below the true value:
each is raised by more than the rounding errors of its own computation. For a c so large that its
square is no double a bound may be NaN. `np.fmin` then leaves the other bounds that hold as well, of
which one is always δ ≤ 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfcx, log_ndtr, ndtr, ndtri

from privasso._types import Foreign
from privasso._validation import nonnegative_float, positive_float, probability

#: The inverses aim this much below log δ: more than rounding errors, but a negligible loss.
_MARGIN = 1e-6
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
#: Where 1 − x R(x) is taken from its series.
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

    found: Foreign = brentq
    return float(found(excess, low, high, xtol=1e-300, rtol=1e-14, maxiter=500))


Vector = NDArray[np.float64]

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
_PEAK = 1.0 / np.sqrt(2.0 * np.pi)
#: Every logarithm is raised by this much, and by _UNIT for each unit of its own exponent.
_RAISED = 1e-10
_UNIT = 4e-15
#: Beyond ε = FAR · c every δ is below exp(−1e11) for c ≤ 1e6, and ε is taken to be FAR · c.
FAR = 1e6
#: Cells of the integral of the ramp, and how many values of ε are integrated at once.
CELLS, FEW_CELLS = 192, 32
_BATCH = 512
_NEWTON_STEPS = 12
#: Beside the cells, to keep what lies below them from counting.
_SMALL = (1e-30, 1e-12, 1e-6, 1e-4, 1e-3)
#: A step of 1e-14 is beyond all doubles after so many.
_DOUBLINGS = 1100


def log_shift(epsilons: Vector, c: float) -> Vector:
    """Return log G(ε; c), the divergence of N(0, 1) from N(c, 1), for ε of any sign.

    For ε ≥ 0 it is G(ε; c) = Φ(c/2 − ε/c) − e^ε Φ(−c/2 − ε/c), computed as
    φ(low)·[R(low) − R(high)] with low, high = ε/c ∓ c/2 and R the Mills ratio, which is the
    integral of 1 − x R(x) where the two are close. For ε < 0 it is 1 − 2 e^ε Φ(−c/2): the
    divergence of φ(z) from the smaller of φ(z) and φ(z + c).
    """
    found = np.empty_like(epsilons)
    behind = epsilons < 0.0
    if behind.any():
        e = epsilons[behind]
        value = np.exp(e) * erf(c / np.sqrt(8.0)) - np.expm1(e)
        found[behind] = np.log(value) + _RAISED
    ahead = ~behind
    e = np.minimum(epsilons[ahead], FAR * c)
    middle = e / c
    low, high = middle - 0.5 * c, middle + 0.5 * c
    close = c <= 0.5 * np.maximum(1.0, low)
    value = np.empty_like(e)
    value[close] = np.log(_mills_drop(middle[close], c)) - _exponent(low[close])
    far = ~close & (low >= 0.0)
    value[far] = np.log(_mills_ratios(low[far]) - _mills_ratios(high[far])) - _exponent(low[far])
    # Here c > ½ and the difference is above 0.15, so nothing cancels.
    large = ~close & (low < 0.0)
    value[large] = np.log(ndtr(-low[large]) - np.exp(e[large] + log_ndtr(-high[large])))
    found[ahead] = value + _RAISED + _UNIT * high * (1.0 + np.abs(low))
    return np.fmin(found, 0.0)


def log_two_sided(epsilons: Vector, c: float) -> Vector:
    """Return log of the divergence of φ(z) from φ(|z| + c), for ε ≥ 0.

    It is 2 G(ε; c) where ε ≥ c²/2, and 1 − 2 e^ε Φ(−c) below.
    """
    found = np.log(2.0) + log_shift(epsilons, c)
    inner = epsilons < 0.5 * c * c
    if inner.any():
        e = epsilons[inner]
        if c > 0.5:
            value = -np.expm1(np.log(2.0) + e + log_ndtr(-c))
        else:
            value = np.exp(e) * erf(c / np.sqrt(2.0)) - np.expm1(e)
        found[inner] = np.log(value) + _RAISED
    return np.fmin(found, 0.0)


def log_ramp(epsilons: Vector, c: float, cells: int = CELLS) -> Vector:
    """Return log ∫₀^c m(u) du, where m(u) = max_z φ(z) − e^ε φ(z + u), for ε of any sign.

    The maximum is at the root y > 0 of log(y/(y+u)) + yu + u²/2 = ε. With L = log((y+u)/y) and
    g = ε + L the curve has the explicit form

        u = √(2 g tanh(L/2)),   y = u/(e^L − 1),   m = (1 − e^(−L)) φ(y),   m′(u) = y φ(y),

    so that only the end u = c needs an iteration, whose result is moved outwards. m increases with
    u. Where it is convex a chord bounds it, where it is concave a tangent does, and in the cell in
    which that changes its larger end does. For ε ≥ 0 it is convex while y ≥ 1, for ε < 0 while
    y + u ≤ 1.
    """
    if np.isneginf(epsilons).all():
        return np.full_like(epsilons, np.log(c * _PEAK) + _RAISED)
    starts = range(0, epsilons.size, _BATCH)
    parts = [_log_ramp_batch(epsilons[k : k + _BATCH], c, cells) for k in starts]
    return np.concatenate(parts) if parts else np.empty(0)


def turning_t(epsilons: Vector, c: float) -> Vector:
    """Return a t beyond which ((1+t)/t)·∫₀^c m(u) du grows with t, where ε falls with log(1+t).

    Its derivative has the sign of the mean of y/u − 1/t under m, and y/u is least at u = c, where
    it is 1/(e^L − 1). For ε > c²/2 that is more than (ε − c²/2)/c².
    """
    half = 0.5 * c * c
    found = np.empty_like(epsilons)
    plain = epsilons > 2.0 * half
    found[plain] = 2.0 * half / (epsilons[plain] - half)
    e = epsilons[~plain]
    if e.size:
        a, b = np.maximum(e, 0.0)[:, None], np.maximum(-e, 0.0)[:, None]
        found[~plain] = np.expm1(np.minimum(_end_of_ramp(a, b, c) + b, 700.0))[:, 0]
    return found


def log_far_side(epsilons: Vector, c: float) -> Vector:
    """Return log ∫₀^c (φ(0) − e^ε φ(u))₊ du, for ε of any sign.

    The smaller of the closed form, whose terms may cancel, and of what 1 − e^(−x) ≤ x gives.
    """
    if np.isneginf(epsilons).all():
        return np.full_like(epsilons, np.log(c * _PEAK) + _RAISED)
    start = np.sqrt(2.0 * np.maximum(epsilons, 0.0))
    width = np.maximum(c * (1.0 + 1e-15) - start * (1.0 - 1e-15), 0.0)
    below = np.minimum(epsilons, 0.0)
    small = -c * np.expm1(below) + np.exp(below) * width**2 * (c + 2.0 * start) / 6.0
    exponent = np.minimum(epsilons, 0.5 * c * c)
    scale = np.exp(np.minimum(exponent, 700.0)) / _PEAK
    closed = width - scale * (ndtr(c) - ndtr(np.minimum(start, c))) + 1e-14 * (c + scale)
    closed = np.where(exponent > 700.0, np.inf, closed)
    value = np.where(width > 0.0, np.minimum(small, closed), 0.0)
    with np.errstate(divide="ignore"):
        return np.log(value * _PEAK) + _RAISED


def _log_ramp_batch(epsilons: Vector, c: float, cells: int) -> Vector:
    epsilons = np.minimum(epsilons, FAR * c)
    a, b = np.maximum(epsilons, 0.0)[:, None], np.maximum(-epsilons, 0.0)[:, None]
    end = _end_of_ramp(a, b, c)
    _, y, v, log_m = _on_ramp(end, a, b)
    # m falls like a power of x towards zero, or faster; these cells then hold equal cube roots of
    # what is left, for which the chords lose the least.
    steep = 1.0 + y * v
    power = steep * 0.5 * (end / (end + a) + end / np.sinh(np.minimum(end + b, 700.0)))
    fractions = np.append(_SMALL, np.arange(1, cells + 1) / cells)
    x = end * fractions ** (3.0 / np.maximum(power, 1.0))
    u, y, v, log_ms = _on_ramp(x, a, b)
    w = np.exp(log_ms - log_m)
    slope = y * np.exp(log_ms - log_m + np.minimum(-np.log(-np.expm1(-(x + b))), 700.0))
    du, left, right = np.diff(u), w[:, :-1], w[:, 1:]
    forward = left + 0.5 * slope[:, :-1] * du
    tangent = np.minimum(forward, right - 0.5 * slope[:, 1:] * du)
    ahead = epsilons[:, None] >= 0.0
    convex = np.where(ahead, y[:, 1:] >= 1.0, v[:, 1:] <= 1.0)
    concave = np.where(ahead, y[:, :-1] <= 1.0, v[:, :-1] >= 1.0)
    height = np.where(convex, 0.5 * (left + right), np.where(concave, tangent, right))
    total = u[:, 0] * w[:, 0] + np.sum(du * height, axis=1)
    return np.log(total) + log_m[:, 0] + _RAISED + 4.0 * _UNIT * steep[:, 0]


def _end_of_ramp(a: Vector, b: Vector, c: float) -> Vector:
    """An x with 2 (x + a) tanh((x + b)/2) ≥ c², and not much larger than the least one.

    One of a and b is zero.
    """
    half = 0.5 * c * c
    # tanh(s) ≤ s and tanh(s) ≤ 1 bound the root from below.
    x = np.maximum(4.0 * half / (a + b + np.sqrt((a + b) ** 2 + 8.0 * half)), half - a)
    for _ in range(_NEWTON_STEPS):
        arc = np.minimum(x + b, 700.0)
        slope = x / (x + a) + x / np.sinh(arc)
        miss = np.log(half) - np.log(x + a) - np.log(np.tanh(0.5 * arc))
        x = x * np.exp(np.clip(miss / slope, -2.0, 2.0))
        if np.max(np.abs(miss)) < 1e-14:
            break
    step = 1e-14
    x = x * (1.0 + step)
    for _ in range(_DOUBLINGS):
        short = 2.0 * (x + a) * np.tanh(0.5 * (x + b)) < c * c * (1.0 + 4e-15)
        if not short.any():
            return x
        step *= 2.0
        x = np.where(short, x * (1.0 + step), x)
    return np.full_like(x, np.nan)


def _on_ramp(x: Vector, a: Vector, b: Vector) -> tuple[Vector, Vector, Vector, Vector]:
    """U, y, y + u and log m at L = x + b, g = x + a: sums of positive numbers, nothing cancels."""
    arc = x + b
    u = np.sqrt(2.0 * (x + a) * np.tanh(0.5 * arc))
    p = -np.expm1(-arc)
    v = u / p
    y = v * np.exp(-arc)
    return u, y, v, np.log(p) - _exponent(y)


def _exponent(x: Vector) -> Vector:
    return 0.5 * x * x + _HALF_LOG_2PI


def _mills_ratios(x: Vector) -> Vector:
    """R(x) = (1 − Φ(x))/φ(x)."""
    return np.sqrt(0.5 * np.pi) * erfcx(x / np.sqrt(2.0))


def _mills_drop(middle: Vector, width: float) -> Vector:
    """R(middle − width/2) − R(middle + width/2), as the integral of 1 − x R(x)."""
    x = middle[:, None] + 0.5 * width * _NODES
    near = np.minimum(x, _LARGE)
    slope = 1.0 - near * _mills_ratios(near)
    far = 1.0 / np.maximum(x, _LARGE) ** 2
    series = far * (1.0 + far * (-3.0 + far * (15.0 + far * (-105.0 + far * 945.0))))
    return 0.5 * width * (np.where(x > _LARGE, series, slope) @ _WEIGHTS)
