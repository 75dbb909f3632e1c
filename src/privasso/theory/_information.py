"""The paper's component-wise OnAveKL, as an average of Fisher informations.

Given v and the cavity field m̂, the released coefficient is soft(m̂ − Ση, θ), θ = λΣ: a Gaussian
of deviation τ = Σσ_η censored to zero on |·| < θ. R_v is its Fisher information in m̂,

    R_v = r'²/(1−r) + r'' + r/τ²,    r = Q(a) + Q(b),  a = (θ−m̂)/τ,  b = (θ+m̂)/τ.

m̂ is a mixture of two centred Gaussians, of variance E/(αv) and 1 + E/(αv). Under either, r and
r'' average in closed form (to q(t_k) and 2 t_k φ(t_k)/s_k² in the notation of `_recursion`).
What is left is one integral, with κ = λ/σ_η and z ~ N(0, s²) for m̂/τ,

    G(κ, s) = E[ (φ(a) − φ(b))² / (Φ(a) − Φ(−b)) ],   a = κ − z,  b = κ + z,

and P = e·E_v[ v Σ_k π_k { (q(t_k) + G_k)/σ_η² + 2 t_k φ(t_k)/A_k } ].
"""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._recursion import _channel

_ROOT_HALF = math.sqrt(0.5)
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: The integrand is cut where it has fallen by exp(-_CUT²/2); the step is in standard deviations
#: of the narrowest Gaussian that bounds it. Together they leave a relative error below 1e-7.
_CUT = 6.0
_STEP = 0.95
#: φ(b)/φ(a) = exp(−2κz) and all that comes with it is dropped below this.
_FAR = 1e-16
#: Part of the sum below which the integral of a node is not worth its evaluation.
_NEGLIGIBLE = 1e-10


@njit(nogil=True, cache=True)
def _interval_mass(a, b):  # pragma: no cover
    """Φ(a) − Φ(−b) for b ≥ |a|, without cancellation."""
    if a >= 0.0:
        return 0.5 * (math.erf(a * _ROOT_HALF) + math.erf(b * _ROOT_HALF))
    width = b + a
    if width * (1.0 + b) > 0.3:
        return 0.5 * (math.erfc(-a * _ROOT_HALF) - math.erfc(b * _ROOT_HALF))
    # A narrow interval away from zero: three-point Gauss–Legendre of the density.
    mid = 0.5 * (b - a)
    half = 0.3872983346207417 * width  # √(3/5)/2
    density = (
        8.0 * math.exp(-0.5 * mid * mid)
        + 5.0 * math.exp(-0.5 * (mid - half) ** 2)
        + 5.0 * math.exp(-0.5 * (mid + half) ** 2)
    )
    return width * density / 18.0 * _INV_ROOT_2PI


@njit(nogil=True, cache=True)
def layer(kappa, s):  # pragma: no cover
    """G(κ, s) by the trapezoidal rule in a, which converges exponentially on the whole line.

    The integrand is bounded by the prior times φ(a)² where a > 0 and by the prior times
    |a|φ(a) where a < 0. Each product is a Gaussian; they fix the range and the step, however
    thin the transition layer is compared with the prior.
    """
    if s < 1e-7:  # G(κ, s) = O(s²)
        return 0.0
    centre1 = kappa / (1.0 + s * s)
    width1 = s / math.sqrt(1.0 + s * s)
    centre2 = kappa / (1.0 + 2.0 * s * s)
    width2 = s / math.sqrt(1.0 + 2.0 * s * s)
    lo = min(centre1 - _CUT * width1, centre2 - _CUT * width2)
    hi = centre2 + _CUT * width2
    h = _STEP * width2
    # The integrand is even in z and vanishes at z = 0: half the line, with z = 0 as a node.
    if hi > kappa:
        hi = kappa
    # Along equal steps every Gaussian is a product of ratios that themselves form a geometric
    # series, which leaves the error functions as the only cost.
    a = hi
    z = kappa - a
    phi = _INV_ROOT_2PI * math.exp(-0.5 * a * a)
    phi_ratio, phi_decay = math.exp((a - 0.5 * h) * h), math.exp(-h * h)
    prior = math.exp(-0.5 * (z / s) ** 2)
    prior_ratio = math.exp(-(z + 0.5 * h) * h / (s * s))
    prior_decay = math.exp(-((h / s) ** 2))
    mirror, mirror_ratio = math.exp(-2.0 * kappa * z), math.exp(-2.0 * kappa * h)
    total = 0.0
    for _ in range(int((hi - lo) / h) + 1):
        if mirror < _FAR:
            total += prior * phi * (2.0 * phi / math.erfc(-a * _ROOT_HALF))
        else:
            gap = 1.0 - mirror
            total += prior * phi * gap * gap * (phi / _interval_mass(a, kappa + z))
        a -= h
        z += h
        phi *= phi_ratio
        phi_ratio *= phi_decay
        prior *= prior_ratio
        prior_ratio *= prior_decay
        mirror *= mirror_ratio
    return 2.0 * h * total * _INV_ROOT_2PI / s


@njit(nogil=True, cache=True)
def component_wise(e, u, alpha, rho, lam, sigma2, v, w, profile):  # pragma: no cover
    """P, the component-wise OnAveKL, at a fixed point (e, u)."""
    closed = 0.0
    for i in range(v.size):
        av = alpha * v[i]
        noise = sigma2 * profile[i]
        for k in range(2):
            weight = w[i] * (rho if k == 1 else 1.0 - rho)
            A = av * e + k * (av * u) ** 2 + noise
            q, slope, _ = _channel(A, lam)
            if weight * q > 0.0:
                if noise == 0.0:
                    return math.inf
                closed += weight * e * v[i] * (q / noise + 2.0 * slope / A)

    layers = 0.0
    for i in range(v.size):
        av = alpha * v[i]
        noise = sigma2 * profile[i]
        for k in range(2):
            weight = w[i] * (rho if k == 1 else 1.0 - rho)
            prior = av * e + k * (av * u) ** 2
            q, slope, _ = _channel(prior + noise, lam)
            # G is of the order of q + tφ(t).
            if weight * e * v[i] * (q + slope) > _NEGLIGIBLE * closed * noise:
                sigma = math.sqrt(noise)
                G = layer(lam / sigma, math.sqrt(prior) / sigma)
                layers += weight * e * v[i] * G / noise
    return closed + layers
