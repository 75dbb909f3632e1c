"""Compiled passes over a dense matrix.

A pass reads every element of F once. What limits it is memory traffic, so each kernel does
all its work on a block of rows (or columns) while the block is in cache. Sums may be
reassociated to use vector registers; infinities and NaN keep their meaning.

The kernels are cached on disk, so only the first process on a machine compiles them.
"""

from __future__ import annotations

from numba import njit

_FAST = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True, fastmath=_FAST)
def rows_update(F, lo, hi, x, g, beta, gamma, take, taken, acc):  # pragma: no cover
    """``g <- beta*g + gamma*F@x`` and ``acc += F.T @ g`` over rows lo..hi, in one read of F.

    Four rows at a time: while the next block streams in from memory for its products with
    x, the block before it, now in cache, is added to the accumulator with its new g. The
    columns ``take`` are copied to ``taken`` on the way.
    """
    n = F.shape[1]
    n_take = take.size
    n_blocks = (hi - lo) // 4
    if n_blocks > 0:
        a0 = F[lo]
        a1 = F[lo + 1]
        a2 = F[lo + 2]
        a3 = F[lo + 3]
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        for j in range(n):
            xj = x[j]
            s0 += a0[j] * xj
            s1 += a1[j] * xj
            s2 += a2[j] * xj
            s3 += a3[j] * xj
        for k in range(1, n_blocks + 1):
            i = lo + 4 * (k - 1)
            g0 = beta * g[i] + gamma * s0
            g1 = beta * g[i + 1] + gamma * s1
            g2 = beta * g[i + 2] + gamma * s2
            g3 = beta * g[i + 3] + gamma * s3
            g[i] = g0
            g[i + 1] = g1
            g[i + 2] = g2
            g[i + 3] = g3
            for t in range(n_take):
                c = take[t]
                taken[i, t] = a0[c]
                taken[i + 1, t] = a1[c]
                taken[i + 2, t] = a2[c]
                taken[i + 3, t] = a3[c]
            if k < n_blocks:
                b0 = F[i + 4]
                b1 = F[i + 5]
                b2 = F[i + 6]
                b3 = F[i + 7]
                s0 = 0.0
                s1 = 0.0
                s2 = 0.0
                s3 = 0.0
                for j in range(n):
                    xj = x[j]
                    s0 += b0[j] * xj
                    s1 += b1[j] * xj
                    s2 += b2[j] * xj
                    s3 += b3[j] * xj
                    acc[j] += a0[j] * g0 + a1[j] * g1 + a2[j] * g2 + a3[j] * g3
                a0 = b0
                a1 = b1
                a2 = b2
                a3 = b3
            else:
                for j in range(n):
                    acc[j] += a0[j] * g0 + a1[j] * g1 + a2[j] * g2 + a3[j] * g3
    for i in range(lo + 4 * n_blocks, hi):
        a0 = F[i]
        s0 = 0.0
        for j in range(n):
            s0 += a0[j] * x[j]
        g0 = beta * g[i] + gamma * s0
        g[i] = g0
        for t in range(n_take):
            taken[i, t] = a0[take[t]]
        for j in range(n):
            acc[j] += a0[j] * g0


@njit(nogil=True, cache=True, fastmath=_FAST)
def rows_squares_and_product(F, lo, hi, y, acc, squares):  # pragma: no cover
    """``acc += F.T @ y`` and ``squares += sum of F**2`` by column, over rows lo..hi."""
    n = F.shape[1]
    end = lo + (hi - lo) // 4 * 4
    for i in range(lo, end, 4):
        a = F[i]
        b = F[i + 1]
        c = F[i + 2]
        d = F[i + 3]
        ya = y[i]
        yb = y[i + 1]
        yc = y[i + 2]
        yd = y[i + 3]
        for j in range(n):
            p = a[j] * 1.0  # products in double, also of single-precision elements
            q = b[j] * 1.0
            r = c[j] * 1.0
            s = d[j] * 1.0
            acc[j] += p * ya + q * yb + r * yc + s * yd
            squares[j] += p * p + q * q + r * r + s * s
    for i in range(end, hi):
        a = F[i]
        ya = y[i]
        for j in range(n):
            p = a[j] * 1.0
            acc[j] += p * ya
            squares[j] += p * p


