"""Fixed points of VAMP's state evolution: roots in (log e, ℓ = log γ₂).

With u = Γ(ℓ) and the averages R(e, u), ρ̂(e, u) over the columns, a fixed point solves

    ρ̂(e, Γ(ℓ)) = r(ℓ),    e = T(e, ℓ) = (σ_ξ² E[dp²] + R·Var(q)/r²)/E[p²].

ρ̂ increases with u, Γ with ℓ, and r decreases with ℓ: each e has at most one ℓ(e). As for
independent columns, T(e, ℓ(e)) > e below the root and < e above it, until ℓ(e) = −∞.
"""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._bracket import ACCURATE, FARTHEST, TRIALS, next_point, settled
from privasso.theory._recursion import averages
from privasso.theory._rotated_recursion import (
    FEWEST,
    eigenvalue_averages,
    half_step,
    precision,
    start,
)

_PLAIN = 5
_NEWTON = 60
_TOL = 1e-11
_HALVINGS = 200
#: ℓ is searched between these ends.
_LOW, _HIGH = -600.0, 600.0


@njit(nogil=True, cache=True, error_model="numpy")
def _misses(x, ell, rho, xi2, lam, v, w, variances, d, dw):  # pragma: no cover
    """Log T − x and log ρ̂ − log r at e = exp(x), with their four derivatives by (x, ℓ)."""
    e = math.exp(x)
    r, noise, spread, square, r_l, noise_l, spread_l, square_l = eigenvalue_averages(ell, d, dw)
    u = precision(ell, r)
    u_l = u * (1.0 + r_l / (r * (1.0 - r)))
    R, rho_hat, R_e, R_u, rho_e, rho_u = averages(e, u, 1.0, rho, 0.0, lam, 1.0, v, w, variances)
    top = xi2 * noise + spread * R
    top_l = xi2 * noise_l + spread_l * R + spread * R_u * u_l
    if rho_hat <= 0.0 or top <= 0.0:
        return math.inf, -math.inf, 0.0, 0.0, 0.0, 0.0
    return (
        math.log(top / square) - x,
        math.log(rho_hat / r),
        spread * R_e * e / top - 1.0,
        top_l / top - square_l / square,
        rho_e * e / rho_hat,
        rho_u * u_l / rho_hat - r_l / r,
    )


@njit(nogil=True, cache=True, error_model="numpy")
def _solve_ell(x, ell, rho, xi2, lam, v, w, variances, d, dw):  # pragma: no cover
    """Return ℓ(e), and log T − log e there; ℓ is at its lower end where there is none."""
    lo, hi = _LOW, _HIGH
    f = 0.0
    for _ in range(_HALVINGS):
        f, g, _, _, _, g_l = _misses(x, ell, rho, xi2, lam, v, w, variances, d, dw)
        if g > 0.0:
            hi = ell
        else:
            lo = ell
        new = ell - g / g_l if g_l > 0.0 else -math.inf
        if not lo < new < hi:
            new = 0.5 * (lo + hi)
        if abs(new - ell) <= 1e-13 * (1.0 + abs(ell)):
            break
        ell = new
    return ell, f


@njit(nogil=True, cache=True, error_model="numpy")
def _bracketed(x, ell, rho, xi2, lam, v, w, variances, d, dw):  # pragma: no cover
    """Return the fixed point by bisection in log e: slow but safe; NaN if that is beyond it."""
    lo, hi = -math.inf, math.inf
    for _ in range(TRIALS):
        if not abs(x) <= FARTHEST:
            break
        ell, f = _solve_ell(x, ell, rho, xi2, lam, v, w, variances, d, dw)
        if ell > _LOW + 1.0 and math.isnan(f):
            break
        if f > 0.0 and ell > _LOW + 1.0:
            lo = x
        else:
            hi = x
        if settled(lo, hi, x):
            ell, f = _solve_ell(lo, ell, rho, xi2, lam, v, w, variances, d, dw)
            if abs(f) <= ACCURATE:
                return lo, ell
            break
        x = next_point(lo, hi, 1.0)
    return math.nan, math.nan


@njit(nogil=True, cache=True, error_model="numpy")
def rotated_fixed_point(rho, xi2, lam, v, w, variances, d, dw):  # pragma: no cover
    """Return (ω₁, γ₁, ρ̂) of the fixed point, which is known to exist; NaN if beyond doubles."""
    gamma1, tau1 = start(rho, xi2, v, w, d, dw)
    R, rho_hat, _, _, _, _ = averages(
        tau1 * gamma1 * gamma1, gamma1, 1.0, rho, 0.0, lam, 1.0, v, w, variances
    )
    if rho_hat < FEWEST:
        return R / (gamma1 * gamma1), gamma1, rho_hat
    ell = 0.0
    for _ in range(_PLAIN):
        rho_hat = min(max(rho_hat, 1e-6), 1.0 - 1e-6)
        ell = math.log(gamma1) + math.log1p(-rho_hat) - math.log(rho_hat)
        gamma1, tau1 = half_step(gamma1, tau1, rho_hat, R / (gamma1 * gamma1), xi2, d, dw)
        R, rho_hat, _, _, _, _ = averages(
            tau1 * gamma1 * gamma1, gamma1, 1.0, rho, 0.0, lam, 1.0, v, w, variances
        )
    x = math.log(tau1 * gamma1 * gamma1) if tau1 * gamma1 > 0.0 else math.nan
    first, found = x, False
    start_ell = ell
    for _ in range(_NEWTON):
        f, g, f_x, f_l, g_x, g_l = _misses(x, ell, rho, xi2, lam, v, w, variances, d, dw)
        det = f_x * g_l - f_l * g_x
        if not math.isfinite(f) or not math.isfinite(det) or det == 0.0:
            break
        dx = min(max((-f * g_l + g * f_l) / det, -2.0), 2.0)
        dl = min(max((-g * f_x + f * g_x) / det, -2.0), 2.0)
        x += dx
        ell += dl
        if abs(dx) <= _TOL and abs(dl) <= _TOL * (1.0 + abs(ell)):
            found = f_x < 0.0 and det < 0.0
            break
    if not found:
        x, ell = _bracketed(first, start_ell, rho, xi2, lam, v, w, variances, d, dw)
    gamma1 = precision(ell, eigenvalue_averages(ell, d, dw)[0])
    R, rho_hat, _, _, _, _ = averages(math.exp(x), gamma1, 1.0, rho, 0.0, lam, 1.0, v, w, variances)
    return R / (gamma1 * gamma1), gamma1, rho_hat
