"""Fixed points of state evolution: roots of R(e, u) = e and 1 − ρ̂(e, u)/α = u."""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._bracket import ACCURATE, FARTHEST, RESOLVED, TRIALS, next_point, settled
from privasso.theory._edge import exists
from privasso.theory._recursion import averages

#: Plain iterations before Newton, which they bring close enough in nearly every case.
_PLAIN = 3
#: Newton halves its error at worst, on the critical line itself, where its matrix is singular.
_NEWTON = 60
#: Newton steps from a start nearby before it is given up.
_NEARBY = 12
_TOL = 1e-11
_HALVINGS = 200
#: From the largest double to zero in quarters.
_QUARTERS = 1050


@njit(nogil=True, cache=True, error_model="numpy")
def _solve_u(e, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """Return the u in [0, 1] with u = 1 − ρ̂(e, u)/α, and R there; u = 0 where there is none.

    u + ρ̂(e, u)/α grows with u, so the root is unique.
    """
    R, rho_hat, _, _, _, _ = averages(e, 0.0, alpha, rho, xi2, lam, sigma2, v, w, profile)
    if rho_hat >= alpha:
        return 0.0, R
    lo, hi = 0.0, 1.0
    u = 0.5
    for _ in range(_HALVINGS):
        R, rho_hat, _, _, _, rho_u = averages(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile)
        miss = u + rho_hat / alpha - 1.0
        if miss > 0.0:
            hi = u
        else:
            lo = u
        step = miss / (1.0 + rho_u / alpha)
        new = u - step
        if not lo < new < hi:
            new = 0.5 * (lo + hi)
        if abs(new - u) <= 1e-15 + 1e-13 * u:
            break
        u = new
    return u, R


@njit(nogil=True, cache=True, error_model="numpy")
def _bracketed(e, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """Return the stable fixed point by bisection in log e: slow but safe; NaN if that is beyond it.

    Below the root R(e, u(e)) > e; above it R < e until u(e) reaches zero.
    """
    lo, hi = -math.inf, math.inf
    x = math.log(e) if e > 0.0 else math.nan
    for _ in range(TRIALS):
        if not abs(x) <= FARTHEST:
            break
        e = math.exp(x)
        u, R = _solve_u(e, alpha, rho, xi2, lam, sigma2, v, w, profile)
        if u > 0.0 and not math.isfinite(R):
            break
        if u > 0.0 and e < R:
            lo = x
        else:
            hi = x
        if settled(lo, hi, x):
            e = math.exp(lo)
            u, R = _solve_u(e, alpha, rho, xi2, lam, sigma2, v, w, profile)
            if abs(R - e) <= ACCURATE * e:
                return e, u
            break
        x = next_point(lo, hi, 1.0)
    return math.nan, math.nan


@njit(nogil=True, cache=True, error_model="numpy")
def _newton(e, u, known, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """Newton on log R − log e and 1 − ρ̂/α − u in (log e, u); returns e, u and whether it settled.

    Where a fixed point is `known` to exist, long steps are shortened. Otherwise a long step ends
    the search, and so does a matrix that is not definite, as it is at the stable root: what is
    found then with u > 0 proves that the estimator exists.
    """
    for _ in range(_NEWTON if known else _NEARBY):
        R, rho_hat, R_e, R_u, rho_e, rho_u = averages(
            e, u, alpha, rho, xi2, lam, sigma2, v, w, profile
        )
        if not 0.0 < R / e < math.inf:
            return e, u, False
        f1 = math.log(R / e)
        f2 = 1.0 - rho_hat / alpha - u
        a11 = e * R_e / R - 1.0
        a12 = R_u / R
        a21 = -e * rho_e / alpha
        a22 = -rho_u / alpha - 1.0
        det = a11 * a22 - a12 * a21
        if det == 0.0 or not math.isfinite(det) or not (known or (a11 < 0.0 and det > 0.0)):
            return e, u, False
        dx = (-f1 * a22 + f2 * a12) / det
        new = u + (-f2 * a11 + f1 * a21) / det
        if known:
            dx = min(max(dx, -2.0), 2.0)
            new = min(max(new, 0.2 * u), 1.0)
        elif abs(dx) > 1.0 or new <= 0.2 * u or new > 1.0:
            return e, u, False
        e *= math.exp(dx)
        settled = abs(dx) <= _TOL and abs(new - u) <= _TOL * u
        u = new
        if settled:
            return e, u, True
    return e, u, False


@njit(nogil=True, cache=True, error_model="numpy")
def fixed_point(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """Return (e, u, ρ̂) of the fixed point, known to exist, from a start with u > 0.

    u = 0 says that there is no start; a few plain iterations then make one. NaN says that double
    precision does not reach the fixed point.
    """
    if not u > 0.0:
        e, u = xi2, 1.0
        for i in range(v.size):
            e += rho * w[i] * v[i]
        for _ in range(_PLAIN):
            R, rho_hat, _, _, _, _ = averages(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile)
            V = rho_hat / (u * alpha)
            e = R / (u * (1.0 + V)) ** 2
            u = 1.0 / (1.0 + V)
        # Newton approaches a convex root from below without overshooting; beyond the critical
        # e, where ρ̂ ≥ α for every u, it has no way back.
        for _ in range(_QUARTERS):
            if not averages(e, 0.0, alpha, rho, xi2, lam, sigma2, v, w, profile)[1] >= alpha:
                break
            e *= 0.25
    start = e
    e, u, found = _newton(e, u, True, alpha, rho, xi2, lam, sigma2, v, w, profile)
    if not found:
        e, u = _bracketed(start, alpha, rho, xi2, lam, sigma2, v, w, profile)
    if not u > RESOLVED:
        return math.nan, math.nan, math.nan
    return e, u, averages(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile)[1]


@njit(nogil=True, cache=True, error_model="numpy")
def fixed_point_if_any(e, u, alpha, rho, xi2, lam, v, w, variances):  # pragma: no cover
    """Return (e, u) of the fixed point, from a start nearby if u > 0; u = 0 where there is none.

    NaN says that double precision does not tell.
    """
    if u > 0.0:
        near_e, near_u, found = _newton(e, u, False, alpha, rho, xi2, lam, 1.0, v, w, variances)
        if found:
            return near_e, near_u
    if not exists(alpha, lam, v, w, variances):
        return e, 0.0
    e, u, _ = fixed_point(0.0, 0.0, alpha, rho, xi2, lam, 1.0, v, w, variances)
    return e, u