@njit(nogil=True, cache=True, fastmath=_FAST)
def rows_pair_product(F, lo, hi, g, h, acc_g, acc_h):  # pragma: no cover
    """``acc_g += F.T @ g`` and ``acc_h += F.T @ h`` over rows lo..hi."""
    n = F.shape[1]
    end = lo + (hi - lo) // 4 * 4
    for i in range(lo, end, 4):
        a = F[i]
        b = F[i + 1]
        c = F[i + 2]
        d = F[i + 3]
        ga = g[i]
        gb = g[i + 1]
        gc = g[i + 2]
        gd = g[i + 3]
        ha = h[i]
        hb = h[i + 1]
        hc = h[i + 2]
        hd = h[i + 3]
        for j in range(n):
            acc_g[j] += a[j] * ga + b[j] * gb + c[j] * gc + d[j] * gd
            acc_h[j] += a[j] * ha + b[j] * hb + c[j] * hc + d[j] * hd
    for i in range(end, hi):
        a = F[i]
        ga = g[i]
        ha = h[i]
        for j in range(n):
            acc_g[j] += a[j] * ga
            acc_h[j] += a[j] * ha


@njit(nogil=True, cache=True, fastmath=_FAST)
def rows_product(F, lo, hi, x, out):  # pragma: no cover
    """``out = F @ x`` over rows lo..hi."""
    n = F.shape[1]
    for i in range(lo, hi):
        a = F[i]
        s = 0.0
        for j in range(n):
            s += a[j] * x[j]
        out[i] = s


@njit(nogil=True, cache=True)
def rows_take(F, lo, hi, take, taken):  # pragma: no cover
    """``taken = F[:, take]`` over rows lo..hi."""
    for i in range(lo, hi):
        a = F[i]
        for t in range(take.size):
            taken[i, t] = a[take[t]]


@njit(nogil=True, cache=True, fastmath=_FAST)
def columns_product(F, lo, hi, support, x, out):  # pragma: no cover
    """``out = F[:, support] @ x[support]`` over rows lo..hi: only the columns in use are read."""
    out[lo:hi] = 0.0
    for k in range(support.size):
        j = support[k]
        xj = x[j]
        for i in range(lo, hi):
            out[i] += F[i, j] * xj


@njit(nogil=True, cache=True, fastmath=_FAST)
def columns_pair_product(F, lo, hi, g, h, out_g, out_h):  # pragma: no cover
    """``F.T @ g`` and ``F.T @ h`` over columns lo..hi."""
    m = F.shape[0]
    for j in range(lo, hi):
        s = 0.0
        t = 0.0
        for i in range(m):
            s += F[i, j] * g[i]
            t += F[i, j] * h[i]
        out_g[j] = s
        out_h[j] = t


@njit(nogil=True, cache=True, fastmath=_FAST)
def columns_squares_and_product(F, lo, hi, y, out, squares):  # pragma: no cover
    """``F.T @ y`` and the squared norms of columns lo..hi."""
    m = F.shape[0]
    for j in range(lo, hi):
        s = 0.0
        t = 0.0
        for i in range(m):
            f = F[i, j] * 1.0
            s += f * y[i]
            t += f * f
        out[j] = s
        squares[j] = t


@njit(nogil=True, cache=True, fastmath=_FAST)
def columns_dot(F, lo, hi, g, out):  # pragma: no cover
    """``F.T @ g`` over columns lo..hi."""
    m = F.shape[0]
    for j in range(lo, hi):
        s = 0.0
        for i in range(m):
            s += F[i, j] * g[i]
        out[j] = s


@njit(nogil=True, cache=True, fastmath=_FAST)
def csc_squares_and_product(data, rows, starts, y, squares, out):  # pragma: no cover
    """Squared norms of sparse columns and their products with y."""
    for j in range(out.size):
        s = 0.0
        t = 0.0
        for k in range(starts[j], starts[j + 1]):
            f = data[k] * 1.0  # in double, also of single-precision entries
            s += f * y[rows[k]]
            t += f * f
        out[j] = s
        squares[j] = t
