"""Error and OnAveKL at one point on given columns, with their derivatives in every variance and λ.

A fixed point is a root of F₁ = R(e, u) − e and F₂ = 1 − ρ̂(e, u)/α − u. For any function Φ of the
fixed point and of a parameter x (a variance of the noise, or λ), implicit differentiation gives

    dΦ/dx = Φ_x − a·F_x,    Jᵀa = (Φ_e, Φ_u),   J = ∂F/∂(e, u),

so one solve of a 2×2 system for each Φ, and one pass over the columns, give all derivatives.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from privasso.theory._information import _interval_mass
from privasso.theory._recursion import _channel, averages
from privasso.theory._root import fixed_point

_ROOT_HALF = math.sqrt(0.5)
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: Range and step of the layer integral; see `_information.layer`.
_CUT = 6.0
_STEP = 0.95
_FAR = 1e-16
_NEGLIGIBLE = 1e-10
#: Newton steps granted to a start nearby, before the search begins anew.
_NEARBY = 12
_TOL = 1e-10
_HALVINGS = 100


@njit(nogil=True, cache=True)
def layer_gradient(kappa, s):  # pragma: no cover
    """G(κ, s) of `_information.layer`, with κ ∂G/∂κ and s ∂G/∂s, in one pass.

    With h = D²/M, D = φ(a) − φ(b), M = Φ(a) − Φ(−b):  s ∂G/∂s = E[(z²/s² − 1) h] and
    ∂G/∂κ = E[ 2D(bφ(b) − aφ(a))/M − D²(φ(a) + φ(b))/M² ].
    """
    if s < 1e-7:
        return 0.0, 0.0, 0.0
    centre1 = kappa / (1.0 + s * s)
    width1 = s / math.sqrt(1.0 + s * s)
    centre2 = kappa / (1.0 + 2.0 * s * s)
    width2 = s / math.sqrt(1.0 + 2.0 * s * s)
    lo = min(centre1 - _CUT * width1, centre2 - _CUT * width2)
    hi = min(centre2 + _CUT * width2, kappa)
    h = _STEP * width2
    a = hi
    z = kappa - a
    phi = _INV_ROOT_2PI * math.exp(-0.5 * a * a)
    phi_ratio, phi_decay = math.exp((a - 0.5 * h) * h), math.exp(-h * h)
    prior = math.exp(-0.5 * (z / s) ** 2)
    prior_ratio = math.exp(-(z + 0.5 * h) * h / (s * s))
    prior_decay = math.exp(-((h / s) ** 2))
    mirror, mirror_ratio = math.exp(-2.0 * kappa * z), math.exp(-2.0 * kappa * h)
    total, by_kappa, by_s = 0.0, 0.0, 0.0
    for _ in range(int((hi - lo) / h) + 1):
        if mirror < _FAR:
            share = 2.0 * phi / math.erfc(-a * _ROOT_HALF)
            term = prior * phi * share
            by_kappa -= term * (2.0 * a + share)
        else:
            gap = 1.0 - mirror
            share = phi / _interval_mass(a, kappa + z)
            term = prior * phi * gap * gap * share
            by_kappa += prior * phi * gap * share * 2.0 * ((kappa + z) * mirror - a)
            by_kappa -= term * share * (1.0 + mirror)
        total += term
        by_s += term * ((z / s) ** 2 - 1.0)
        a -= h
        z += h
        phi *= phi_ratio
        phi_ratio *= phi_decay
        prior *= prior_ratio
        prior_ratio *= prior_decay
        mirror *= mirror_ratio
    scale = 2.0 * h * _INV_ROOT_2PI / s
    return scale * total, scale * kappa * by_kappa, scale * by_s


@njit(nogil=True, cache=True)
def exists(lam, variances, alpha, v, w):  # pragma: no cover
    """Whether a fixed point exists: H(e) = R(e, 0) − e is negative at its minimum, ρ̂(e, 0) = α."""
    if alpha >= 1.0:
        return True
    lo, hi = -math.inf, math.inf
    x = 0.0
    for i in range(v.size):
        x += w[i] * variances[i]
    x = math.log(x / alpha) if x > 0.0 else 2.0 * math.log(lam) - math.log(alpha)
    R = 0.0
    for _ in range(_HALVINGS):
        e = math.exp(x)
        R, rho_hat, _, _, rho_e, _ = averages(e, 0.0, alpha, 0.0, 0.0, lam, 1.0, v, w, variances)
        if e > R:  # H is convex, and negative here
            return True
        if rho_hat > alpha:
            hi = x
        else:
            lo = x
        slope = e * rho_e
        new = x - (rho_hat - alpha) / slope if slope > 0.0 else -math.inf
        if not lo < new < hi or abs(new - x) > 3.0:
            if lo == -math.inf:
                new = x - 2.0
            elif hi == math.inf:
                new = x + 2.0
            else:
                new = 0.5 * (lo + hi)
        if abs(new - x) <= 1e-12 or x < -690.0:
            break
        x = new
    return False


@njit(nogil=True, cache=True)
def _nearby(e, u, lam, variances, alpha, rho, xi2, v, w):  # pragma: no cover
    """Newton from a start nearby; a root with u > 0 proves by itself that the estimator exists."""
    for _ in range(_NEARBY):
        R, rho_hat, R_e, R_u, rho_e, rho_u = averages(
            e, u, alpha, rho, xi2, lam, 1.0, v, w, variances
        )
        f1 = math.log(R / e)
        f2 = 1.0 - rho_hat / alpha - u
        a11 = e * R_e / R - 1.0
        a12 = R_u / R
        a21 = -e * rho_e / alpha
        a22 = -rho_u / alpha - 1.0
        det = a11 * a22 - a12 * a21
        if not (a11 < 0.0 and det > 0.0):  # at the stable root the matrix is definite
            return e, u, False
        dx = (-f1 * a22 + f2 * a12) / det
        new = u + (-f2 * a11 + f1 * a21) / det
        if abs(dx) > 1.0 or new <= 0.2 * u or new > 1.0:
            return e, u, False
        e *= math.exp(dx)
        settled = abs(dx) <= _TOL and abs(new - u) <= _TOL * u
        u = new
        if settled:
            return e, u, True
    return e, u, False


@njit(nogil=True, cache=True)
def root(e, u, lam, variances, alpha, rho, xi2, v, w):  # pragma: no cover
    """(e, u) of the fixed point, from a start nearby if u > 0; u = 0 where there is none."""
    if u > 0.0:
        near_e, near_u, found = _nearby(e, u, lam, variances, alpha, rho, xi2, v, w)
        if found:
            return near_e, near_u
    if not exists(lam, variances, alpha, v, w):
        return e, 0.0
    e, u, _ = fixed_point(lam, 1.0, 0.0, 0.0, alpha, rho, xi2, v, w, variances)
    return e, u


@njit(nogil=True, cache=True, error_model="numpy")  # what overflows comes out as inf or NaN
def gradients(
    e, u, lam, variances, alpha, rho, xi2, v, w, leak, error_by, leak_by
):  # pragma: no cover
    """E and K (the joint OnAveKL) at a fixed point, with derivatives of their logarithms.

    Returns (E, V, ρ̂, K, ∂log E/∂log λ, ∂log K/∂log λ); ∂log E/∂log σ_i² and ∂log K/∂log σ_i²
    go into `error_by` and `leak_by`. Without `leak`, all that belongs to K is left out.
    """
    n = v.size
    _, rho_hat, R_e, R_u, rho_e, rho_u = averages(e, u, alpha, rho, xi2, lam, 1.0, v, w, variances)
    # Partial derivatives of R and ρ̂ (parked in the output) in log σ_i² and log λ.
    R_lam, rho_lam = 0.0, 0.0
    P, P_e, P_u, P_lam = 0.0, 0.0, 0.0, 0.0
    P_by = np.zeros(n) if leak else np.zeros(0)
    for i in range(n):
        av = alpha * v[i]
        s = variances[i]
        signal = (av * u) ** 2
        R_s, rho_s = 0.0, 0.0
        for k in range(2):
            share = w[i] * (rho if k == 1 else 1.0 - rho)
            prior = av * e + k * signal
            A = prior + s
            q, slope, _ = _channel(A, lam)
            if q == 0.0:
                continue
            t2 = lam * lam / A
            R_s += share * s * (q - (2.0 * signal * slope / A if k == 1 else 0.0)) / (alpha * av)
            rho_s += share * s * slope / A
            # λ ∂(A g)/∂λ = 2A(t²q − 2tφ), λ ∂q/∂λ = −2tφ.
            R_lam += (
                share
                * (2.0 * A * (t2 * q - 2.0 * slope) + (4.0 * signal * slope if k == 1 else 0.0))
                / (alpha * av)
            )
            rho_lam -= share * 2.0 * slope
            if not leak or s == 0.0:
                continue
            G, G_kappa, G_s = 0.0, 0.0, 0.0
            if share * v[i] * (q + slope) * e > _NEGLIGIBLE * P * s:
                sigma = math.sqrt(s)
                G, G_kappa, G_s = layer_gradient(lam / sigma, math.sqrt(prior) / sigma)
            factor = share * v[i] * e
            P += factor * ((q + G) / s + 2.0 * slope / A)
            curve = slope * (3.0 - t2) / (A * A)  # −∂(2tφ/A)/∂A
            by_prior = factor * ((slope / A + 0.5 * G_s / prior) / s - curve)
            P_e += by_prior * av
            P_u += by_prior * 2.0 * k * signal / u
            P_by[i] += factor * ((slope * s / A - 0.5 * (G_kappa + G_s) - q - G) / s - curve * s)
            P_lam += factor * ((G_kappa - 2.0 * slope) / s + 2.0 * slope * (1.0 - t2) / A)
        error_by[i], leak_by[i] = R_s, rho_s
    P_e += P / e

    a11, a12, a21, a22 = R_e - 1.0, R_u, -rho_e / alpha, -rho_u / alpha - 1.0
    det = a11 * a22 - a12 * a21
    E, V = e / (u * u), rho_hat / (alpha * u)
    # Jᵀa = (Φ_e, Φ_u) for Φ = log E = log e − 2 log u.
    x1 = (a22 / e + 2.0 * a21 / u) / det
    x2 = (-2.0 * a11 / u - a12 / e) / det
    E_lam = -x1 * R_lam + x2 * rho_lam / alpha
    K, K_lam, y1, y2, by_P = 0.0, 0.0, 0.0, 0.0, 0.0
    if leak:
        # K = P(1 + u⁻²)/2 + (1 − u)²/u.
        growth = 0.5 * (1.0 + 1.0 / (u * u))
        K = P * growth + V * (V / (1.0 + V))
        if K > 0.0:
            K_u = growth * P_u - P / u**3 - 2.0 * V - V * V
            K_e = growth * P_e
            y1 = (K_e * a22 - K_u * a21) / (det * K)
            y2 = (K_u * a11 - K_e * a12) / (det * K)
            by_P = growth / K
            K_lam = by_P * P_lam - y1 * R_lam + y2 * rho_lam / alpha
    for i in range(n):
        R_s, rho_s = error_by[i], leak_by[i]
        error_by[i] = -x1 * R_s + x2 * rho_s / alpha
        leak_by[i] = -y1 * R_s + y2 * rho_s / alpha
        if leak:
            leak_by[i] += by_P * P_by[i]
    return E, V, rho_hat, K, E_lam, K_lam
