"""The edge of stability, where V → ∞, and the runaway beyond it; without clipping and ridge.

Write H(e) = R(e, 0) − e for the limit V → ∞, where ρ and σ_ξ drop out. R(e, q) increases with
q², and R(e, 0) is convex in e with slope S = ρ̂/α, so H is smallest where S(e, 0) = 1. A fixed point
exists exactly when that minimum is negative; it is zero on the critical line. Only λ/σ_η enters,
so the line is one number for each α, scale law and shape of the noise.
"""

from __future__ import annotations

import math

from privasso.theory._system import at, column_averages, inner, kernel

_HALVINGS = 200
#: exp(x) and its reciprocal are normal numbers for |x| up to this.
_FARTHEST = 690.0
#: Steps of one from end to end, and halvings from there to the last digit.
_TRIALS = 2 * 690 + 100
#: Where e/R falls below this while still S > 1, the search for the smallest H ends.
_NOWHERE = 1e-6


@inner
def _lowest(s, x, sign_only):  # pragma: no cover
    """Return log e where H is smallest, and 1 − e/R(e, 0) there, which has the sign of H.

    R = 0 stands for 1 − e/R = −∞, and NaN says that double precision does not tell the sign.

    The search is a bracketed Newton iteration for S(e, 0) = 1 from log e = x. With `sign_only` it
    ends as soon as the sign is known: H is negative at some e, or its tangent is positive at e = 0,
    where the tangent is lowest if S > 1.
    """
    lo, hi = -math.inf, math.inf
    R, e = 0.0, 0.0
    for _ in range(_HALVINGS):
        if not abs(x) <= _FARTHEST:
            return x, math.nan
        e = math.exp(x)
        R, S, _, _, _, S_e, _ = column_averages(s, e, 0.0)
        if sign_only and e > R:
            break
        if S > 1.0:
            if e * S < (1.0 if sign_only else _NOWHERE) * R:
                break
            hi = x
        else:
            lo = x
        slope = e * S_e
        new = x - (S - 1.0) / slope if slope > 0.0 else -math.inf
        if not lo < new < hi or abs(new - x) > 3.0:
            new = 0.5 * (lo + hi)
            if math.isinf(new):
                new = hi - 2.0 if hi < math.inf else lo + 2.0
        if abs(new - x) <= 1e-12:
            break
        x = new
    return x, 1.0 - e / R


@inner
def _start(s):  # pragma: no cover
    """Return log e at which the noise and αve are of the same size, or λ and αe without noise."""
    mean = 0.0
    for i in range(s.v.size):
        mean += s.w[i] * s.power * s.profile[i]
    if mean > 0.0:
        return math.log(mean / s.alpha)
    return 2.0 * math.log(s.lam) - math.log(s.alpha)


@kernel
def exists(s):  # pragma: no cover
    """Whether there is a fixed point.

    Where double precision does not tell, the answer is yes, and the search for it finds out.
    """
    if s.alpha >= 1.0:
        return True
    return not _lowest(s, _start(s), True)[1] >= 0.0


@kernel
def critical_ratio(s):  # pragma: no cover
    """λ/σ_η on the critical line, where the smallest H is zero; 0 for α ≥ 1.

    NaN says that double precision does not reach it.
    """
    if s.alpha >= 1.0:
        return 0.0
    x = _start(at(s, s.alpha, 1.0, 1.0))
    z, step = 0.0, 1.0
    lo, hi = -math.inf, math.inf
    f_lo, f_hi = 0.0, 0.0
    # Illinois method: secant steps in log λ, and the value at an end that stays is halved, so
    # that both ends close in. The smallest H decreases with λ.
    for _ in range(_HALVINGS):
        x, f = _lowest(at(s, s.alpha, math.exp(z), 1.0), x, False)
        if math.isnan(f):
            return math.nan
        if f > 0.0:
            if lo != -math.inf and z > lo:
                f_hi *= 0.5
            lo, f_lo = z, f
        else:
            if hi != math.inf and z < hi:
                f_lo *= 0.5
            hi, f_hi = z, f
        if lo == -math.inf or hi == math.inf:
            new = hi - step if hi < math.inf else lo + step
            step *= 2.0
            if abs(new) > _FARTHEST:
                return math.nan
        else:
            new = (lo * f_hi - hi * f_lo) / (f_hi - f_lo)
            if not lo < new < hi:
                new = 0.5 * (lo + hi)
        if abs(new - z) <= 1e-13 or hi - lo <= 1e-13:
            break
        z = new
    return math.exp(z)


@kernel
def runaway(s, x):  # pragma: no cover
    """Return the log e at which the diverging recursion settles, e = R(e, 0)/S², with its S ≥ 1.

    V grows by the factor S per iteration. The map lies above e at the critical e and below it far
    out, where R ≈ e/α and S ≈ 1/α. For α next to 1 that may be beyond all doubles: the largest e
    that was tried is returned then. NaN says that nothing could be told.
    """
    lo, hi, S = -math.inf, math.inf, math.nan
    for _ in range(_TRIALS):
        if not abs(x) <= _FARTHEST:
            break
        R, S, _, _, _, _, _ = column_averages(s, math.exp(x), 0.0)
        if not math.isfinite(R):
            return math.nan, math.nan
        # Below the critical e the ratio S is less than 1, and V does not grow.
        if S <= 1.0 or math.exp(x) * S * S < R:
            lo = x
        else:
            hi = x
        if hi - lo <= 1e-14 * (1.0 + abs(x)):
            break
        x = 0.5 * (lo + hi)
        if math.isinf(x):
            x = hi - 1.0 if hi < math.inf else lo + 1.0
    return (lo, S) if lo > -math.inf else (math.nan, math.nan)
