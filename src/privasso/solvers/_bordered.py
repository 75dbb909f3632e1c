"""Where a support ends, found with one factor: a bordered system for each column that changes.

The minimiser on a support A with signs σ solves H_AA Δz_A = γ_A − w_A σ_A, where H is the Gram
matrix of the columns divided by their norms, and γ = b − Hz. If the support of the start is nearly
right, a few columns have to leave it and a few have to join. A new factorisation would take A³/3
operations. Instead each of these columns adds one unknown to the system of the first support:

    ⎡ H_AA  H_AJ  E ⎤ ⎡ Δz_A ⎤   ⎡ γ_A − w_A σ_A ⎤
    ⎢ H_JA  H_JJ    ⎥ ⎢ Δz_J ⎥ = ⎢ γ_J − w_J σ_J ⎥
    ⎣ Eᵀ            ⎦ ⎣  ν   ⎦   ⎣     −z_L      ⎦

J are the columns that join, L those that leave, and E their unit vectors; σ_L = 0, so that ν is
what γ_L becomes. With the factor UᵀU = H_AA, each unknown takes one triangular solve, and the rest
is a small dense system that is quasidefinite: it has a factorisation without pivoting, whatever the
order of its rows.

U is in single precision, and H is the matrix of integers that `fixed_correlations` returns. The
changes are decided with U, and at the end residuals with H, in double precision, restore the digits
that U lacks.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from privasso._blas import FIXED
from privasso.solvers import _tuned as tuned

_FAST = {"reassoc", "contract", "nsz"}

#: How `settle` ends: no column wants to join or leave,
SETTLED = 0
#: more columns changed than there is room for,
CROWDED = 1
#: or the columns depend on one another, or their changes do not end.
LOST = 2


@njit(nogil=True, cache=True)
def square_submatrix(H, index, upper, lower):  # pragma: no cover
    """``H[index][:, index]``: numbers on and above the diagonal of `upper`, integers below it.

    `lower` is the same memory as `upper`.
    """
    one = np.float32(FIXED)
    for i in range(index.size):
        row, to, integers = H[index[i]], upper[i], lower[i]
        for j in range(i):
            integers[j] = row[index[j]]
        later, to = index[i:], to[i:]
        for j in range(later.size):
            to[j] = np.float32(row[later[j]]) * one


@njit(nogil=True, cache=True, fastmath=_FAST)
def forward(U, V, starts):  # pragma: no cover
    """Solve Uᵀw = v for every row v of V, in place; row k is zero before its entry starts[k]."""
    n = V.shape[1]
    for k in range(V.shape[0]):
        v = V[k]
        for i in range(starts[k], n):
            a = v[i] / U[i, i]
            v[i] = a
            row, w = U[i, i + 1 : n], v[i + 1 :]
            for j in range(row.size):
                w[j] -= row[j] * a


@njit(nogil=True, cache=True, fastmath=_FAST)
def backward(U, v):  # pragma: no cover
    """Solve Uw = v in place."""
    n = v.size
    for i in range(n - 1, -1, -1):
        row, w = U[i, i + 1 : n], v[i + 1 :]
        total = v[i]
        for j in range(row.size):
            total -= row[j] * w[j]
        v[i] = total / U[i, i]


@njit(nogil=True, cache=True, fastmath=_FAST)
def subtract_product(L, d, out):  # pragma: no cover
    """Subtract Hd from `out`, where H has ones on its diagonal and is below that of L."""
    for i in range(d.size):
        row, x, y = L[i, :i], d[:i], out[:i]
        own, total = FIXED * d[i], 0.0
        for j in range(row.size):
            h = np.float64(row[j])
            total += h * x[j]
            y[j] -= h * own
        out[i] -= d[i] + FIXED * total


@njit(nogil=True, cache=True, fastmath=_FAST)
def dot(a, b):  # pragma: no cover
    """aᵀb in the precision of both."""
    total = a[0] * b[0] - a[0] * b[0]
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(nogil=True, cache=True, fastmath=_FAST)
def fixed_dot(a, b):  # pragma: no cover
    """aᵀb of a row of H and a vector in single precision."""
    total = np.float32(0.0)
    for i in range(a.size):
        total += np.float32(a[i]) * b[i]
    return FIXED * total


@njit(nogil=True, cache=True, fastmath=_FAST)
def quasidefinite_solve(C, v):  # pragma: no cover
    """Solve Cq = v in place by LDLᵀ without pivoting; C is overwritten, False if it is singular."""
    n = v.size
    for j in range(n):
        pivot = C[j, j]
        if not abs(pivot) > tuned.DEPENDENT:
            return False
        for i in range(j + 1, n):
            factor = C[i, j] / pivot
            for k in range(j + 1, i + 1):
                C[i, k] -= factor * C[k, j]
        for i in range(j + 1, n):
            C[i, j] /= pivot
    for i in range(n):
        for j in range(i):
            v[i] -= C[i, j] * v[j]
    for i in range(n):
        v[i] /= C[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            v[i] -= C[j, i] * v[j]
    return True


@njit(nogil=True, cache=True, fastmath=_FAST)
def bordered_solve(Q, W, schur, on, t, q):  # pragma: no cover
    """Solve the system with the unknowns `on` of the border; False if its columns are dependent.

    Its right-hand sides are t, above, and q, below. They are overwritten by the unknowns.
    """
    forward(Q, t.reshape(1, t.size), np.zeros(1, np.int64))
    C = np.empty((on.size, on.size))
    for a in range(on.size):
        for b in range(on.size):
            C[a, b] = schur[on[a], on[b]]
        q[a] -= dot(W[on[a]], t)
    if not quasidefinite_solve(C, q):
        return False
    for a in range(on.size):
        w, factor = W[on[a]], np.float32(q[a])
        for i in range(t.size):
            t[i] -= w[i] * factor
    backward(Q, t)
    return True


@njit(nogil=True, cache=True)
def extend(Q, H, watched, border, W, schur, lo, hi):  # pragma: no cover
    """Compute rows lo..hi of W = U⁻ᵀ(H_AJ, E) and of the Schur complement.

    Unknown k of the border belongs to the column watched[border[k]]: one of the first support,
    which leaves, or one of those behind it, which join.
    """
    n = Q.shape[0]
    starts = np.zeros(hi - lo, np.int64)
    for k in range(lo, hi):
        row = W[k]
        if border[k] < n:
            row[:] = 0.0
            row[border[k]] = 1.0
            starts[k - lo] = border[k]
        else:
            column = H[watched[border[k]]]
            for i in range(n):
                row[i] = FIXED * column[watched[i]]
    forward(Q, W[lo:hi], starts)
    for k in range(lo, hi):
        for other in range(k + 1):
            value = -np.float64(dot(W[k], W[other]))
            if border[k] >= n and border[other] >= n:
                value += FIXED * H[watched[border[k]], watched[border[other]]]
            schur[k, other] = value
            schur[other, k] = value


@njit(nogil=True, cache=True)
def residuals(L, H, watched, border, on, d, q, above, below):  # pragma: no cover
    """Subtract the system, applied to (d, q), from its right-hand sides, in double precision."""
    n = d.size
    subtract_product(L, d, above)
    for k in range(on.size):
        j = border[on[k]]
        if j < n:
            above[j] -= q[k]
            below[k] -= d[j]
            continue
        column = H[watched[j]]
        for i in range(n):
            h = FIXED * column[watched[i]]
            above[i] -= h * q[k]
            below[k] -= h * d[i]
        for other in range(on.size):
            if border[on[other]] >= n:
                below[k] -= FIXED * column[watched[border[on[other]]]] * q[other]


@njit(nogil=True, cache=True)
def settle(Q, L, H, watched, side, z, gamma, weights, limit, path):  # pragma: no cover
    """Find the support and its signs, and the minimiser on it, by block principal pivoting.

    All columns that want to change do so at once. If that does not make them fewer for some rounds,
    only the last of them changes, until they are fewer. Single changes by such a rule always end
    where the columns are independent; many at once take fewer rounds. (Kim and Park, "Fast
    active-set-type algorithms for L1-regularized linear regression", 2010.)

    - `Q`, `L`: the factor U of H_AA on and above the diagonal of Q, and H_AA below that of L, which
      is the same memory. Rows may be longer than A.
    - `H`: the correlations of all columns.
    - `watched`: the columns A of the first support, and behind them those that may join.
    - `side`: sign of every column, zero outside of the support; overwritten by those of the last
      one.
    - `z`, `gamma`, `weights`: the start, b − Hz and w, for all columns; z is overwritten if
      SETTLED.
    - `limit`: most unknowns of the border.
    - `path`: overwritten by H⁻¹wσ on the support if SETTLED.

    Returns SETTLED, CROWDED or LOST.
    """
    n = Q.shape[0]
    slots = np.full(watched.size, -1)  # of a column: its unknown in the border, if it ever had one
    border = np.empty(limit, np.int64)
    W, schur = np.empty((limit, n), np.float32), np.empty((limit, limit))
    # Not the literal 0, for which other kernels would be compiled once more.
    t, above, count = np.empty(n, np.float32), np.empty(n), np.int64(0)
    signs, fewest, patience = np.empty(watched.size), watched.size + 1, tuned.BORDER_PATIENCE
    for _ in range(tuned.BORDER_ROUNDS):
        before, used = count, 0
        for j in range(watched.size):
            if changed_sides(side[watched[j]], j, n):
                used += 1
                if slots[j] < 0:
                    if count == limit:
                        return CROWDED
                    slots[j], border[count] = count, j
                    count += 1
        extend(Q, H, watched, border, W, schur, before, count)
        on, below = np.empty(used, np.int64), np.empty(used)
        used = 0
        for j in range(watched.size):
            at = watched[j]
            wanted = gamma[at] - weights[at] * side[at]
            if j < n:
                above[j] = wanted
            if changed_sides(side[at], j, n):
                on[used], below[used] = slots[j], -z[at] if j < n else wanted
                used += 1
        t[:], q = above, below.copy()
        if not bordered_solve(Q, W, schur, on, t, q):
            return LOST
        changes = revise(H, watched, border, on, t, q, z, gamma, weights, side, signs)
        if changes == 0:
            return _finish(
                Q, L, H, watched, border, on, W, schur, t, q, above, below, side, z, weights, path
            )
        patience = tuned.BORDER_PATIENCE if changes < fewest else patience - 1
        fewest = min(fewest, changes)
        for j in range(watched.size - 1, -1, -1):
            at = watched[j]
            if signs[j] != side[at]:
                side[at] = signs[j]
                if patience < 0:
                    break
    return LOST


@njit(nogil=True, cache=True)
def changed_sides(sign, j, n):  # pragma: no cover
    """Whether the j-th watched column has left the first support, of size n, or has joined it."""
    return (sign == 0.0) == (j < n)


@njit(nogil=True, cache=True)
def revise(H, watched, border, on, t, q, z, gamma, weights, side, signs):  # pragma: no cover
    """Find the signs that the solution (t, q) with the signs `side` asks for, and count changes.

    Coefficients that would cross zero leave the support, and columns that violate their condition
    join it.
    """
    n = t.size
    moves = np.zeros(z.size, np.float32)
    for j in range(n):
        moves[watched[j]] = t[j]
    for k in range(on.size):
        if border[on[k]] >= n:
            moves[watched[border[on[k]]]] = q[k]
    count, used = 0, 0
    for j in range(watched.size):
        at = watched[j]
        old = side[at]
        inner = changed_sides(old, j, n)
        if old != 0.0:
            new = old if (z[at] + moves[at]) * old > 0.0 else 0.0
        else:
            condition = q[used] if inner else gamma[at] - fixed_dot(H[at], moves)
            new = np.sign(condition) if abs(condition) > weights[at] else 0.0
        used += inner
        signs[j] = new
        count += new != old
    return count


@njit(nogil=True, cache=True)
def _finish(
    Q, L, H, watched, border, on, W, schur, t, q, above, below, side, z, weights, path
):  # pragma: no cover
    """The minimiser and its path on the last support, with the digits that the factor lacks."""
    n = t.size
    d = t.astype(np.float64)
    for _ in range(tuned.BORDER_REFINEMENTS):
        for k in range(on.size):
            if border[on[k]] < n:
                d[border[on[k]]] = -z[watched[border[on[k]]]]
        over, under = above.copy(), below.copy()
        residuals(L, H, watched, border, on, d, q, over, under)
        worst = 0.0
        for j in range(n):
            worst = max(worst, abs(over[j]) / weights[watched[j]])
        for k in range(on.size):
            worst = max(worst, abs(under[k]) / weights[watched[border[on[k]]]])
        if worst <= tuned.BORDER_SMALL:
            break
        t[:] = over
        if not bordered_solve(Q, W, schur, on, t, under):
            return LOST
        d += t
        q += under
        if worst <= tuned.BORDER_NEARLY:
            break
    p = np.empty(on.size)
    for j in range(n):
        at = watched[j]
        t[j] = weights[at] * side[at]
        z[at] = z[at] + d[j] if (z[at] + d[j]) * side[at] > 0.0 else 0.0
    for k in range(on.size):
        j, at = border[on[k]], watched[border[on[k]]]
        p[k] = 0.0 if j < n else weights[at] * side[at]
        z[at] = 0.0 if j < n else q[k]
    if not bordered_solve(Q, W, schur, on, t, p):
        return LOST
    path[:] = 0.0
    for j in range(n):
        path[watched[j]] = t[j]
    for k in range(on.size):
        j = border[on[k]]
        path[watched[j]] = 0.0 if j < n else p[k]
    return SETTLED
