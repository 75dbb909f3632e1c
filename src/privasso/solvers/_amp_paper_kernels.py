"""Compiled parts of Algorithm 1 of the paper: a threshold for a batch, and a loop for one run.

`follow` runs the iteration of `_amp_paper` on one right-hand side, without needless work:

- only coefficients that are not zero enter Fx and (F∘F)s, and a column is read once per iteration:
  as soon as its u_i is known, so are the new x_i and s_i, which enter the next Fx and (F∘F)s while
  the column is in cache;
- with x_i = 0 the field is u_i = F_iᵀg − η_i, so |u_i − u_i'| ≤ ‖F_i‖‖g − g'‖: while g is close to
  its value when all of u was computed, most columns cannot have crossed the threshold and are
  not read;
- a run that comes back to an earlier state (x, s, g), up to rounding, is in a cycle and never
  converges. If the support keeps changing, it mostly does so in a cycle of two to about ten
  iterations.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_FAST = {"reassoc", "contract", "nsz"}

LIMIT, CONVERGED, BLOWN_UP, CYCLING = 0, 1, 2, 3
#: How far g may move, in units of its last step, before all of u is computed again.
_REACH = 4.0


@njit(nogil=True, cache=True)
def threshold(Q, eta, squares, s_theta, lam, X, S, moved, size, response):  # pragma: no cover
    """Turn X and S into the next iterates, given Q = FᵀG.

    For each right-hand side, `moved` and `size` become the squared lengths of the step and of x,
    with coefficients weighted by column norms, and `response` the sum of ‖F_i‖² s_i.
    """
    n, n_rhs = Q.shape
    for i in range(n):
        q = squares[i]
        for k in range(n_rhs):
            scale = 1.0 + s_theta[k]
            u = Q[i, k] + X[i, k] * q / scale - eta[i, k]
            new_x, new_s = 0.0, 0.0
            if q > 0.0 and abs(u) > lam[k]:
                new_s = scale / q
                new_x = (u - lam[k] if u > 0.0 else u + lam[k]) * new_s
            moved[k] += q * (new_x - X[i, k]) ** 2
            size[k] += q * new_x * new_x
            response[k] += q * new_s
            X[i, k] = new_x
            S[i, k] = new_s


@njit(nogil=True, cache=True, fastmath=_FAST)
def follow(FT, squares, y, lam, eta, x, s, g, first, max_iter, tol, same, lost):  # pragma: no cover
    """Iterate from iteration `first` on, changing x, s and g in place; returns (end, iterations).

    The arithmetic has the precision of F. Two states count as the same if they differ by no more
    than `same`, relatively, which should be well above rounding.
    """
    n, m = FT.shape
    number = FT.dtype.type  # sums over rows stay in the precision of F, or they would be slow
    rows, n_rows = np.arange(n), n
    centre, reach = np.zeros(m, FT.dtype), -1.0
    fitted, corrected, s_theta = np.zeros(m, FT.dtype), np.zeros(m, FT.dtype), 0.0
    for i in range(n):
        s_theta += squares[i] * s[i] / m
        _add(FT[i], x[i], s[i], fitted, corrected)
    mark_x, mark_s, mark_g, due = x.copy(), s.copy(), g.copy(), 0
    sizes = np.zeros(max_iter + 1)
    for iteration in range(first, max_iter + 1):
        scale = 1.0 + s_theta
        step, distance = 0.0, 0.0
        for mu in range(m):
            new_g = number((y[mu] - fitted[mu] + g[mu] * corrected[mu]) / scale)
            step += (new_g - g[mu]) ** 2
            distance += (new_g - centre[mu]) ** 2
            g[mu] = new_g
        everything = not distance <= reach * reach
        if everything:
            for i in range(n):
                rows[i] = i
            n_rows, reach = n, _REACH * np.sqrt(step)
            centre[:] = g
        fitted[:] = 0.0
        corrected[:] = 0.0
        kept, size, change, response = 0, 0.0, 0.0, 0.0
        for k in range(n_rows):
            i = rows[k]
            q, f = squares[i], FT[i]
            product = number(0.0)
            for mu in range(m):
                product += f[mu] * g[mu]
            u = product + x[i] * q / scale - eta[i]
            new_x, new_s = 0.0, 0.0
            if q > 0.0 and abs(u) > lam:
                new_s = scale / q
                new_x = (u - lam if u > 0.0 else u + lam) * new_s
                _add(f, number(new_x), number(new_s), fitted, corrected)
            # The bound on u holds only while x_i = 0: columns with other coefficients stay in.
            if everything and (x[i] != 0.0 or abs(u) + np.sqrt(q) * reach >= lam):
                rows[kept] = i
                kept += 1
            size += q * new_x * new_x
            change += q * (new_x - x[i]) ** 2
            response += q * new_s
            x[i] = number(new_x)
            s[i] = number(new_s)
        if everything:
            n_rows = kept
        runaway, s_theta = not s_theta <= lost, response / m
        if runaway or not np.isfinite(size):
            return BLOWN_UP, iteration
        if change <= tol * tol * size:
            return CONVERGED, iteration
        if iteration == due:
            if _near(x, mark_x, same) and _near(s, mark_s, same) and _near(g, mark_g, same):
                return CYCLING, iteration
            due = 0
        # If x had the same size p iterations ago, compare the states p iterations from now.
        sizes[iteration] = size
        if due <= iteration:
            for k in range(iteration - 1, first - 1, -1):
                if abs(sizes[k] - size) <= same * size:
                    due = 2 * iteration - k
                    mark_x[:] = x
                    mark_s[:] = s
                    mark_g[:] = g
                    break
    return LIMIT, max_iter


@njit(nogil=True, cache=True, fastmath=_FAST)
def _add(f, x, s, fitted, corrected):  # pragma: no cover
    """Add one column's part of Fx and (F∘F)s."""
    for mu in range(f.size):
        fitted[mu] += x * f[mu]
        corrected[mu] += s * f[mu] * f[mu]


@njit(nogil=True, cache=True, fastmath=_FAST)
def _near(a, b, same):  # pragma: no cover
    difference, size = 0.0, 0.0
    for i in range(a.size):
        difference += (a[i] - b[i]) ** 2
        size += a[i] ** 2
    return difference <= same * same * size
