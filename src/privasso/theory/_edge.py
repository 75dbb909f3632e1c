"""The edge of stability, where V → ∞, and the runaway beyond it.

Write H(e) = R(e, 0) − e for the limit V → ∞, where ρ and σ_ξ drop out. R(e, u) increases with
u², and R(e, 0) is convex in e with slope ρ̂/α, so H is smallest where ρ̂(e, 0) = α. A fixed point
exists exactly when that minimum is negative; it is zero on the critical line. Only λ/σ_η enters,
so the line is one number for each α, scale law and shape of the noise.
"""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._bracket import FARTHEST, TRIALS, next_point, settled
from privasso.theory._recursion import averages

_HALVINGS = 200
#: Where e/R falls below this while still ρ̂ > α, the search for the smallest H ends.
_NOWHERE = 1e-6


@njit(nogil=True, cache=True, error_model="numpy")
def _lowest(x, lam, alpha, v, w, variances, sign_only):  # pragma: no cover
    """Return log e where H is smallest, and 1 − e/R(e, 0) there, which has the sign of H.

    R = 0 stands for 1 − e/R = −∞, and NaN says that double precision does not tell the sign.

    The search is a bracketed Newton iteration for ρ̂(e, 0) = α from log e = x. With `sign_only` it
    ends as soon as the sign is known: H is negative at some e, or its tangent is positive at e = 0,
    where the tangent is lowest if ρ̂ > α.
    """
    lo, hi = -math.inf, math.inf
    R, e = 0.0, 0.0
    for _ in range(_HALVINGS):
        if not abs(x) <= FARTHEST:
            return x, math.nan
        e = math.exp(x)
        R, rho_hat, _, _, rho_e, _ = averages(e, 0.0, alpha, 0.0, 0.0, lam, 1.0, v, w, variances)
        if sign_only and e > R:
            break
        if rho_hat > alpha:
            if e * rho_hat < (1.0 if sign_only else _NOWHERE) * alpha * R:
                break
            hi = x
        else:
            lo = x
        slope = e * rho_e
        new = x - (rho_hat - alpha) / slope if slope > 0.0 else -math.inf
        if not lo < new < hi or abs(new - x) > 3.0:
            new = next_point(lo, hi, 2.0)
        if abs(new - x) <= 1e-12:
            break
        x = new
    return x, 1.0 - e / R


@njit(nogil=True, cache=True, error_model="numpy")
def _start(lam, alpha, v, w, variances):  # pragma: no cover
    """Return log e at which the noise and αve are of the same size, or λ and αe without noise."""
    mean = 0.0
    for i in range(v.size):
        mean += w[i] * variances[i]
    return math.log(mean / alpha) if mean > 0.0 else 2.0 * math.log(lam) - math.log(alpha)


@njit(nogil=True, cache=True, error_model="numpy")
def exists(alpha, lam, v, w, variances):  # pragma: no cover
    """Whether there is a fixed point at this λ with noise of these variances.

    Where double precision does not tell, the answer is yes, and the search for it finds out.
    """
    if alpha >= 1.0:
        return True
    x = _start(lam, alpha, v, w, variances)
    return not _lowest(x, lam, alpha, v, w, variances, True)[1] >= 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def critical_ratio(alpha, v, w, profile):  # pragma: no cover
    """λ/σ_η on the critical line, where the smallest H is zero; 0 for α ≥ 1.

    NaN says that double precision does not reach it.
    """
    if alpha >= 1.0:
        return 0.0
    x = _start(1.0, alpha, v, w, profile)
    y, step = 0.0, 1.0
    lo, hi = -math.inf, math.inf
    f_lo, f_hi = 0.0, 0.0
    # Illinois method: secant steps in log λ, and the value at an end that stays is halved, so
    # that both ends close in. The smallest H decreases with λ.
    for _ in range(_HALVINGS):
        x, f = _lowest(x, math.exp(y), alpha, v, w, profile, False)
        if math.isnan(f):
            return math.nan
        if f > 0.0:
            if lo != -math.inf and y > lo:
                f_hi *= 0.5
            lo, f_lo = y, f
        else:
            if hi != math.inf and y < hi:
                f_lo *= 0.5
            hi, f_hi = y, f
        if lo == -math.inf or hi == math.inf:
            new = next_point(lo, hi, step)
            step *= 2.0
            if abs(new) > FARTHEST:
                return math.nan
        else:
            new = (lo * f_hi - hi * f_lo) / (f_hi - f_lo)
            if not lo < new < hi:
                new = 0.5 * (lo + hi)
        if abs(new - y) <= 1e-13 or hi - lo <= 1e-13:
            break
        y = new
    return math.exp(y)


@njit(nogil=True, cache=True, error_model="numpy")
def runaway(e, alpha, lam, sigma2, v, w, profile):  # pragma: no cover
    """Return the e at which the diverging recursion settles: e = R(e, 0) (α/ρ̂)², with its ρ̂.

    There V grows by the factor ρ̂/α ≥ 1 per iteration. The map lies above e at the critical e
    and below it far out, where R ≈ e/α and ρ̂ ≈ 1. For α next to 1 that may be beyond all doubles:
    the largest e that was tried is returned then. NaN says that nothing could be told.
    """
    lo, hi, rho_hat = -math.inf, math.inf, math.nan
    x = math.log(e) if e > 0.0 else math.nan
    for _ in range(TRIALS):
        if not abs(x) <= FARTHEST:
            break
        R, rho_hat, _, _, _, _ = averages(
            math.exp(x), 0.0, alpha, 0.0, 0.0, lam, sigma2, v, w, profile
        )
        if not math.isfinite(R):
            return math.nan, math.nan
        # Below the critical e the ratio α/ρ̂ exceeds 1, and V does not grow.
        if rho_hat <= alpha or R * (alpha / rho_hat) ** 2 > math.exp(x):
            lo = x
        else:
            hi = x
        if settled(lo, hi, x):
            break
        x = next_point(lo, hi, 1.0)
    return (math.exp(lo), rho_hat) if lo > -math.inf else (math.nan, math.nan)
