"""Fixed points of the clipped recursion: roots of R(e, q) = p²b and q + S(e, q) = p.

At a given b, and so at given p and e, S grows with q, so that the second equation has one root q at
most. It has one for every b where all columns have a ridge. Without a ridge it has none once
S(e, 0) = ρ̂(e, 0)/α reaches p, where V → ∞: if R > p²b up to there, no estimator exists.
"""

from __future__ import annotations

import math

from numba import njit

from privasso.theory._clipped_recursion import column_averages, row_averages

_PLAIN = 3
_NEWTON = 40
_TOL, _ROUNDING = 1e-11, 1e-8
_HALVINGS = 200
#: Range of log b in which a bracket is looked for.
_FARTHEST = 80.0


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def _bracketed(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge):  # pragma: no cover
    """Return (b, q) by bisection in log b: slow but safe; q = 0 where there is no fixed point.

    Below the root R > p²b; above it R < p²b until q reaches zero.
    """
    first = math.log(b)
    lo = hi = first
    q, miss = _solve_q(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
    below = q > 0.0 and miss > 0.0
    # Whether the upper end has R ≤ p²b and not just no q: only then is there a root.
    proved = q > 0.0 and not below
    step = 0.5
    while True:
        x = hi + step if below else lo - step
        q, miss = _solve_q(math.exp(x), alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
        if below:
            lo, hi = hi, x
        else:
            lo, hi = x, lo
        if (q > 0.0 and miss > 0.0) != below:
            proved = proved or (below and q > 0.0)
            break
        proved = proved or (not below and q > 0.0)
        step *= 2.0
        if abs(x - first) > _FARTHEST:
            return b, 0.0
    while hi - lo > 1e-14 * (1.0 + abs(lo)):
        x = 0.5 * (lo + hi)
        q, miss = _solve_q(math.exp(x), alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
        if q > 0.0 and miss > 0.0:
            lo = x
        else:
            hi = x
            proved = proved or q > 0.0
    b = math.exp(lo)
    q, _ = _solve_q(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
    return b, q if proved else 0.0


@njit(nogil=True, cache=True)
def _newton(b, q, alpha, rho, xi2, lam, kappa, v, w, variances, ridge):  # pragma: no cover
    """Newton on log R − log p²b and p − S − q in (log b, q): b, q and whether it settled."""
    last = math.inf
    for _ in range(_NEWTON):
        p, e, p_x, e_x = row_averages(b, kappa)
        R, S, _, R_e, R_q, S_e, S_q = column_averages(
            e, q, alpha, rho, xi2, lam, v, w, variances, ridge
        )
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


@njit(nogil=True, cache=True)
def clipped_fixed_point(
    b, q, alpha, rho, xi2, lam, kappa, v, w, variances, ridge
):  # pragma: no cover
    """Return (b, q) of the fixed point, from a start nearby if q > 0; q = 0 where there is none."""
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
    if found:
        return near_b, near_q
    return _bracketed(b, alpha, rho, xi2, lam, kappa, v, w, variances, ridge)
