"""Sums over public rows, of integers, which are exact in any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from privasso._types import Matrix
from privasso.blocks import RowBlocks
from privasso.programs._point import LogisticSlope, Point, TurnedRows, long_rows, squared_lengths
from privasso.queries import HALF, Contribution, summed

#: Entries of a row are integers of this many bits, and fourth powers of this many.
_BITS, _FINE = 18, 45
#: Rows so many times as far away as the mean weigh no more than that in the shape of noise.
_FAR = 256.0
#: Squared lengths of rows are told apart in so many steps for each doubling, of so many.
_PER_OCTAVE, _OCTAVES = 16, 60


@dataclass(frozen=True, eq=False)
class PublicSums(Contribution):
    """Sums of integers that some rows are made into."""

    made: Callable[[Matrix], np.ndarray] = field(repr=False)

    most_rows = 1 << 15

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        return self.made(X).astype(np.int64)

    def of(self, table: RowBlocks) -> np.ndarray:
        """Those of all rows."""
        low, high = summed(self, table)
        return low.astype(np.float64) + np.ldexp(high.astype(np.float64), HALF)


def public_curvature(
    table: RowBlocks, rows: TurnedRows, longest: float, point: Point | None
) -> np.ndarray:
    """That of squared residuals for None, or of a logistic regression at a point.

    Rows longer than `longest` are shrunk.
    """

    def scaled(X: Matrix) -> np.ndarray:
        G = rows(X)
        weights = long_rows(G, longest)
        if point is not None:
            weights = weights * LogisticSlope()(point, X, np.zeros(len(G)))[1]
        return G * np.sqrt(weights)[:, None]

    return _products(table, scaled, longest)


def far_moments(table: RowBlocks, rows: TurnedRows, mean: float) -> np.ndarray:
    """Σ u f fᵀ with u = (|f|²/mean)^1.5, mean the mean of |f|²: rows far away weigh most."""

    def scaled(X: Matrix) -> np.ndarray:
        G = rows(X)
        ratio = np.maximum(squared_lengths(G) / mean, 1e-300)
        return G * np.minimum(ratio**0.75, _FAR**1.25 / np.sqrt(ratio))[:, None]

    return _products(table, scaled, math.sqrt(mean * _FAR**2.5))


def longest_row(table: RowBlocks, rows: TurnedRows, mean: float) -> float:
    """A squared length above the mean that no row exceeds, and the longest nearly has."""
    last = _OCTAVES * _PER_OCTAVE

    def counts(X: Matrix) -> np.ndarray:
        ratio = np.maximum(squared_lengths(rows(X)) / mean, 1.0)
        at = np.minimum(np.ceil(_PER_OCTAVE * np.log2(ratio)), last)
        return np.bincount(at.astype(np.int64), minlength=last + 1)

    found = np.flatnonzero(PublicSums(counts).of(table))[-1]
    return mean * 2.0 ** ((found + 1e-6) / _PER_OCTAVE)


def rows_below(table: RowBlocks, rows: TurnedRows, turns: np.ndarray) -> np.ndarray:
    """On how many rows combinations of their entries rest, whose squares add up to one.

    It is one over the sum of fourth powers. Rows have lengths of one at most.
    """
    largest = np.maximum(np.max(np.abs(turns), axis=0), 1e-300)
    T = np.rint(np.ldexp(turns / largest, _BITS))

    def fourth_powers(X: Matrix) -> np.ndarray:
        K = np.rint(np.ldexp(rows(X), _BITS))
        squares = np.minimum((np.ldexp(K @ T, -2 * _BITS) * largest) ** 2, 1.0)
        return np.rint(np.ldexp(squares**2, _FINE)).sum(axis=0)

    sums = np.ldexp(PublicSums(fourth_powers).of(table), -_FINE)
    return 1.0 / np.maximum(sums, 1e-300)


def _products(
    table: RowBlocks, scaled: Callable[[Matrix], np.ndarray], longest: float
) -> np.ndarray:
    """Sums of products of rows that were scaled to lengths of `longest` at most."""
    bits = _BITS - math.ceil(math.log2(longest))

    def products(X: Matrix) -> np.ndarray:
        K = np.rint(np.ldexp(scaled(X), bits))
        return (K.T @ K).ravel()

    found = np.ldexp(PublicSums(products).of(table), -2 * bits)
    return found.reshape(2 * (math.isqrt(found.size),))
