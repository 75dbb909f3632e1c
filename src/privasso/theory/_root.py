"""Fixed points of state evolution: roots (x, y) of the two equations of `_system`.

At a given x the second equation, g = 0, has at most one root y, because g decreases with y. Where
it has none, V is infinite. Along those y the first one, f, is positive below the stable root and
negative above it, until there is no y: if f stays positive up to there, no estimator exists.
"""

from __future__ import annotations

import math

from privasso.theory._edge import exists
from privasso.theory._system import (
    FEWEST,
    HIGH,
    LOW,
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
