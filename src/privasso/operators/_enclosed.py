"""Products with F in twice the working precision, with a bound on what is left of rounding.

Each product is split into its rounded value and its exact error (by a fused multiply-add), each
sum into its rounded value and its exact error, and the errors are added up apart (Ogita, Rump &
Oishi 2005, "Accurate sum and dot product"). The sum of k products then has an error of at most
γ² times the sum of their sizes, γ = cku/(1 − cku) with u = 2⁻⁵³ and a small c, instead of γ.

"Lines" are the rows of F in row-major storage and its columns in column-major storage.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numba import config, njit, types
from numba.extending import intrinsic

from privasso._types import Foreign

_UNIT = 2.0**-53
#: More than a product can lose when it underflows.
_UNDERFLOW = 2.0**-1070


class Enclosed(NamedTuple):
    """Real numbers, each within `error` of the unevaluated sum ``value + low``."""

    value: np.ndarray
    low: np.ndarray
    error: np.ndarray

    @classmethod
    def exactly(cls, value: np.ndarray) -> Enclosed:
        """Enclose floating-point numbers that are meant as they are."""
        return cls(value, np.zeros_like(value), np.zeros_like(value))


def growth(terms: int) -> float:
    """γ² for a sum of that many products: relative to Σ|products|, the error that is left."""
    gamma = 4.0 * (terms + 4) * _UNIT
    return (gamma / (1.0 - gamma)) ** 2


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded sum and its exact error."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rounded product and its exact error, for factors far from overflow."""
    p = a * b
    a1, b1 = _upper_half(a), _upper_half(b)
    a2, b2 = a - a1, b - b1
    return p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2


def _upper_half(a: np.ndarray) -> np.ndarray:
    c = 134217729.0 * a  # 2²⁷ + 1
    return c - (c - a)


def enclosed(high: np.ndarray, low: np.ndarray, size: np.ndarray, terms: int) -> Enclosed:
    """Enclosure from a running sum, the sum of its errors, and the sum of sizes and input errors.

    `size` is Σ|f|(growth·|v| + error of v), see `weights_of`.
    """
    value, rest = two_sum(high, low)
    return Enclosed(value, rest, size * (1.0 + 4.0 * (terms + 4) * _UNIT) + terms * _UNDERFLOW)


def weights_of(v: Enclosed, terms: int) -> np.ndarray:
    """What multiplies |f| in the bound on the error of a sum of `terms` products f·v."""
    size = np.abs(v.value) + np.abs(v.low)
    return growth(terms) * size + v.error * (1.0 + 4.0 * _UNIT)


def _type_fma(typingctx, a, b, c):  # pragma: no cover
    """a·b + c with one rounding."""
    signature = types.float64(types.float64, types.float64, types.float64)

    def codegen(context, builder, signature, args):
        return builder.fma(*args)

    return signature, codegen


def _interpreted_fma(a: float, b: float, c: float) -> float:
    """The same where kernels are not compiled, to look into them."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    try:
        return float(Fraction(a) * Fraction(b) + Fraction(c))
    except OverflowError:
        return a * b + c


_fma: Foreign = _interpreted_fma if getattr(config, "DISABLE_JIT", False) else intrinsic(_type_fma)


@njit(nogil=True, cache=True)
def _add(s, c, a, v, low):  # pragma: no cover
    """The running sum s and the sum of its errors c after the product a·(v + low)."""
    p = a * v
    e = _fma(a, v, -p)
    new = s + p
    part = new - s
    return new, c + ((s - (new - part)) + (p - part) + e + a * low)


@njit(nogil=True, cache=True)
def dots(A, lo, hi, index, v, low, weight, out):  # pragma: no cover
    """``out[:, i]`` = (sum, sum of errors, Σ|a|weight) of line i with v, over the entries index."""
    for i in range(lo, hi):
        line = A[i]
        s = 0.0
        c = 0.0
        size = 0.0
        for t in range(index.size):
            a = float(line[index[t]])
            s, c = _add(s, c, a, v[t], low[t])
            size += abs(a) * weight[t]
        out[0, i] = s
        out[1, i] = c
        out[2, i] = size


@njit(nogil=True, cache=True)
def axpys(A, lo, hi, index, v, low, weight, acc):  # pragma: no cover
    """``acc`` += (sum, sum of errors, Σ|a|weight) of the lines index[lo:hi] times entries of v."""
    high = acc[0]
    rest = acc[1]
    size = acc[2]
    for t in range(lo, hi):
        line = A[index[t]]
        vt = v[t]
        lt = low[t]
        wt = weight[t]
        for j in range(line.size):
            a = float(line[j])
            high[j], rest[j] = _add(high[j], rest[j], a, vt, lt)
            size[j] += abs(a) * wt


@njit(nogil=True, cache=True)
def sparse_dots(data, indices, indptr, lo, hi, v, low, weight, out):  # pragma: no cover
    """`dots` for lines stored sparse, with v over all entries of a line."""
    for i in range(lo, hi):
        s = 0.0
        c = 0.0
        size = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            t = indices[k]
            a = float(data[k])
            s, c = _add(s, c, a, v[t], low[t])
            size += abs(a) * weight[t]
        out[0, i] = s
        out[1, i] = c
        out[2, i] = size


@njit(nogil=True, cache=True)
def sparse_axpys(data, indices, indptr, lo, hi, v, low, weight, acc):  # pragma: no cover
    """`axpys` for all lines lo..hi stored sparse."""
    for t in range(lo, hi):
        vt = v[t]
        if vt == 0.0 and low[t] == 0.0 and weight[t] == 0.0:
            continue
        for k in range(indptr[t], indptr[t + 1]):
            j = indices[k]
            a = float(data[k])
            acc[0, j], acc[1, j] = _add(acc[0, j], acc[1, j], a, vt, low[t])
            acc[2, j] += abs(a) * weight[t]
