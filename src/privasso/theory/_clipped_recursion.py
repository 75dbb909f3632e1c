"""State evolution of the clipped-residual LASSO with a ridge: averages, and the plain recursion.

A new residual r of the model is N(0, E). Its clipped slope, after the record's own influence V, is
min(|r|/(1+V), κ) in size. In b = E/(1+V)² and a = κ/√b the rows give

    p = 2Φ(a) − 1,   q = p/(1+V),   e = b (p − 2aφ(a)) + 2κ² Q(a):

p is the fraction of residuals that are not clipped, q the mean slope and e the mean square of the
clipped residual. Without clipping p = 1, q = 1/(1+V) and e = b = E/(1+V)², which are the u and e of
`_recursion`. The columns, with ridge Λ_v, k = αvq, d = k + Λ_v, A₀ = αve + σ_η²(v), A₁ = A₀ + k²,
t_k = λ/√A_k and P = (1−ρ) q(t₀) + ρ q(t₁), give

    E = σ_ξ² + E_v[ v {(1−ρ) A₀ g(t₀)/d² + ρ (A₁ g(t₁)/d² − 2 q(t₁) k/d + 1)} ]
    V = E_v[ v P/d ],    ρ̂ = E_v[P].

Both are multiplied by powers of q here, R = q²E and S = qV, so that nothing diverges with V. A
fixed point is a root of R(e, q) = p²b and q + S(e, q) = p in b and q.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from privasso.theory._recursion import channel

_ROOT_HALF = math.sqrt(0.5)
_INV_ROOT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
#: Beyond so many standard deviations no residual is clipped.
_NEVER = 40.0


@njit(nogil=True, cache=True, error_model="numpy")
def row_averages(b, kappa):  # pragma: no cover
    """p, e, and their derivatives in log b."""
    root = math.sqrt(b)
    if kappa > _NEVER * root:
        return 1.0, b, 0.0, b
    a = kappa / root
    p = math.erf(a * _ROOT_HALF)
    slope = a * _INV_ROOT_2PI * math.exp(-0.5 * a * a)
    # E[z²; |z| < a]; the difference loses its digits for small a, where the series has them.
    inside = p - 2.0 * slope
    if a < 1e-2:
        inside = 2.0 * _INV_ROOT_2PI * a**3 * (1.0 / 3.0 - 0.1 * a * a)
    e = b * inside + kappa * kappa * math.erfc(a * _ROOT_HALF)
    return p, e, -slope, b * inside


@njit(nogil=True, cache=True, error_model="numpy")
def column_averages(e, q, alpha, rho, xi2, lam, v, w, variances, ridge):  # pragma: no cover
    """R, S, ρ̂ and derivatives: (R, S, ρ̂, ∂R/∂e, ∂R/∂q, ∂S/∂e, ∂S/∂q).

    v, w are nodes and weights of the average over the scales, with noise variances and ridge there.
    """
    R, R_e, R_q = xi2 * q * q, 0.0, 2.0 * q * xi2
    S, S_e, S_q = 0.0, 0.0, 0.0
    rho_hat = 0.0
    for i in range(v.size):
        av = alpha * v[i]
        k = av * q
        # r = q/d stays finite where q and the ridge vanish.
        if ridge[i] == 0.0:
            r, r_q = 1.0 / av, 0.0
        else:
            d = k + ridge[i]
            r, r_q = q / d, ridge[i] / d / d
        A0 = av * e + variances[i]
        A1 = A0 + k * k
        q0, slope0, g0 = channel(A0, lam)
        q1, slope1, g1 = channel(A1, lam)
        P = (1.0 - rho) * q0 + rho * q1
        power = (1.0 - rho) * A0 * g0 + rho * A1 * g1
        cross = k * q * r
        wv = w[i] * v[i]
        # A₁g(t₁)r² − 2 q(t₁) kqr + q² without the cancellation of a good fit, where all three are
        # nearly q²: 1 − q(t) = erf(t/√2), and q − kr is the part that the ridge takes.
        t1 = lam / math.sqrt(A1)
        off = math.erf(t1 * _ROOT_HALF)
        missed = (
            A0 * g1 * r * r
            + (ridge[i] * r) ** 2
            + k * r * (2.0 * q * off - k * r * (off - t1 * t1 * q1 + 2.0 * slope1))
        )
        # d(A g)/dA = q(t) and dq/dA = tφ(t)/A.
        steep1 = slope1 / A1
        A1_q = 2.0 * k * av
        R += wv * ((1.0 - rho) * A0 * g0 * r * r + rho * missed)
        R_e += wv * av * (P * r * r - 2.0 * rho * cross * steep1)
        R_q += wv * (
            rho * A1_q * (q1 * r * r - 2.0 * cross * steep1)
            + 2.0 * power * r * r_q
            + 2.0 * rho * (q - q1 * k * (2.0 * r + q * r_q))
        )
        S += wv * P * r
        S_e += wv * av * r * ((1.0 - rho) * slope0 / A0 + rho * steep1)
        S_q += wv * (P * r_q + rho * r * steep1 * A1_q)
        rho_hat += w[i] * P
    return R, S, rho_hat, R_e, R_q, S_e, S_q


@njit(nogil=True, cache=True, error_model="numpy")
def iterate_clipped(
    alpha, rho, xi2, lam, kappa, v, w, variances, ridge, limit, tol, ceiling
):  # pragma: no cover
    """Rows (E, V, ρ̂) of the recursion from x = 0, until it converges, diverges or has so many."""
    rows = np.zeros((limit, 3))
    E = xi2
    for i in range(v.size):
        E += rho * w[i] * v[i]
    V = 0.0
    rows[0, 0] = E
    for k in range(1, limit):
        u = 1.0 / (1.0 + V)
        p, e, _, _ = row_averages(E * u * u, kappa)
        q = p * u
        R, S, rho_hat, _, _, _, _ = column_averages(
            e, q, alpha, rho, xi2, lam, v, w, variances, ridge
        )
        E_new, V_new = R / (q * q), S / q
        rows[k, 0] = E_new
        rows[k, 1] = V_new
        rows[k, 2] = rho_hat
        settled = abs(E_new - E) <= tol * E_new and abs(V_new - V) <= tol * V_new
        E, V = E_new, V_new
        if settled or ceiling < E or ceiling < V:
            return rows[: k + 1]
    return rows
