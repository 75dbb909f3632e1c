"""F rounded to 16 bits, for iterations that need not be exact.

A pass over a large F takes as long as reading it from memory takes, and the rounded copy is a
quarter of the size of F. It keeps the sign, the eight bits of the exponent and the first seven
binary digits of each number in single precision (the format known as bfloat16), so that the scales
of the columns do not matter.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import njit

from privasso._threads import chunks, run

_FAST = {"reassoc", "contract", "nsz"}


class Rough:
    """A rounded copy of F, whose size is the `part` of F in double precision."""

    part = 0.25

    def __init__(self, F: np.ndarray) -> None:
        self._bits = np.empty(F.shape, np.uint16)
        pieces = chunks(len(F), F.size)
        run([partial(_round, F, lo, hi, self._bits) for lo, hi in pieces])

    def update(
        self, x: np.ndarray, g: np.ndarray, beta: float, gamma: float
    ) -> tuple[np.ndarray, None]:
        """`Operator.update` in single precision, which copies no columns."""
        m, n = len(self._bits), x.size
        pieces = chunks(m, m * n)
        acc = np.zeros((len(pieces), n), np.float32)
        with np.errstate(over="ignore"):  # what is too large becomes infinite
            single = x.astype(np.float32)
        run(
            [
                partial(_update, self._bits, lo, hi, single, g, beta, gamma, out)
                for (lo, hi), out in zip(pieces, acc, strict=True)
            ]
        )
        return acc.sum(axis=0, dtype=np.float64), None


@njit(nogil=True, cache=True, fastmath=_FAST)
def _round(F, lo, hi, bits):  # pragma: no cover
    """The first 16 bits of rows lo..hi in single precision."""
    for i in range(lo, hi):
        row, out = F[i], bits[i]
        for j in range(row.size):
            word = np.uint32(np.float32(row[j]).view(np.uint32) + np.uint32(0x8000))
            out[j] = np.uint16(np.uint32(word >> np.uint32(16)))


@njit(inline="always")
def _number(word):  # pragma: no cover
    """The number of which `word` holds the first 16 bits."""
    return np.uint32(np.uint32(word) << np.uint32(16)).view(np.float32)


@njit(nogil=True, cache=True, fastmath=_FAST)
def _update(bits, lo, hi, x, g, beta, gamma, acc):  # pragma: no cover
    """``g <- beta*g + gamma*F@x`` and ``acc += F.T @ g`` over rows lo..hi, eight rows at a time."""
    n = bits.shape[1]
    end = lo + (hi - lo) // 8 * 8
    o = np.float32(0.0)
    for i in range(lo, end, 8):
        a, b, c, d = bits[i], bits[i + 1], bits[i + 2], bits[i + 3]
        e, f, h, k = bits[i + 4], bits[i + 5], bits[i + 6], bits[i + 7]
        s0, s1, s2, s3, s4, s5, s6, s7 = o, o, o, o, o, o, o, o
        for j in range(n):
            xj = x[j]
            s0 += _number(a[j]) * xj
            s1 += _number(b[j]) * xj
            s2 += _number(c[j]) * xj
            s3 += _number(d[j]) * xj
            s4 += _number(e[j]) * xj
            s5 += _number(f[j]) * xj
            s6 += _number(h[j]) * xj
            s7 += _number(k[j]) * xj
        g0, g1 = np.float32(beta * g[i] + gamma * s0), np.float32(beta * g[i + 1] + gamma * s1)
        g2, g3 = np.float32(beta * g[i + 2] + gamma * s2), np.float32(beta * g[i + 3] + gamma * s3)
        g4, g5 = np.float32(beta * g[i + 4] + gamma * s4), np.float32(beta * g[i + 5] + gamma * s5)
        g6, g7 = np.float32(beta * g[i + 6] + gamma * s6), np.float32(beta * g[i + 7] + gamma * s7)
        g[i], g[i + 1], g[i + 2], g[i + 3] = g0, g1, g2, g3
        g[i + 4], g[i + 5], g[i + 6], g[i + 7] = g4, g5, g6, g7
        for j in range(n):
            acc[j] += (
                _number(a[j]) * g0
                + _number(b[j]) * g1
                + _number(c[j]) * g2
                + _number(d[j]) * g3
                + _number(e[j]) * g4
                + _number(f[j]) * g5
                + _number(h[j]) * g6
                + _number(k[j]) * g7
            )
    for i in range(end, hi):
        a = bits[i]
        s0 = o
        for j in range(n):
            s0 += _number(a[j]) * x[j]
        g0 = np.float32(beta * g[i] + gamma * s0)
        g[i] = g0
        for j in range(n):
            acc[j] += _number(a[j]) * g0
