"""A search for where something changes along a line: outwards in steps, then by halves.

The line is the logarithm of a positive number, so that its ends are those of double precision: a
search with steps of one ends within `TRIALS`.
"""

from __future__ import annotations

import math

from numba import njit

#: exp(x) and its reciprocal are normal numbers for |x| up to this.
FARTHEST = 690.0
#: Steps of one from end to end, and halvings from there to the last digit.
TRIALS = 2 * 690 + 100
#: By how much an equation may be off, relative to its sides, where a search settles. It is off by
#: more where rounding, and no root, made the change.
ACCURATE = 1e-6
#: 1/(1 + V) is a difference from one, of which rounding leaves less than this undecided.
RESOLVED = 1e-12


@njit(nogil=True, cache=True)
def next_point(lo, hi, step):  # pragma: no cover
    """Return the middle between lo and hi, or a step beyond the one that is known."""
    if lo == -math.inf:
        return hi - step
    if hi == math.inf:
        return lo + step
    return 0.5 * (lo + hi)


@njit(nogil=True, cache=True)
def settled(lo, hi, x):  # pragma: no cover
    """Whether lo and hi, of which x is one, agree in nearly all digits."""
    return hi - lo <= 1e-14 * (1.0 + abs(x))
