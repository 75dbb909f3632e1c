"""Fixed points of state evolution: roots (x, y) of the two equations of `_system`.

At a given x the second equation, g = 0, has at most one root y, because g decreases with y. Where
it has none, V is infinite. Along those y the first one, f, is positive below the stable root and
negative above it, until there is no y: if f stays positive up to there, no estimator exists.

At the edge of stability V → ∞, and beyond it the recursion runs away. Without clipping and ridge,
write H(e) = R(e, 0) − e for the limit V → ∞, where ρ and σ_ξ drop out. R(e, q) increases with
q², and R(e, 0) is convex in e with slope S = ρ̂/α, so H is smallest where S(e, 0) = 1. A fixed point
exists exactly when that minimum is negative; it is zero on the critical line. Only λ/σ_η enters,
so the line is one number for each α, scale law and shape of the noise.
"""

from __future__ import annotations

import math

from privasso.theory._system import (
    FEWEST,
    HIGH,
    LOW,
    at,
    column_averages,
    first,
    inner,
    kernel,
    misses,
    row_averages,
    step,
)

#: What a search may find: the stable root, that there is none, or that doubles do not tell.
FOUND, ABSENT, LOST = 0, 1, 2
#: exp(x) and its reciprocal are normal numbers for |x| up to this.
_FARTHEST = 690.0
#: Doublings from end to end, and halvings from there to the last digit.
_TRIALS = 200
#: Halvings from 1 to the least double.
_HALVINGS = 1100
#: Plain iterations before Newton, which they bring close enough in nearly every case.
_PLAIN = 3
#: Newton halves its error at worst, on the critical line itself, where its matrix is singular.
_NEWTON, _NEARBY = 60, 40
_TOL, _ROUNDING = 1e-11, 1e-8
#: From the largest double to zero in quarters.
_QUARTERS = 1050
#: By how much an equation may be off, relative to its sides, where a search settles. It is off by
#: more where rounding, and no root, made the change.
_ACCURATE = 1e-6
#: 1/(1 + V) is a difference from one, of which rounding leaves less than this undecided.
_RESOLVED = 1e-12


@inner
def _has_room(s, x):  # pragma: no cover
    """Whether some y solves the second equation at x."""
    most, e, _, _ = row_averages(math.exp(x), s.kappa)
    if s.d.size > 0:
        most = 0.0
        for k in range(s.d.size):
            if s.d[k] > 0.0:
                most += s.dw[k]
    return not most <= column_averages(s, e, 0.0)[1]


@inner
def _solve_y(s, x, y):  # pragma: no cover
    """Return the y at x, which exists, and f there, by bracketed Newton from y."""
    lo, hi = LOW, HIGH
    if s.d.size == 0:
        lo, hi = 0.0, row_averages(math.exp(x), s.kappa)[0]
    if not lo < y < hi:
        y = 0.5 * (lo + hi)
    f = math.nan
    for _ in range(_HALVINGS):
        f, g, _, _, _, g_y = misses(s, x, y)
        if g < 0.0:
            hi = y
        else:
            lo = y
        new = y - g / g_y if g_y < 0.0 else math.nan
        if not lo < new < hi:
            new = 0.5 * (lo + hi)
        if abs(new - y) <= 1e-13 * abs(y) or new in (lo, hi):
            break
        y = new
    return y, f


@inner
def _bracketed(s, x, y):  # pragma: no cover
    """Search by bisection in x, first outwards in steps that double: slow but safe."""
    lo, hi, step = -math.inf, math.inf, 0.5
    # Whether f ≤ 0 was seen, and not just no y: only then is there a root.
    proved = False
    for _ in range(_TRIALS):
        if not abs(x) <= _FARTHEST:
            break
        room = _has_room(s, x)
        f = math.nan
        if room:
            y, f = _solve_y(s, x, y)
            if math.isnan(f):
                return LOST, x, y
        if room and f > 0.0:
            lo = x
        else:
            hi = x
            proved = proved or room
        if hi - lo <= 1e-14 * (1.0 + abs(x)):
            if not proved:
                return ABSENT, x, y
            y, f = _solve_y(s, lo, y)
            return FOUND if abs(f) <= _ACCURATE else LOST, lo, y
        if lo == -math.inf:
            x = hi - step
        elif hi == math.inf:
            x = lo + step
        else:
            x = 0.5 * (lo + hi)
        step *= 2.0
    return LOST if proved or math.isnan(x) else ABSENT, x, y


@inner
def _newton(s, x, y, known, limit):  # pragma: no cover
    """Newton's method with steps that are shortened: x, y and whether it found the stable root.

    There the matrix is definite. Where a root is not `known` to exist, a matrix that is not ends
    the search.
    """
    last = math.inf
    for _ in range(limit):
        f, g, f_x, f_y, g_x, g_y = misses(s, x, y)
        det = f_x * g_y - f_y * g_x
        definite = f_x < 0.0 < det
        if not (math.isfinite(f) and math.isfinite(det) and det != 0.0 and (known or definite)):
            return x, y, False
        dx = min(max((g * f_y - f * g_y) / det, -2.0), 2.0)
        dy = (f * g_x - g * f_x) / det
        if s.d.size == 0:
            new = min(max(y + dy, 0.2 * y), 1.0)
            size = max(abs(dx), abs(new - y) / y)
        else:
            new = min(max(y + dy, y - 2.0), y + 2.0)
            size = max(abs(dx), abs(new - y) / (1.0 + abs(y)))
        x += dx
        y = new
        # Steps that are small and do not become smaller are rounding.
        if size <= _TOL or 0.8 * last <= size <= _ROUNDING:
            return x, y, definite
        last = size
    return x, y, False


@kernel
def fixed_point(s, x, y, known):  # pragma: no cover
    """Return what was found, and (x, y) there; a start nearby saves time, and NaN stands for none.

    `known` says that a fixed point exists.
    """
    promised, status = known, LOST
    linear = s.kappa == math.inf and s.ridge.size == 0
    start = math.isfinite(x) and math.isfinite(y) and (s.d.size > 0 or y > 0.0)
    for attempt in range(0 if start else 1, 3):
        if attempt == 1:
            if linear and not known and not exists(s):
                return ABSENT, x, y
            known = known or linear
            _, x, y = first(s)
            for k in range(_PLAIN):
                _, _, rho_hat, x, y = step(s, x, y)
                if k == 0 and s.d.size > 0 and rho_hat < FEWEST:
                    return FOUND, x, y
        elif attempt == 2:
            # Newton approaches a root from below without overshooting; where there is no y it has
            # no way back.
            before = x
            for _ in range(_QUARTERS):
                if _has_room(s, x):
                    break
                x -= 2.0 * math.log(2.0)
            if x == before:
                break
        near_x, near_y, found = _newton(s, x, y, known, _NEWTON if known else _NEARBY)
        if found:
            status, x, y = FOUND, near_x, near_y
            break
    if status != FOUND:
        status, x, y = _bracketed(s, x, y)
    p = row_averages(math.exp(x), s.kappa)[0]
    beyond = status == FOUND and s.d.size == 0 and not y > _RESOLVED * p
    return LOST if beyond or (promised and status == ABSENT) else status, x, y


_EDGE_HALVINGS = 200
#: Steps of one from end to end, and halvings from there to the last digit.
_RUNAWAY_TRIALS = 2 * 690 + 100
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
    for _ in range(_EDGE_HALVINGS):
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
    for _ in range(_EDGE_HALVINGS):
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
    for _ in range(_RUNAWAY_TRIALS):
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
