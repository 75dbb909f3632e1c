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
def rows_update(F, lo, hi, x, g, beta, gamma, acc):  # pragma: no cover
    """``g <- beta*g + gamma*F@x`` and ``acc += F.T @ g`` over rows lo..hi, in one read of F.

    Eight rows are read from memory for their products with x. They are still in cache when they
    are added to the accumulator with their new g. With eight rows at a time, x and the accumulator
    are read an eighth as often as F.
    """
    n = F.shape[1]
    end = lo + (hi - lo) // 8 * 8
    for i in range(lo, end, 8):
        a, b, c, d = F[i], F[i + 1], F[i + 2], F[i + 3]
        e, f, h, k = F[i + 4], F[i + 5], F[i + 6], F[i + 7]
        s0, s1, s2, s3, s4, s5, s6, s7 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(n):
            xj = x[j]
            s0 += a[j] * xj
            s1 += b[j] * xj
            s2 += c[j] * xj
            s3 += d[j] * xj
            s4 += e[j] * xj
            s5 += f[j] * xj
            s6 += h[j] * xj
            s7 += k[j] * xj
        g0, g1 = beta * g[i] + gamma * s0, beta * g[i + 1] + gamma * s1
        g2, g3 = beta * g[i + 2] + gamma * s2, beta * g[i + 3] + gamma * s3
        g4, g5 = beta * g[i + 4] + gamma * s4, beta * g[i + 5] + gamma * s5
        g6, g7 = beta * g[i + 6] + gamma * s6, beta * g[i + 7] + gamma * s7
        g[i], g[i + 1], g[i + 2], g[i + 3] = g0, g1, g2, g3
        g[i + 4], g[i + 5], g[i + 6], g[i + 7] = g4, g5, g6, g7
        for j in range(n):
            acc[j] += (
                a[j] * g0
                + b[j] * g1
                + c[j] * g2
                + d[j] * g3
                + e[j] * g4
                + f[j] * g5
                + h[j] * g6
                + k[j] * g7
            )
    for i in range(end, hi):
        a = F[i]
        s0 = 0.0
        for j in range(n):
            s0 += a[j] * x[j]
        g0 = beta * g[i] + gamma * s0
        g[i] = g0
        for j in range(n):
            acc[j] += a[j] * g0


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
