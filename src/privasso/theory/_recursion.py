"""The averages of state evolution in closed form, and the plain recursion.

State evolution follows E (prediction error), V (variance parameter of AMP) and ρ̂ (fraction of
nonzero coefficients). Everything here is written in

    u = 1/(1 + V)   and   e = E/(1 + V)² = E u²,

in which nothing diverges at the edge of stability, V → ∞. With A₀ = αve + σ_η²(v) and
A₁ = A₀ + (αvu)², t_k = λ/√A_k, q(t) = 2Q(t), g(t) = (1+t²)q(t) − 2tφ(t), one iteration maps
(E, V) to

    E⁺u² = R(e, u) = σ_ξ²u² + E_v[ ((1−ρ) A₀ g(t₀) + ρ {A₁ g(t₁) + (αvu)² (1 − 2q(t₁))}) / (α²v) ]
    ρ̂   = E_v[ (1−ρ) q(t₀) + ρ q(t₁) ],    V⁺ = (1 + V) ρ̂/α.

A fixed point is a root of R(e, u) = e and u = 1 − ρ̂(e, u)/α.

The kernels of this folder raise no errors: what leaves the range of double precision comes out as
NaN or inf, every loop ends on it, and whoever calls them from Python tests what they return. They
call each other across files, and numba's cache on disk watches only the file of the caller: after
an edit, delete ``__pycache__`` (`make clean`).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_ROOT_HALF = math.sqrt(0.5)
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: Q(38.5) is the smallest positive float; beyond it t² may overflow against that zero.
_FARTHEST = 38.0


@njit(nogil=True, cache=True, error_model="numpy")
def channel(A, lam):  # pragma: no cover
    """Return q(t), tφ(t) and g(t) at t = λ/√A."""
    root = math.sqrt(A)
    if lam > _FARTHEST * root:
        return 0.0, 0.0, 0.0
    t = lam / root
    q = math.erfc(t * _ROOT_HALF)
    slope = t * _INV_ROOT_2PI * math.exp(-0.5 * t * t)
    return q, slope, max((1.0 + t * t) * q - 2.0 * slope, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def averages(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """R, ρ̂ and their derivatives: (R, ρ̂, ∂R/∂e, ∂R/∂u, ∂ρ̂/∂e, ∂ρ̂/∂u).

    v, w are nodes and weights of the average over the scales; σ_η²(v) = sigma2·profile.
    """
    R = xi2 * u * u
    R_e = 0.0
    R_u = 2.0 * u * xi2
    rho_hat = 0.0
    rho_e = 0.0
    rho_u = 0.0
    for i in range(v.size):
        av = alpha * v[i]
        signal = (av * u) ** 2
        A0 = av * e + sigma2 * profile[i]
        A1 = A0 + signal
        q0, slope0, g0 = channel(A0, lam)
        q1, slope1, g1 = channel(A1, lam)
        q = (1.0 - rho) * q0 + rho * q1
        R += (
            w[i]
            * ((1.0 - rho) * A0 * g0 + rho * (A1 * g1 + signal * (1.0 - 2.0 * q1)))
            / (alpha * av)
        )
        # dq/dA = tφ(t)/A and d(A g)/dA = q(t).
        R_e += w[i] * (q - 2.0 * rho * signal * slope1 / A1) / alpha
        R_u += 2.0 * u * w[i] * rho * v[i] * (1.0 - q1 - 2.0 * signal / A1 * slope1)
        rho_hat += w[i] * q
        rho_e += w[i] * av * ((1.0 - rho) * slope0 / A0 + rho * slope1 / A1)
        rho_u += w[i] * rho * 2.0 * u * av * av * slope1 / A1
    return R, rho_hat, R_e, R_u, rho_e, rho_u


@njit(nogil=True, cache=True, error_model="numpy")
def iterate(alpha, rho, xi2, lam, sigma2, v, w, profile, limit, tol, ceiling):  # pragma: no cover
    """Rows (E, V, ρ̂) of the recursion from x = 0, until it converges, diverges or has so many.

    The start is that of AMP: E⁰ = ρE[v] + σ_ξ², V⁰ = 0, ρ̂⁰ = 0.
    """
    rows = np.zeros((limit, 3))
    E = xi2
    for i in range(v.size):
        E += rho * w[i] * v[i]
    V = 0.0
    rows[0, 0] = E
    for k in range(1, limit):
        u = 1.0 / (1.0 + V)
        R, rho_hat, _, _, _, _ = averages(E * u * u, u, alpha, rho, xi2, lam, sigma2, v, w, profile)
        E_new = R / (u * u)
        V_new = rho_hat / (u * alpha)
        rows[k, 0] = E_new
        rows[k, 1] = V_new
        rows[k, 2] = rho_hat
        settled = abs(E_new - E) <= tol * E_new and abs(V_new - V) <= tol * V_new
        E, V = E_new, V_new
        if settled or ceiling < E or ceiling < V:
            return rows[: k + 1]
    return rows
