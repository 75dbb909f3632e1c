"""Roots of state evolution: the fixed point, the edge of stability, the runaway beyond it.

Write H(e) = R(e, 0) − e for the limit V → ∞, where ρ and σ_ξ drop out. R(e, u) increases with
u², R(e, 0) is convex in e with slope ρ̂/α, so H is smallest where ρ̂(e, 0) = α. A fixed point
exists exactly when that minimum is negative; it is zero on the critical line. Only λ/σ_η enters,
which makes the line one number for each (α, scale law, design).
"""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._recursion import averages

#: Plain iterations before Newton, which they bring close enough in nearly every case.
_PLAIN = 3
#: Newton halves its error at worst, on the critical line itself, where its matrix is singular.
_NEWTON = 60
_TOL = 1e-11
_HALVINGS = 200


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _bracketed(e, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """Return the stable fixed point by bisection in log e; slow, and cannot fail.

    Below the root R(e, u(e)) > e; above it R < e until u(e) reaches zero.
    """
    lo = hi = math.log(e)
    u, R = _solve_u(e, alpha, rho, xi2, lam, sigma2, v, w, profile)
    below = u > 0.0 and e < R
    while True:
        x = hi + 1.0 if below else lo - 1.0
        u, R = _solve_u(math.exp(x), alpha, rho, xi2, lam, sigma2, v, w, profile)
        if below:
            lo, hi = hi, x
        else:
            lo, hi = x, lo
        if (u > 0.0 and math.exp(x) < R) != below:
            break
    while hi - lo > 1e-14 * (1.0 + abs(lo)):
        x = 0.5 * (lo + hi)
        u, R = _solve_u(math.exp(x), alpha, rho, xi2, lam, sigma2, v, w, profile)
        if u > 0.0 and math.exp(x) < R:
            lo = x
        else:
            hi = x
    e = math.exp(lo)
    u, _ = _solve_u(e, alpha, rho, xi2, lam, sigma2, v, w, profile)
    return e, u


@njit(nogil=True, cache=True)
def _newton(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile):  # pragma: no cover
    """Newton on log R − log e and 1 − ρ̂/α − u, in the unknowns (log e, u)."""
    for _ in range(_NEWTON):
        R, rho_hat, R_e, R_u, rho_e, rho_u = averages(
            e, u, alpha, rho, xi2, lam, sigma2, v, w, profile
        )
        f1 = math.log(R / e)
        f2 = 1.0 - rho_hat / alpha - u
        a11 = e * R_e / R - 1.0
        a12 = R_u / R
        a21 = -e * rho_e / alpha
        a22 = -rho_u / alpha - 1.0
        det = a11 * a22 - a12 * a21
        if det == 0.0 or not math.isfinite(det):
            return e, u, False
        dx = (-f1 * a22 + f2 * a12) / det
        du = (-f2 * a11 + f1 * a21) / det
        dx = min(max(dx, -2.0), 2.0)
        new = min(max(u + du, 0.2 * u), 1.0)
        e *= math.exp(dx)
        settled = abs(dx) <= _TOL and abs(new - u) <= _TOL * u
        u = new
        if settled:
            return e, u, True
    return e, u, False


@njit(nogil=True, cache=True)
def runaway(e, alpha, lam, sigma2, v, w, profile):  # pragma: no cover
    """Return the e at which the diverging recursion settles: e = R(e, 0) (α/ρ̂)², with its ρ̂.

    There V grows by the factor ρ̂/α ≥ 1 an iteration. The map lies above e at the critical e
    and below it far out, where R ≈ e/α and ρ̂ ≈ 1.
    """
    lo, hi = math.log(e), math.log(e)
    rho_hat = 0.0
    for side in range(2):
        while True:
            x = lo if side == 0 else hi
            R, rho_hat, _, _, _, _ = averages(
                math.exp(x), 0.0, alpha, 0.0, 0.0, lam, sigma2, v, w, profile
            )
            # Below the critical e the ratio α/ρ̂ exceeds 1: never a runaway.
            above = rho_hat <= alpha or math.log(R) + 2.0 * math.log(alpha / rho_hat) > x
            if above == (side == 0) or abs(x) > 690.0:
                break
            if side == 0:
                lo -= 1.0
            else:
                hi += 1.0
    for _ in range(_HALVINGS):
        mid = 0.5 * (lo + hi)
        R, rho_hat, _, _, _, _ = averages(
            math.exp(mid), 0.0, alpha, 0.0, 0.0, lam, sigma2, v, w, profile
        )
        if rho_hat <= alpha or math.log(R) + 2.0 * math.log(alpha / rho_hat) > mid:
            lo = mid
        else:
            hi = mid
        if hi - lo < 1e-13:
            break
    return math.exp(lo), rho_hat


@njit(nogil=True, cache=True)
def _ratio_at(x, log_ratio, alpha, v, w, profile):  # pragma: no cover
    """Return the log λ/σ with ρ̂(e, 0) = α at e = exp(x), and log R(e, 0) there, for σ = 1."""
    lo, hi = -math.inf, math.inf
    y = log_ratio
    R = 0.0
    for _ in range(_HALVINGS):
        lam = math.exp(y)
        R, rho_hat, _, _, _, _ = averages(
            math.exp(x), 0.0, alpha, 0.0, 0.0, lam, 1.0, v, w, profile
        )
        if rho_hat > alpha:
            lo = y
        else:
            hi = y
        slope = 0.0  # d ρ̂ / d log λ = −2 E[tφ(t)]
        for i in range(v.size):
            t = lam / math.sqrt(alpha * v[i] * math.exp(x) + profile[i])
            slope -= w[i] * 2.0 * t * math.exp(-0.5 * t * t) / math.sqrt(2.0 * math.pi)
        new = y - (rho_hat - alpha) / slope if slope < 0.0 else math.inf
        if not lo < new < hi or abs(new - y) > 2.0:
            if lo == -math.inf:
                new = y - 1.0
            elif hi == math.inf:
                new = y + 1.0
            else:
                new = 0.5 * (lo + hi)
        if abs(new - y) <= 1e-13:
            break
        y = new
    return y, math.log(R)


@njit(nogil=True, cache=True)
def critical_ratio(alpha, v, w, profile):  # pragma: no cover
    """λ/σ_η on the critical line: ρ̂(e, 0) = α and R(e, 0) = e; 0 for α ≥ 1."""
    if alpha >= 1.0:
        return 0.0
    mean_v = 0.0
    for i in range(v.size):
        mean_v += w[i] * v[i]
    x = -math.log(alpha * mean_v)
    lo, hi = -math.inf, math.inf
    f_lo, f_hi = 0.0, 0.0
    y = 0.0
    # Illinois: secant steps in log e whose stale end is halved, so both ends close in.
    for _ in range(_HALVINGS):
        y, log_R = _ratio_at(x, y, alpha, v, w, profile)
        f = log_R - x
        if f > 0.0:
            if lo != -math.inf and hi != math.inf and x > lo:
                f_hi *= 0.5
            lo, f_lo = x, f
        else:
            if lo != -math.inf and hi != math.inf and x < hi:
                f_lo *= 0.5
            hi, f_hi = x, f
        if lo == -math.inf:
            new = x - 2.0
        elif hi == math.inf:
            new = x + 2.0
        else:
            new = (lo * f_hi - hi * f_lo) / (f_hi - f_lo)
            if not lo < new < hi:
                new = 0.5 * (lo + hi)
        if abs(new - x) <= 1e-12 or hi - lo <= 1e-12:
            break
        x = new
    return math.exp(y)


@njit(nogil=True, cache=True)
def fixed_point(lam, sigma2, e, u, alpha, rho, xi2, v, w, profile):  # pragma: no cover
    """Return (e, u, ρ̂) of the fixed point, known to exist, from a start with u > 0.

    A start with u = 0 stands for none: then a few plain iterations make one.
    """
    if u == 0.0:
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
        while averages(e, 0.0, alpha, rho, xi2, lam, sigma2, v, w, profile)[1] >= alpha:
            e *= 0.25
    start = e
    e, u, found = _newton(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile)
    if not found:
        e, u = _bracketed(start, alpha, rho, xi2, lam, sigma2, v, w, profile)
    return e, u, averages(e, u, alpha, rho, xi2, lam, sigma2, v, w, profile)[1]
