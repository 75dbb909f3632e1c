"""State evolution in closed form: the averages, their derivatives, and one iteration.

A new residual of the model is N(0, E), and V is the variance parameter of AMP. Everything is
written in numbers that stay finite at the edge of stability, V → ∞: the mean slope q and the mean
square e of the clipped residuals. At a threshold κ, in b = E/(1+V)² and a = κ/√b,

    p = 2Φ(a) − 1,   q = p/(1+V),   e = b (p − 2aφ(a)) + 2κ² Q(a),

where p is the fraction of residuals that are not clipped: without clipping p = 1, q = 1/(1+V) and
e = b. The columns, of squared scale v, noise σ_η²(v) and ridge Λ, with k = αvq, y = k/(k + Λ),
A₀ = αve + σ_η²(v), A₁ = A₀ + k², t_j = λ/√A_j, P_j = 2Q(t_j), P = (1−ρ)P₀ + ρP₁ and
g(t) = (1+t²)·2Q(t) − 2tφ(t), give R = q²(E − σ_ξ²), S = qV and ρ̂:

    R = E_v[ ((1−ρ) A₀g(t₀) + ρ A₁g(t₁)) y²/(α²v) + ρ v q² (1 − 2yP₁) ],
    S = E_v[ Py ]/α,    ρ̂ = E_v[P].

A fixed point is a root of R + σ_ξ²q² = p²b and q + S = p in (x, y) = (log b, q).

Rows that are not independent have a spectrum instead: F = A diag(s) with AᵀA of eigenvalues d, and
A invariant under rotations from the right. In θ = s∘x vector AMP alternates between thresholding a
field of precision γ₁ and error variance τ₁, and a ridge estimate around a point of precision γ₂ and
error variance τ₂. The averages over the columns are those above at α = 1, q = γ₁ and e = τ₁γ₁².
With ω = R/q², and h = d/(d+γ₂), 1 − h and r = E h over the eigenvalues, one iteration is

    γ₂ = γ₁(1−ρ̂)/ρ̂,   τ₂ = (ω − ρ̂²τ₁)/(1−ρ̂)²,
    γ₁⁺ = γ₂r/(1−r),    τ₁⁺ = (σ_ξ² E[d(1−h)²]/γ₂² + τ₂ Var h)/r².

At a fixed point r = ρ̂ and e = (σ_ξ² E[d(1−h)²] + R·Var(h)/r²)/E[(1−h)²], two equations for
(x, y) = (log e, log γ₂), of which y → −∞ at the edge of stability.

The kernels of this folder raise no errors: what leaves the range of double precision comes out as
NaN or inf, every loop ends on it, and whoever calls them from Python tests what they return. They
call each other across files, and numba's cache on disk watches only the file of the caller: after
an edit, delete ``__pycache__`` (`make clean`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from privasso._types import Passed

FloatArray = NDArray[np.float64]

#: Compiles what Python calls.
_COMPILED: dict[str, Passed] = {"nogil": True, "cache": True, "error_model": "numpy"}
kernel = njit(**_COMPILED)
#: Compiles what only other kernels call, in less time.
_COMPILED |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
inner = njit(**_COMPILED)

NONE: FloatArray = np.empty(0)
_ROOT_HALF = math.sqrt(0.5)
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
_SMALL = 2.0 * _INV_ROOT_2PI
#: Q(38.5) is the smallest positive float; beyond it t² may overflow against that zero.
_FARTHEST = 38.0
#: Beyond so many standard deviations no residual is clipped.
_NEVER = 40.0
#: ρ̂ below which no coefficient is active, and above which none is zero.
FEWEST = 1e-13
#: log γ₂ is searched between these ends.
LOW, HIGH = -600.0, 600.0


class System(NamedTuple):
    """All that state evolution needs to know, as kernels take it."""

    alpha: float
    """M/N for independent rows, 1 for rows with a spectrum."""
    rho: float
    xi2: float
    lam: float
    kappa: float
    power: float
    """Noise variances are power·profile."""
    v: FloatArray
    w: FloatArray
    """Weights of the columns, which sum to 1."""
    profile: FloatArray
    ridge: FloatArray
    """Empty without a ridge."""
    mean: FloatArray
    """Means of the field, −η for noise at hand; empty for noise of mean zero."""
    d: FloatArray
    """Eigenvalues of rows with a spectrum; empty for independent rows."""
    dw: FloatArray
    """Their weights; a mass 1 − Σdw lies at zero."""

    @property
    def is_linear(self) -> bool:
        """Whether nothing is clipped and there is no ridge."""
        return self.kappa == math.inf and self.ridge.size == 0


@inner
def at(s, alpha, lam, power):  # pragma: no cover
    """The same columns with other numbers."""
    return System(
        alpha, s.rho, s.xi2, lam, s.kappa, power, s.v, s.w, s.profile, s.ridge, s.mean,
        s.d, s.dw,
    )  # fmt: skip


@inner
def channel(A, lam):  # pragma: no cover
    """Return 2Q(t), tφ(t), g(t), 1 − 2Q(t) and E min(Z², t²) at t = λ/√A."""
    root = math.sqrt(A)
    if lam > _FARTHEST * root:
        return 0.0, 0.0, 0.0, 1.0, 1.0
    t = lam / root
    # The smaller of the two is computed, so that neither loses digits.
    if t < 0.7:
        off = math.erf(t * _ROOT_HALF)
        q = 1.0 - off
    else:
        q = math.erfc(t * _ROOT_HALF)
        off = 1.0 - q
    slope = t * _INV_ROOT_2PI * math.exp(-0.5 * t * t)
    # E[Z²; |Z| < t]; the difference loses its digits for small t, where the series has them.
    inside = off - 2.0 * slope if t > 1e-2 else _SMALL * t**3 * (1.0 / 3.0 - 0.1 * t * t)
    return q, slope, max((1.0 + t * t) * q - 2.0 * slope, 0.0), off, inside + t * t * q


@inner
def shifted_channel(A, lam, mean):  # pragma: no cover
    """What `channel` returns, for a field b ~ N(m, A) and P(|b| > λ) in place of 2Q(t).

    With a = (λ−m)/√A and a' = (λ+m)/√A that is Q(a) + Q(a'), tφ(t) becomes (aφ(a) + a'φ(a'))/2, and
    Ag = E soft(b, λ)², so that all derivatives stay as they are.
    """
    root = math.sqrt(A)
    q, slope, g = 0.0, 0.0, 0.0
    for sign in (-1.0, 1.0):
        a = (lam + sign * mean) / root
        if a < _FARTHEST:
            part = 0.5 * math.erfc(a * _ROOT_HALF)
            steep = a * _INV_ROOT_2PI * math.exp(-0.5 * a * a)
            q += part
            slope += 0.5 * steep
            g += max((1.0 + a * a) * part - steep, 0.0)
    return q, slope, g, 1.0 - q, 1.0 + g - 2.0 * q


@kernel
def column_averages(s, e, q):  # pragma: no cover
    """R, S, ρ̂ and derivatives: (R, S, ρ̂, ∂R/∂e, ∂R/∂q, ∂S/∂e, ∂S/∂q)."""
    rho, lam = s.rho, s.lam
    R, R_e, R_q = 0.0, 0.0, 0.0
    S, S_e, S_q = 0.0, 0.0, 0.0
    rho_hat = 0.0
    for i in range(s.v.size):
        v, w = s.v[i], s.w[i]
        av = s.alpha * v
        k = av * q
        A0 = av * e + s.power * s.profile[i]
        A1 = A0 + k * k
        if s.mean.size == 0:
            q0, slope0, g0, _, _ = channel(A0, lam)
            q1, slope1, g1, off1, small1 = channel(A1, lam)
        else:
            q0, slope0, g0, _, _ = shifted_channel(A0, lam, s.mean[i])
            q1, slope1, g1, off1, small1 = shifted_channel(A1, lam, s.mean[i])
        P = (1.0 - rho) * q0 + rho * q1
        # dP_j/dA = tφ(t)/A and d(A g)/dA = P_j.
        steep1 = slope1 / A1
        bent = k * k * steep1
        scale = w / (s.alpha * av)
        wvq = w * v * q
        rho_hat += w * P
        if s.ridge.size == 0:
            R += scale * A0 * ((1.0 - rho) * g0 + rho * g1) + wvq * q * rho * small1
            R_e += w * (P - 2.0 * rho * bent)
            R_q += 2.0 * wvq * rho * (off1 - 2.0 * bent)
            S_e += w * v * ((1.0 - rho) * slope0 / A0 + rho * steep1)
            S_q += w * rho * steep1 * k * av
            continue
        d = k + s.ridge[i]
        y, rest = 1.0, 0.0
        if s.ridge[i] > 0.0:
            y, rest = k / d, s.ridge[i] / d
        # k²g(t₁)y²/k² − 2yP₁ + 1 without the cancellation of a good fit, where it is nearly zero.
        R += scale * y * y * A0 * ((1.0 - rho) * g0 + rho * g1)
        R += wvq * q * rho * (rest * rest + y * (2.0 * rest * off1 + y * small1))
        R_e += w * y * (P * y - 2.0 * rho * bent)
        R_q += 2.0 * wvq * rho * (q1 * rest * rest + off1 - 2.0 * y * bent - q1 * y * rest)
        S += w * P * y
        S_e += w * v * y * ((1.0 - rho) * slope0 / A0 + rho * steep1)
        S_q += w * rho * y * steep1 * k * av
        if rest > 0.0:
            power = (1.0 - rho) * A0 * g0 + rho * A1 * g1
            R_q += 2.0 * w * power * y * rest / (s.alpha * d)
            S_q += 0.5 * w * P * s.alpha * v * rest / d
    if s.ridge.size == 0:
        S = rho_hat
    return R, S / s.alpha, rho_hat, R_e / s.alpha, R_q, S_e, 2.0 * S_q / s.alpha


@kernel
def row_averages(b, kappa):  # pragma: no cover
    """p, e, and their derivatives in log b."""
    root = math.sqrt(b)
    if kappa > _NEVER * root:
        return 1.0, b, 0.0, b
    a = kappa / root
    p = math.erf(a * _ROOT_HALF)
    slope = a * _INV_ROOT_2PI * math.exp(-0.5 * a * a)
    inside = p - 2.0 * slope if a > 1e-2 else _SMALL * a**3 * (1.0 / 3.0 - 0.1 * a * a)
    e = b * inside + kappa * kappa * math.erfc(a * _ROOT_HALF)
    return p, e, -slope, b * inside


@kernel
def eigenvalue_averages(y, d, w):  # pragma: no cover
    """r, E[d(1−h)²], Var(h)/r², E[(1−h)²] and their derivatives by y = log γ₂.

    d(1−h)/dy = h(1−h). Sums of h are divided by r, which may be very small.
    """
    gamma = math.exp(y)
    r = 0.0
    mass = 0.0
    for k in range(d.size):
        r += w[k] * d[k] / (d[k] + gamma)
        mass += w[k]
    zero = max(1.0 - mass, 0.0)
    r_y, noise, noise_y, spread, spread_y = 0.0, 0.0, 0.0, zero, 0.0
    square, square_y = zero, 0.0
    for k in range(d.size):
        h = d[k] / (d[k] + gamma)
        p = gamma / (d[k] + gamma)
        r_y -= w[k] * p * h
        noise += w[k] * d[k] * p * p
        noise_y += 2.0 * w[k] * d[k] * p * p * h
        spread += w[k] * (h / r - 1.0) ** 2
        square += w[k] * p * p
        square_y += 2.0 * w[k] * p * p * h
    for k in range(d.size):
        h = d[k] / (d[k] + gamma)
        slope = -(gamma / (d[k] + gamma) + r_y / r) * h / r
        spread_y += 2.0 * w[k] * (h / r - 1.0) * slope
    return r, noise, spread, square, r_y, noise_y, spread_y, square_y


@inner
def misses(s, x, y):  # pragma: no cover
    """By how much the two equations are missed, f and g, with (f_x, f_y, g_x, g_y).

    Below the root f > 0; g decreases with y.
    """
    b = math.exp(x)
    p, e, p_x, e_x = row_averages(b, s.kappa)
    q, q_y, r, r_y = y, 1.0, 1.0, 0.0
    noise, noise_y, spread, spread_y, square, square_y = 0.0, 0.0, 0.0, 0.0, 1.0, 0.0
    if s.d.size > 0:
        r, noise, spread, square, r_y, noise_y, spread_y, square_y = eigenvalue_averages(
            y, s.d, s.dw
        )
        q = math.exp(y) * r / (1.0 - r)
        q_y = q * (1.0 + r_y / (r * (1.0 - r)))
    R, S, _, R_e, R_q, S_e, S_q = column_averages(s, e, q)
    if s.d.size == 0:
        R += s.xi2 * y * y
        ratio = R / (p * p * b)
        if not 0.0 < ratio < math.inf:
            return -math.inf if ratio == 0.0 else math.nan, p - S - y, 0.0, 0.0, 0.0, 0.0
        return (
            math.log(ratio), p - S - y, R_e * e_x / R - 2.0 * p_x / p - 1.0,
            (R_q + 2.0 * s.xi2 * y) / R, p_x - S_e * e_x, -S_q - 1.0,
        )  # fmt: skip
    top = s.xi2 * noise + spread * R
    top_y = s.xi2 * noise_y + spread_y * R + spread * R_q * q_y
    if S <= 0.0 or top <= 0.0:
        return math.inf, math.inf, 0.0, 0.0, 0.0, 0.0
    return (
        math.log(top / square) - x, -math.log(S / r), spread * R_e * e / top - 1.0,
        top_y / top - square_y / square, -S_e * e / S, r_y / r - S_q * q_y / S,
    )  # fmt: skip


@inner
def first(s):  # pragma: no cover
    """E of x = 0, and the (x, y) with which AMP and VAMP start."""
    signal = 0.0
    for i in range(s.v.size):
        signal += s.rho * s.w[i] * s.v[i]
    E = s.xi2 + signal
    if s.d.size == 0:
        return E, math.log(E) if E > 0.0 else math.nan, row_averages(E, s.kappa)[0]
    mean, spread, mass = 0.0, 0.0, 0.0
    for k in range(s.d.size):
        mean += s.dw[k] * s.d[k]
        mass += s.dw[k]
    for k in range(s.d.size):
        spread += s.dw[k] * (s.d[k] / mean - 1.0) ** 2
    spread += max(1.0 - mass, 0.0)
    e = s.xi2 * mean + signal * spread * mean * mean
    return E, math.log(e) if e > 0.0 else math.nan, HIGH


@kernel
def values(s, x, y):  # pragma: no cover
    """E, V and ρ̂ of the columns at (x, y), and (e, q) there."""
    e, q = row_averages(math.exp(x), s.kappa)[1], y
    if s.d.size > 0:
        r = eigenvalue_averages(y, s.d, s.dw)[0]
        q = math.exp(y) * r / (1.0 - r)
    R, S, rho_hat, _, _, _, _ = column_averages(s, e, q)
    return R / (q * q) + s.xi2, S / q, rho_hat, e, q


@inner
def step(s, x, y):  # pragma: no cover
    """E, V and ρ̂ at (x, y), and the (x, y) of the next iteration."""
    E, V, rho_hat, e, q = values(s, x, y)
    if s.d.size == 0:
        b = E / (1.0 + V) ** 2
        return (
            E,
            V,
            rho_hat,
            math.log(b) if b > 0.0 else math.nan,
            (row_averages(b, s.kappa)[0] / (1.0 + V)),
        )
    if rho_hat < FEWEST:
        return E, V, rho_hat, x, y
    part = min(rho_hat, 1.0 - FEWEST)
    y = math.log(q) + math.log1p(-part) - math.log(part)
    tau2 = max(E - s.xi2 - part * part * e / (q * q), 0.0) / (1.0 - part) ** 2
    r, noise, spread, _, _, _, _, _ = eigenvalue_averages(y, s.d, s.dw)
    # e = τ₁γ₁² with γ₁ = γ₂r/(1−r).
    e = (s.xi2 * noise + tau2 * spread * (math.exp(y) * r) ** 2) / (1.0 - r) ** 2
    return E, V, rho_hat, math.log(e) if e > 0.0 else math.nan, y


@kernel
def iterate(s, limit, tol, ceiling):  # pragma: no cover
    """Rows (E, V, ρ̂) of the recursion from x = 0, until it converges, diverges or has so many."""
    rows = np.zeros((limit, 3))
    E, x, y = first(s)
    V = 0.0
    rows[0, 0] = E
    for k in range(1, limit):
        E_new, V_new, rho_hat, x, y = step(s, x, y)
        rows[k, 0] = E_new
        rows[k, 1] = V_new
        rows[k, 2] = rho_hat
        settled = abs(E_new - E) <= tol * E_new and abs(V_new - V) <= tol * V_new
        E, V = E_new, V_new
        if settled or not (ceiling > E and ceiling > V):
            return rows[: k + 1]
    return rows
