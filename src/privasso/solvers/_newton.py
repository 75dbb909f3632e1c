"""Coordinate descent followed by Newton steps, compiled.

If the support is nearly known this is enough: coordinate descent corrects the few coordinates that
are wrong, and once all signs are right a Newton step with one Cholesky factorisation gives the
exact answer. Everything runs without the GIL, so that a batch of problems can be solved on as many
threads as there are cores.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from privasso.solvers import _tuned as tuned

_FAST = {"reassoc", "contract", "nsz"}
_EPS = float(np.finfo(np.float64).eps)


@njit(nogil=True, cache=True, fastmath=_FAST)
def descend(H, z, r, weights, n_epochs, tol):  # pragma: no cover
    """Cyclic coordinate descent in place; r = b − Hz is kept up to date.

    Stops when no step exceeds tol times its weight, or when an epoch leaves the support as it
    was, because a Newton step then gains more.
    """
    n = z.size
    for epoch in range(n_epochs):
        moved = False
        flipped = False
        for i in range(n):
            h = H[i, i]
            if h <= 0.0:
                continue
            u = r[i] + h * z[i]
            new = 0.0
            if u > weights[i]:
                new = (u - weights[i]) / h
            elif u < -weights[i]:
                new = (u + weights[i]) / h
            d = new - z[i]
            if d != 0.0:
                flipped |= (new == 0.0) != (z[i] == 0.0)
                moved |= abs(d) > tol * weights[i]
                z[i] = new
                row = H[i]
                for k in range(n):
                    r[k] -= row[k] * d
        if not moved or (epoch >= 1 and not flipped):
            break


@njit(nogil=True, cache=True, fastmath=_FAST)
def residual(H, b, z, r):  # pragma: no cover
    """R = b − Hz, reading only the rows of H in the support of z."""
    r[:] = b
    for i in range(z.size):
        if z[i] != 0.0:
            row = H[i]
            zi = z[i]
            for k in range(r.size):
                r[k] -= row[k] * zi


@njit(nogil=True, cache=True)
def copy_submatrix(H, index, out):  # pragma: no cover
    """``out = H[index][:, index]``."""
    n = index.size
    for i in range(n):
        row = H[index[i]]
        for j in range(n):
            out[i, j] = row[index[j]]


@njit(nogil=True, cache=True, fastmath=_FAST)
def cholesky_solve(L, rhs):  # pragma: no cover
    """Solve LLᵀp = rhs for a lower triangular L, reading it row by row."""
    n = rhs.size
    p = rhs.copy()
    for i in range(n):
        row = L[i]
        s = p[i]
        for j in range(i):
            s -= row[j] * p[j]
        p[i] = s / row[i]
    for i in range(n - 1, -1, -1):
        row = L[i]
        pi = p[i] / row[i]
        p[i] = pi
        for j in range(i):
            p[j] -= row[j] * pi
    return p


@njit(nogil=True, cache=True)
def line_search(z, p, decrease, curvature, weights):  # pragma: no cover
    """Exact minimum along z + t p, p a direction along which the objective falls at first.

    The slope is t·curvature − decrease, plus a jump of 2w_i|p_i| where coordinate i changes
    sign. Returns t and the coordinate that becomes zero there, or −1. Without a minimum t is
    infinite.
    """
    crossing = np.flatnonzero(p * z < 0.0)
    t_cross = -z[crossing] / p[crossing]
    slope = -decrease
    for k in np.argsort(t_cross):
        t, i = t_cross[k], crossing[k]
        if slope + t * curvature >= 0.0:
            break
        jump = 2.0 * weights[i] * abs(p[i])
        if slope + jump + t * curvature >= 0.0:
            return t, i
        slope += jump
    if curvature <= 0.0:
        return np.inf, -1
    return -slope / curvature, -1


@njit(nogil=True, cache=True)
def largest_violation(b, weights, z, r):  # pragma: no cover
    """Largest violation of an optimality condition beyond rounding, relative to its weight."""
    fitted = 0.0
    for i in range(z.size):
        fitted += z[i] * (b[i] - r[i])
    size = np.sqrt(max(fitted, 0.0))
    worst = 0.0
    for i in range(z.size):
        if z[i] > 0.0:
            violation = abs(r[i] - weights[i])
        elif z[i] < 0.0:
            violation = abs(r[i] + weights[i])
        else:
            violation = abs(r[i]) - weights[i]
        if violation > 8.0 * _EPS * (abs(b[i]) + size):
            worst = max(worst, violation / weights[i])
    return worst


@njit(nogil=True, cache=True)
def gain(weights, z, r, new, r_new):  # pragma: no cover
    """By how much ½zᵀHz − bᵀz + Σ w_i|z_i| falls from z to `new`, given b − Hz at both.

    It is a sum over the coordinates that differ, in which no large numbers cancel.
    """
    total = 0.0
    for i in range(z.size):
        if new[i] != z[i]:
            total += 0.5 * (new[i] - z[i]) * (r[i] + r_new[i])
            total -= weights[i] * (abs(new[i]) - abs(z[i]))
    return total


@njit(nogil=True, cache=True)
def newton_steps(H, b, weights, z, r, active, L, tol):  # pragma: no cover
    """Newton steps on the active set, H = LLᵀ there, as long as its signs stay; z and r in place.

    L may be in single precision, which takes half the time. The steps are computed from residuals
    in double precision, so that a second and a third step with the same factor remove its error
    unless H is badly conditioned.

    A Newton step that changes signs is not exact. Two points are compared then: the minimum along
    the step, and the end of the step with zero for every coefficient whose sign it changes. The
    second mostly is better, because it leaves many columns out at once.

    Returns whether z is optimal to tol.
    """
    for _ in range(tuned.STEPS_OF_A_FACTOR):
        signs = np.sign(z[active])
        descent = r[active] - weights[active] * signs
        p = cholesky_solve(L, descent)
        decrease = np.dot(descent, p)
        if not decrease > 0.0:
            break
        t, hit = line_search(z[active], p, decrease, decrease, weights[active])
        if hit < 0 and t == 1.0:
            z[active] += p
            residual(H, b, z, r)
            if largest_violation(b, weights, z, r) <= tol:
                return True
            continue
        cut = z.copy()
        cut[active] = np.where((z[active] + p) * signs > 0.0, z[active] + p, 0.0)
        r_cut = np.empty_like(r)
        residual(H, b, cut, r_cut)
        along = z.copy()
        along[active] += t * p
        if hit >= 0:
            along[active[hit]] = 0.0
        r_along = np.empty_like(r)
        residual(H, b, along, r_along)
        if gain(weights, z, r, cut, r_cut) > gain(weights, z, r, along, r_along):
            z[:] = cut
            r[:] = r_cut
        else:
            z[:] = along
            r[:] = r_along
        break  # the support has changed, and the factor no longer fits
    return False
