"""Sums over rows in integers of any length, where double precision does not tell points apart.

x is a fixed-point number that is cut into digits, and rows are cut into slices with entries of
twenty bits. Floating point makes no error in the product of a slice and a digit, so that every
prediction fᵀx is known exactly; it is then rounded to a multiple of 2⁻ᵖ, p well above the bits of
x. From there on Python's integers take over. Each clipped residual, or slope of the logistic loss,
is off by at most `OFF` multiples of 2⁻ᵖ, and their products with the rows are added up exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privasso.problem import Clipped, Loss
from privasso.solvers._exact_steps import FixedPoint, digit_width

#: Bits of an entry of a slice, and of a digit of a pull; with at most so many rows at a time,
#: products of both stay below 2⁵³.
_SLICE, _PULL_DIGIT, MOST_ROWS = 20, 21, 1 << 12
#: Bits after the point of predictions and pulls, beyond those of x.
_BEYOND = 80
#: Most multiples of 2⁻ᵖ by which a pull is off.
OFF = 8
#: Bits beyond p for an exponential, and bits of its argument that one table covers.
_GUARD, _TABLE = 32, 8


def long_bits(x: FixedPoint) -> int:
    """The p at a point, rounded up so that few tables of exponentials are needed."""
    return -(-(x.bits + _BEYOND) // 64) * 64


@dataclass(frozen=True, eq=False)
class RowSums:
    """What some rows add to the objective and its gradient, in integers.

    - `pull`: Σ wψf in multiples of 2^−(p + s), s the grid of the finest slice.
    - `grid`: s.
    - `value`: Σ wℓ in multiples of 2⁻²ᵖ.
    - `curvature`, `above`: for each row, the second derivative of its loss, and that of the
      parabola above it; both only steer the solver.
    """

    pull: list[int]
    grid: int
    value: int
    curvature: np.ndarray
    above: np.ndarray


def row_sums(
    G: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray | None,
    loss: Loss,
    x: FixedPoint,
    grid: int,
) -> RowSums:
    """Sums over at most `MOST_ROWS` rows with entries of at most 2²⁰ multiples of 2^−grid."""
    p, slices = long_bits(x), list(_slices(G, grid))
    finest = max((s for _, s in slices), default=grid)
    fitted, lift = _predictions(slices, finest, x, len(y)), p - finest - x.bits
    fitted = fitted << lift if lift >= 0 else fitted >> -lift
    if isinstance(loss, Clipped):
        psi, value, curvature, above = _huber(y, fitted, loss, p)
    else:
        psi, value, curvature, above = _logistic(y, fitted, loss, p)
    if weights is not None:
        heavy = _whole(weights, p)
        psi, value = (psi * heavy) >> p, (value * heavy) >> p
        curvature, above = curvature * weights, above * weights
    pull = [0] * G.shape[1]
    digits = _digits(psi)
    for part, s in slices:
        for k, column in enumerate((part.T @ digits).T.tolist()):
            shift = finest - s + _PULL_DIGIT * k
            pull = [total + (int(v) << shift) for total, v in zip(pull, column, strict=True)]
    return RowSums(pull, finest, int(value.sum()), curvature, above)


def _slices(G: np.ndarray, grid: int) -> Iterator[tuple[np.ndarray, int]]:
    """Matrices of integers up to 2²⁰ whose sum, each times 2⁻ˢ, is exactly G."""
    while G.any():
        part = np.trunc(np.ldexp(G, grid))
        if part.any():
            yield part, grid
            G = G - np.ldexp(part, -grid)
        grid += _SLICE


def _predictions(
    slices: list[tuple[np.ndarray, int]], finest: int, x: FixedPoint, rows: int
) -> np.ndarray:
    """Gx as integers, in multiples of 2^−(finest + bits of x), without any error."""
    width = digit_width(len(x.whole))
    digits = x.digits(width)
    total = np.full(rows, 0, dtype=object)
    for part, s in slices:
        for k, digit in enumerate(digits):
            total += (part @ digit).astype(np.int64).astype(object) << (finest - s + width * k)
    return total


def _whole(values: np.ndarray, p: int) -> np.ndarray:
    """Floating-point numbers in multiples of 2⁻ᵖ, rounded down."""
    mantissas, exponents = np.frexp(values)
    found = np.empty(len(values), dtype=object)
    for i, (m, e) in enumerate(
        zip((mantissas * 2.0**53).tolist(), exponents.tolist(), strict=True)
    ):
        shift = p - 53 + e
        found[i] = int(m) << shift if shift >= 0 else int(m) >> -shift
    return found


def _digits(psi: np.ndarray) -> np.ndarray:
    """Columns of small integers d_k with ψ = Σ_k d_k 2^(21k)."""
    base, half = 1 << _PULL_DIGIT, 1 << (_PULL_DIGIT - 1)
    found: list[np.ndarray] = []
    while psi.any():
        low = ((psi + half) & (base - 1)) - half
        found.append(low.astype(np.float64))
        psi = (psi - low) >> _PULL_DIGIT
    return np.array(found).reshape(len(found), len(psi)).T


Terms = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _huber(y: np.ndarray, fitted: np.ndarray, loss: Clipped, p: int) -> Terms:
    """ψ, 2²ᵖ times ℓ, and two curvatures. Labels, predictions and κ are off by one unit each."""
    r = _whole(y, p) - fitted
    kappa = math.floor(Fraction(loss.kappa) * (1 << p))
    psi = np.minimum(np.maximum(r, -kappa), kappa)
    near = np.array([math.ldexp(float(k), -p) for k in r.tolist()])
    nothing = np.zeros_like(near)
    value = (psi * (2 * r - psi)) >> 1
    if loss.offset:
        more = math.floor(Fraction(loss.offset) * (1 << p))
        psi, value = psi + more, value + more * r
    return psi, value, loss.curvature(near, nothing), loss.majorant(near, nothing)


def _logistic(y: np.ndarray, fitted: np.ndarray, loss: Loss, p: int) -> Terms:
    """The same for labels 0 and 1: predictions are off by one unit, exponentials by one."""
    one, side = 1 << p, np.where(y == 1, 1, -1).astype(object)
    u = fitted * side  # the loss is log(1 + e⁻ᵘ), and its pull σ(−u) towards the label
    z = _exponential(np.abs(u), p)
    wrong = np.where(u >= 0, z, one).astype(object)
    psi = side * ((wrong << p) // (z + one))
    # log(1 + z) in double precision, and what is missing of it: |rest| < 2⁻⁴⁰.
    near = _whole(np.log1p(np.array([math.ldexp(float(k), -p) for k in z.tolist()])), p)
    rest = (((z + one) * _exponential(near, p)) >> p) - one
    square = rest * rest
    more = rest - (square >> (p + 1)) + ((square >> p) * rest >> p) // 3
    value = (near + more + np.maximum(-u, 0)) << p
    far = np.array([math.ldexp(float(k), -p) for k in fitted.tolist()])
    return psi, value, loss.curvature(y, far), loss.majorant(y, far)


def _exponential(v: np.ndarray, p: int) -> np.ndarray:
    """e⁻ᵛ for v ≥ 0, both in multiples of 2⁻ᵖ, off by at most one.

    With v = n·log 2 + i/2⁸ + j/2¹⁶ + r it is 2⁻ⁿ times two numbers of a table times a short series.
    """
    q = p + _GUARD
    log2, coarse, fine = _tables(q)
    v = np.minimum(v, (p + 2) << p) << _GUARD  # beyond, it is less than one multiple
    halvings = v // log2
    rest = v - halvings * log2
    i = rest >> (q - _TABLE)
    rest = rest - (i << (q - _TABLE))
    j = rest >> (q - 2 * _TABLE)
    rest = rest - (j << (q - 2 * _TABLE))
    term = np.full(len(v), 1 << q, dtype=object)
    total, k = term, 1
    while term.any():
        term = (term * rest >> q) // k
        total, k = total - term if k % 2 else total + term, k + 1
    product = (coarse[i.astype(np.int64)] * fine[j.astype(np.int64)]) >> q
    return (product * total >> q) >> (halvings + _GUARD)


@lru_cache(maxsize=8)
def _tables(q: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Log 2, and e^(−k/2⁸) and e^(−k/2¹⁶) for k < 2⁸, in multiples of 2^−q, each off by one."""
    deep = q + 16

    def power(argument: int) -> int:
        term, total, k = 1 << deep, 1 << deep, 1
        while term:
            term = -((term * argument) >> deep) // k
            total, k = total + term, k + 1
        return total >> 16

    log2 = sum((1 << deep) // (k << k) for k in range(1, deep)) >> 16
    tables = [
        np.array([power(k << (deep - bits)) for k in range(1 << _TABLE)], dtype=object)
        for bits in (_TABLE, 2 * _TABLE)
    ]
    return log2, tables[0], tables[1]
