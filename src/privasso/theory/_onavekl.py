"""On-average KL divergence: how far one replaced record moves the law of the released estimate.

The component-wise divergence P of the paper is an average of Fisher informations. Given v and the
cavity field m̂, the released coefficient is soft(m̂ − Ση, θ), θ = λΣ: a Gaussian of deviation
τ = Σσ_η censored to zero on |·| < θ. R_v is its Fisher information in m̂,

    R_v = r'²/(1−r) + r'' + r/τ²,    r = Q(a) + Q(b),  a = (θ−m̂)/τ,  b = (θ+m̂)/τ.

m̂ is a mixture of two centred Gaussians, of variance E/(αv) and 1 + E/(αv). Under either, r and
r'' average in closed form (to q(t_k) and 2 t_k φ(t_k)/s_k² in the notation of `_system`).
What is left is one integral, with κ = λ/σ_η and z ~ N(0, s²) for m̂/τ,

    G(κ, s) = E[ (φ(a) − φ(b))² / (Φ(a) − Φ(−b)) ],   a = κ − z,  b = κ + z,

and P = e·E_v[ v Σ_k π_k { (q(t_k) + G_k)/σ_η² + 2 t_k φ(t_k)/A_k } ].

The divergence of the whole vector follows from P and V; see `joint`.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privasso.theory._system import channel, inner, kernel

Number = TypeVar("Number", float, NDArray[np.float64])

_ROOT_HALF = math.sqrt(0.5)
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: The integrand is cut where it has fallen by exp(-_CUT²/2); the step is in standard deviations
#: of the narrowest Gaussian that bounds it. Together they leave a relative error below 1e-7.
_CUT = 6.0
_STEP = 0.95
#: More steps than that makes.
_MOST = 100.0
#: φ(b)/φ(a) = exp(−2κz) and all that comes with it is dropped below this.
_FAR = 1e-16
#: Part of P below which the integral of a node is left out.
NEGLIGIBLE = 1e-10


@inner
def interval_mass(a, b):  # pragma: no cover
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


@kernel
def layer(kappa, s, slopes):  # pragma: no cover
    """G(κ, s), κ ∂G/∂κ and s ∂G/∂s by the trapezoidal rule in a, which converges exponentially.

    Without `slopes` the derivatives are left out, and zero.

    The integrand is bounded by the prior times φ(a)² where a > 0 and by the prior times
    |a|φ(a) where a < 0. Each product is a Gaussian; they fix the range and the step, however
    thin the transition layer is compared with the prior.

    With h = D²/M, D = φ(a) − φ(b), M = Φ(a) − Φ(−b):  s ∂G/∂s = E[(z²/s² − 1) h] and
    ∂G/∂κ = E[ 2D(bφ(b) − aφ(a))/M − D²(φ(a) + φ(b))/M² ].
    """
    if s < 1e-7 or kappa < 1e-12:  # G(κ, s) = O(s²), and at most κ
        return 0.0, 0.0, 0.0
    centre1 = kappa / (1.0 + s * s)
    width1 = s / math.sqrt(1.0 + s * s)
    centre2 = kappa / (1.0 + 2.0 * s * s)
    width2 = s / math.sqrt(1.0 + 2.0 * s * s)
    lo = min(centre1 - _CUT * width1, centre2 - _CUT * width2)
    # The integrand is even in z and vanishes at z = 0: half the line, with z = 0 as a node.
    hi = min(centre2 + _CUT * width2, kappa)
    h = _STEP * width2
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
    total, by_kappa, by_s = 0.0, 0.0, 0.0
    # Both ends are at most _CUT of the wider width from the nearer centre.
    if not (h > 0.0 and hi - lo <= _MOST * h):
        return math.nan, math.nan, math.nan
    for _ in range(int((hi - lo) / h) + 1):
        if mirror < _FAR:
            gap = 1.0
            share = 2.0 * phi / math.erfc(-a * _ROOT_HALF)
        else:
            gap = 1.0 - mirror
            share = phi / interval_mass(a, kappa + z)
        weight = prior * phi * gap * share
        total += weight * gap
        if slopes:
            by_kappa += 2.0 * weight * ((kappa + z) * mirror - a)
            by_kappa -= weight * gap * share * (1.0 + mirror)
            by_s += weight * gap * ((z / s) ** 2 - 1.0)
        a -= h
        z += h
        phi *= phi_ratio
        phi_ratio *= phi_decay
        prior *= prior_ratio
        prior_ratio *= prior_decay
        mirror *= mirror_ratio
    scale = 2.0 * h * _INV_ROOT_2PI / s
    return scale * total, scale * kappa * by_kappa, scale * by_s


@kernel
def component_wise(s, e, u):  # pragma: no cover
    """P, the component-wise OnAveKL, at a fixed point e, u = 1/(1+V)."""
    closed = 0.0
    for i in range(s.v.size):
        av = s.alpha * s.v[i]
        noise = s.power * s.profile[i]
        for k in range(2):
            weight = s.w[i] * (s.rho if k == 1 else 1.0 - s.rho)
            A = av * e + k * (av * u) ** 2 + noise
            q, slope, _, _, _ = channel(A, s.lam)
            if weight * q > 0.0:
                if noise == 0.0:
                    return math.inf
                closed += weight * e * s.v[i] * (q / noise + 2.0 * slope / A)

    layers = 0.0
    for i in range(s.v.size):
        av = s.alpha * s.v[i]
        noise = s.power * s.profile[i]
        for k in range(2):
            weight = s.w[i] * (s.rho if k == 1 else 1.0 - s.rho)
            prior = av * e + k * (av * u) ** 2
            q, slope, _, _, _ = channel(prior + noise, s.lam)
            # G is of the order of q + tφ(t).
            if weight * e * s.v[i] * (q + slope) > NEGLIGIBLE * closed * noise:
                sigma = math.sqrt(noise)
                G, _, _ = layer(s.lam / sigma, math.sqrt(prior) / sigma, False)
                layers += weight * e * s.v[i] * G / noise
    return closed + layers


def joint(component_wise: Number, V: Number) -> Number:
    """OnAveKL = P (1 + (1+V)²)/2 + V²/(1+V), from the component-wise P and V.

    The two records of a replacement each contribute. For a record a outside the data D,

        KL(D ‖ D∪a) = V − log(1+V) + P (1+V)²/2,
        KL(D∪a ‖ D) = log(1+V) − V/(1+V) + P/2,

    and replacing a by a' costs the second for a plus the first for a'. The component-wise P
    counts the direct shift of each coefficient, the factor (1+V)² the response of all others. The
    terms in V alone come from det(F_SᵀF_S).
    """
    return component_wise * (1.0 + (1.0 + V) ** 2) / 2.0 + V * (V / (1.0 + V))
