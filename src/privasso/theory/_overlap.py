"""The overlap of two releases from the same data with independent noise.

Two minimisers x¹, x² of the same data have residuals on a new record with the covariance

    C = σ_ξ² + E_v[ v·E[(x¹ − x₀)(x² − x₀)] ].

Their fields share the Gaussian part of variance C/(αv) and the signal; the rest of the variance,
(E − C)/(αv) + Σ²σ_η², is their own. With g(h) = E soft(h + τZ, θ), τ² that rest and h the shared
part, of variance S² = k + C/(αv) where the coefficient is zero (k = 0) or not (k = 1),

    E[(x¹ − x₀)(x² − x₀)] = (1−ρ) E g(h₀)² + ρ (E g(h₁)² − 2P₁ + 1),

P₁ the probability that a coefficient of the signal is selected. C is a fixed point of this map.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from privasso.theory._system import FloatArray, System

_REACH = 9.0
_NODES = 8
_STEPS = 200
_SETTLED = 1e-9
#: A threshold of so many deviations is never passed: the chance is below the smallest double.
_NEVER = 40.0
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)


def overlap(s: System, E: float, V: float) -> float:
    """C at a fixed point (E, V) without clipping and ridge.

    The map rises from C = 0, where two releases share the signal alone, to at most E, and its
    slope falls below one at the fixed point; Aitken's extrapolation makes the iteration short.
    """
    alpha, rho, lam, label_variance = s.alpha, s.rho, s.lam, s.xi2
    v, w, noise = s.v, s.w, s.power * s.profile
    # Columns so small that they are never selected keep their signal as an error, and nothing else.
    scale, spread = lam * (1.0 + V), np.sqrt(alpha * v * (E + alpha * v) + (1.0 + V) ** 2 * noise)
    seen = scale <= _NEVER * spread
    unseen = rho * float(w[~seen] @ v[~seen])
    v, w, noise = v[seen], w[seen], noise[seen]
    Sigma = (1.0 + V) / (alpha * v)
    theta = lam * Sigma
    total = E / (alpha * v) + Sigma**2 * noise
    selected = 2.0 * ndtr(-theta / np.sqrt(1.0 + total))

    def step(C: float) -> float:
        shared = C / (alpha * v)
        own = np.sqrt(np.maximum(total - shared, 0.0))
        zero = _mean_square(np.sqrt(shared), own, theta)
        one = _mean_square(np.sqrt(1.0 + shared), own, theta)
        each = (1.0 - rho) * zero + rho * (one - 2.0 * selected + 1.0)
        return min(label_variance + unseen + float(w @ (v * each)), E)

    C = label_variance
    for _ in range(_STEPS):
        first = step(C)
        second = step(first)
        bend = second - 2.0 * first + C
        guess = second if abs(bend) < 1e-300 else C - (first - C) ** 2 / bend
        found = guess if second <= guess <= E else second
        if abs(found - C) <= _SETTLED * E:
            return float(found)
        C = found
    return float(C)


def _mean_square(spread: FloatArray, own: FloatArray, theta: FloatArray) -> FloatArray:
    """E g(h)², h ~ N(0, spread²), by Gauss–Legendre in panels that end where g bends."""
    size = np.maximum(spread, 1e-150)
    x, weight = np.polynomial.legendre.leggauss(_NODES)
    bends = theta[:, None] + own[:, None] * np.array([-8.0, -3.0, -1.0, 0.0, 1.0, 3.0, 8.0])
    steps = np.broadcast_to(np.linspace(0.0, _REACH, 10), (size.size, 10))
    edges = np.sort(np.clip(np.hstack([steps, bends / size[:, None]]), 0.0, _REACH), axis=1)
    half = 0.5 * np.diff(edges, axis=1)[:, :, None]
    z = edges[:, :-1, None] + half * (1.0 + x)
    value = _mean_soft(size[:, None, None] * z, own[:, None, None], theta[:, None, None])
    density = np.exp(-0.5 * z * z) * _INV_ROOT_2PI
    return 2.0 * np.sum(half * weight * density * value**2, axis=(1, 2))


def _mean_soft(h: FloatArray, own: FloatArray, theta: FloatArray) -> FloatArray:
    """g(h) = E soft(h + own·Z, θ)."""
    tau = np.maximum(own, 1e-150)
    above, below = (h - theta) / tau, (-h - theta) / tau
    return tau * (_ramp(above) - _ramp(below))


def _ramp(t: FloatArray) -> FloatArray:
    """E (t + Z)₊ = tΦ(t) + φ(t)."""
    with np.errstate(over="ignore"):
        return t * ndtr(t) + _INV_ROOT_2PI * np.exp(-0.5 * np.minimum(t * t, 1e4))
