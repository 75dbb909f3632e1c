"""Fixed points of the clipped recursion: roots of R(e, q) = p²b and q + S(e, q) = p.

At a given b, and so at given p and e, S grows with q, so that the second equation has one root q at
most. It has one for every b where all columns have a ridge. Without a ridge it has none once
S(e, 0) = ρ̂(e, 0)/α reaches p, where V → ∞: if R > p²b up to there, no estimator exists.
"""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._bracket import ACCURATE, RESOLVED, TRIALS, next_point, settled
from privasso.theory._clipped_recursion import column_averages, row_averages

_PLAIN = 3
_NEWTON = 40
_TOL, _ROUNDING = 1e-11, 1e-8
#: From 1 to the least double.
_HALVINGS = 1100
#: Range of log b in which a bracket is looked for.
_FARTHEST = 80.0


@njit(nogil=True, cache=True, error_model="numpy")
def _solve_q(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge):  # pragma: no cover
    """Return the q in (0, p] with q + S(e, q) = p, and R − p²b there; q = 0 where there is none."""
    p, e, _, _ = row_averages(b, kappa)
    R, S, _, _, _, _, _ = column_averages(e, 0.0, alpha, rho, xi2, lam, v, w, variances, ridge)
    if p <= S:
        return 0.0, R - p * p * b
    lo, hi = 0.0, p
    q = 0.5 * p
    for _ in range(_HALVINGS):
        R, S, _, _, _, _, S_q = column_averages(e, q, alpha, rho, xi2, lam, v, w, variances, ridge)
        miss = q + S - p
        if miss > 0.0:
            hi = q
        else:
            lo = q
        new = q - miss / (1.0 + S_q)
        if not lo < new < hi:
            new = 0.5 * (lo + hi)
        if abs(new - q) <= 1e-13 * q or new in (lo, hi):
            break
        q = new
    return q, R - p * p * b


@njit(nogil=True, cache=True, error_model="numpy")
def _bracketed(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge):  # pragma: no cover
    """Return (b, q) by bisection in log b: slow but safe; q = 0 where there is no fixed point.

    Below the root R > p²b; above it R < p²b until q reaches zero. NaN says that the search left
    double precision.
    """
    lo, hi, step = -math.inf, math.inf, 0.5
    first = x = math.log(b) if b > 0.0 else math.nan
    # Whether R ≤ p²b was seen, and not just no q: only then is there a root.
    proved = False
    for _ in range(TRIALS):
        q, miss = _solve_q(math.exp(x), alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
        if not math.isfinite(miss):
            return math.nan, math.nan
        if q > 0.0 and miss > 0.0:
            lo = x
        else:
            hi = x
            proved = proved or q > 0.0
        if settled(lo, hi, x):
            b = math.exp(lo)
            q, miss = _solve_q(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
            if not proved:
                return b, 0.0
            if not abs(miss) <= ACCURATE * row_averages(b, kappa)[0] ** 2 * b:
                break
            return b, q
        if abs(x - first) > _FARTHEST and (lo == -math.inf or hi == math.inf):
            break
        x = next_point(lo, hi, step)
        step *= 2.0
    return (math.nan, math.nan) if proved else (b, 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def _newton(b, q, alpha, rho, xi2, lam, kappa, v, w, variances, ridge):  # pragma: no cover
    """Newton on log R − log p²b and p − S − q in (log b, q): b, q and whether it settled."""
    last = math.inf
    for _ in range(_NEWTON):
        p, e, p_x, e_x = row_averages(b, kappa)
        R, S, _, R_e, R_q, S_e, S_q = column_averages(
            e, q, alpha, rho, xi2, lam, v, w, variances, ridge
        )
        if not 0.0 < R / (p * p * b) < math.inf:
            return b, q, False
        f1 = math.log(R / (p * p * b))
        f2 = p - S - q
        a11 = R_e * e_x / R - 2.0 * p_x / p - 1.0
        a12 = R_q / R
        a21 = p_x - S_e * e_x
        a22 = -S_q - 1.0
        det = a11 * a22 - a12 * a21
        # At the root the matrix has a11 < 0 < det; elsewhere a step may lead away from it.
        if not (math.isfinite(det) and a11 < 0.0 < det):
            return b, q, False
        dx = min(max((-f1 * a22 + f2 * a12) / det, -2.0), 2.0)
        new = min(max(q + (-f2 * a11 + f1 * a21) / det, 0.2 * q), 1.0)
        b *= math.exp(dx)
        size = max(abs(dx), abs(new - q) / q)
        q = new
        # Steps that are small and do not become smaller are rounding.
        if size <= _TOL or 0.5 * last <= size <= _ROUNDING:
            return b, q, True
        last = size
    return b, q, False


@njit(nogil=True, cache=True, error_model="numpy")
def clipped_fixed_point(
    b, q, alpha, rho, xi2, lam, kappa, v, w, variances, ridge
):  # pragma: no cover
    """Return (b, q) of the fixed point, from a start nearby if q > 0; q = 0 where there is none.

    NaN says that double precision does not reach it.
    """
    if q > 0.0:
        near_b, near_q, found = _newton(b, q, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
        if found:
            return near_b, near_q
    E, V = xi2, 0.0
    for i in range(v.size):
        E += rho * w[i] * v[i]
    for _ in range(_PLAIN):
        u = 1.0 / (1.0 + V)
        p, e, _, _ = row_averages(E * u * u, kappa)
        q = p * u
        R, S, _, _, _, _, _ = column_averages(e, q, alpha, rho, xi2, lam, v, w, variances, ridge)
        E, V = R / (q * q), S / q
    b = E / (1.0 + V) ** 2
    q = row_averages(b, kappa)[0] / (1.0 + V)
    near_b, near_q, found = _newton(b, q, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
    if not found:
        near_b, near_q = _bracketed(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
    if near_q == 0.0 or near_q > RESOLVED * row_averages(near_b, kappa)[0]:
        return near_b, near_q
    return math.nan, math.nan
