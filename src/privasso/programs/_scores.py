"""What a record says about the coefficients at a public point: its score and its curvature.

At coefficients β̂ that are public a row f with the residual r has the score f·ψ(r), ψ the slope of
the loss, and the curvature f fᵀψ'(r). With their sums s and H a step of Newton's method leads to
the minimiser of the loss without penalty and ridge, β̂ + H⁻¹s, and with the sum V of the squared
scores to its variance H⁻¹VH⁻¹. Rows longer than R have the weight w = (R/‖f‖)² in all three, so
that w‖f‖² ≤ R² and w‖f‖ ≤ R.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso._types import Matrix
from privasso.programs._point import Point, Slope, long_rows, squared_lengths
from privasso.programs._records import empty_records
from privasso.queries import ROUNDING, Neighbours, Summand

#: Entries of a row, and of a score, are integers of this many bits.
_BITS = 18
#: Absolute residuals are counted up to these parts of the range of the labels.
STEPS = tuple(2.0 ** (0.5 * k) for k in range(-9, 1))
#: A count is clear if it is so many deviations of its noise; the least and the largest part of a
#: count that is supposed above the next step.
_CLEAR, _FALL = 2.5, (0.25, 0.7)


@dataclass(frozen=True, eq=False)
class ScoreSums(Summand):
    """Sums of curvatures, of scores and of squared scores, each above the diagonal where a matrix.

    Attributes
    ----------
    rows : callable
        Makes rows of records.
    n_columns : int
        Entries of a row.
    point : Point
        Where scores are taken.
    slope : Slope
        The slope of the loss.
    radius : float
        R.
    shares : (float, float, float)
        Parts of the squared sensitivity for curvatures, scores and squared scores. Curvatures whose
        share is zero are left out.
    columns : ndarray of int or None
        See `Summand`.
    """

    rows: Callable[[Matrix], np.ndarray] = field(repr=False)
    n_columns: int
    point: Point = field(repr=False)
    slope: Slope
    radius: float
    shares: tuple[float, float, float]
    columns: np.ndarray | None = field(default=None, repr=False)

    unit = 0
    sentence = "noisy sums of scores and of their products, for intervals"
    #: Products of so many rows are sums of integers below 2^53, which are exact in any order.
    most_rows = 1 << 15

    @cached_property
    def units(self) -> tuple[int, int]:
        """Entries of rows, and of scores, are rounded to multiples of 2^−unit."""
        lengths = self.radius * math.sqrt(self.slope.bend), self.radius * self.slope.largest
        found = [_BITS - math.ceil(math.log2(length)) for length in lengths]
        return found[0], found[1]

    @cached_property
    def upper(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the entries of a matrix."""
        return np.triu_indices(self.n_columns)

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """KᵀK of integer rows √(wψ')f, and the sums and KᵀK of integer scores wψf.

        The sums of scores are in a smaller unit, in which their noise can be made.
        """
        G = self.rows(X)
        psi, bend = self.slope(self.point, X, y)
        gone = np.isnan(psi)
        weights = long_rows(G, self.radius)
        score = np.where(gone, 0.0, weights * psi)
        V = np.rint(np.ldexp(G * score[:, None], self.units[1]))
        parts = [np.ldexp(V.sum(axis=0), _BITS), (V.T @ V)[self.upper]]
        if self.shares[0]:
            root = np.where(gone, 0.0, np.sqrt(weights * bend))
            K = np.rint(np.ldexp(G * root[:, None], self.units[0]))
            parts = [(K.T @ K)[self.upper], *parts]
        return np.concatenate(parts).astype(np.int64)

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """Those of each sum for two neighbours, over the root of its share.

        A label that is replaced leaves the row: ψ' changes by `bend` at most and ψ² by its largest
        value. Entries above a diagonal count twice in the norm of a matrix.
        """
        both = neighbours.relation == "replaced"
        two_rows = both and neighbours.unit == "record"
        half = 0.5 * math.sqrt(self.n_columns)  # what rounding adds to the length of a row
        row = (
            math.ldexp(self.radius * math.sqrt(self.slope.bend), self.units[0]) + half
        ) * ROUNDING
        # Two scores of one row are parallel up to rounding, which the second half is for.
        pull = math.ldexp(self.radius * self.slope.largest, self.units[1])
        pull = (pull + 2.0 * half) * ROUNDING
        moved = 2.0 * pull
        if not two_rows:
            change = math.ldexp(self.radius * self.slope.change, self.units[1])
            moved = (change + 2.0 * half) * ROUNDING
        products = math.sqrt(2.0) if two_rows else 1.0
        found = [
            (products * row**2, 0),
            (math.ldexp(moved if both else pull, _BITS), 1),
            (products * pull**2, 2),
        ]
        whole = []
        for length, k in found:
            if not self.shares[k]:
                continue
            length /= math.sqrt(self.shares[k])
            if k == 1:
                whole.append(np.full(self.n_columns, length))
            else:
                above = self.upper[0] < self.upper[1]
                whole.append(np.where(above, length / math.sqrt(2.0), length))
        return np.concatenate(whole)

    def split(self, found: np.ndarray) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """Curvatures, scores and squared scores in their own units, of sums or of deviations."""
        entries = self.upper[0].size
        bends, rest = np.split(found, [entries if self.shares[0] else 0])
        scores, squares = np.split(rest, [self.n_columns])
        H = self._square(bends, self.units[0]) if self.shares[0] else None
        return H, np.ldexp(scores, -self.units[1] - _BITS), self._square(squares, self.units[1])

    def _square(self, entries: np.ndarray, unit: int) -> np.ndarray:
        matrix = np.zeros((self.n_columns,) * 2)
        matrix[self.upper] = np.ldexp(entries, -2 * unit)
        return np.triu(matrix) + np.triu(matrix, 1).T


class SizeSums(Summand):
    """What records add to one of several intervals of sizes: one at most."""

    unit = 36
    most_rows = 1 << 15

    #: The lower ends of the intervals; sizes below the first are left out.
    steps: tuple[float, ...]

    def placed(self, sizes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Sums of weights, at most one each, by the interval of a size; nothing of NaN."""
        at = np.searchsorted(self.steps, sizes, side="right")
        at[np.isnan(sizes)] = 0
        whole = np.rint(np.ldexp(weights, self.unit))  # sums below 2^53 are exact in any order
        return np.bincount(at, whole, len(self.steps) + 1)[1:].astype(np.int64)

    def lengths(self, neighbours: Neighbours) -> np.ndarray:
        """A record is in one interval, and two are in two."""
        length = 1.0 if neighbours.relation == "emptied" else math.sqrt(2.0)
        return np.full(len(self.steps), math.ldexp(length, self.unit) * ROUNDING)

    def above(self, found: np.ndarray) -> np.ndarray:
        """Sums above each step."""
        return np.cumsum(found[::-1])[::-1]


@dataclass(frozen=True, eq=False)
class RowCounts(SizeSums):
    """How many rows have a squared length above each of some steps; none of empty records.

    Attributes
    ----------
    rows : callable
        Makes rows of records.
    steps : tuple of float
        Squared lengths.
    columns : ndarray of int or None
        See `Summand`.
    """

    rows: Callable[[Matrix], np.ndarray] = field(repr=False)
    steps: tuple[float, ...] = ()
    columns: np.ndarray | None = field(default=None, repr=False)

    sentence = "noisy counts of rows by their length"

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Counts between two steps, and beyond the last."""
        squares = squared_lengths(self.rows(X))
        squares[empty_records(np.asarray(y, np.float64))] = np.nan
        return self.placed(squares, np.ones(len(squares)))


@dataclass(frozen=True, eq=False)
class ResidualSums(SizeSums):
    """Sums of the lengths of rows, in units of R, by the size of their residuals.

    A residual that is clipped changes a score by no more than the length of its row.

    Attributes
    ----------
    point : Point
        Where residuals are taken.
    rows : callable
        Makes rows of records.
    radius : float
        R; longer rows count as so long.
    columns : ndarray of int or None
        See `Summand`.
    """

    point: Point = field(repr=False)
    rows: Callable[[Matrix], np.ndarray] = field(repr=False)
    radius: float
    columns: np.ndarray | None = field(default=None, repr=False)

    sentence = "noisy sums of the lengths of rows by the size of their residuals"
    steps = STEPS

    def sums(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Sums between two steps, and beyond the last; nothing of empty records."""
        length = np.sqrt(squared_lengths(self.rows(X))) / self.radius
        return self.placed(np.abs(self.point.residuals(X, y)), np.minimum(length, 1.0))


def exceeded_by(steps: tuple[float, ...], above: np.ndarray, noise: float, allowed: float) -> float:
    """A size that about `allowed` values exceed, from noisy counts above geometric steps.

    Where counts are lost in the noise, they are supposed to fall from step to step as they did
    before, and to fall faster and faster if they did so before.

    >>> steps, counts = (1.0, 2.0, 4.0, 8.0, 16.0), np.array([800.0, 400.0, 200.0, 9.0, -5.0])
    >>> exceeded_by(steps, counts, 10.0, 100.0)
    8.0
    >>> exceeded_by(steps, counts, 10.0, 50.0)
    16.0
    """
    noises = noise * np.sqrt(np.arange(len(steps), 0, -1))
    lost = np.flatnonzero(above <= np.maximum(_CLEAR * noises, allowed))
    if not lost.size:
        return steps[-1]
    last = max(int(lost[0]) - 1, 0)
    count = max(float(above[last]), float(_CLEAR * noises[last]))
    fall, faster, further = _FALL[1], 1.0, 0.0
    if last > 0:
        fall = float(np.clip(count / above[last - 1], *_FALL))
    if last > 1:
        faster = float(np.clip(fall * above[last - 2] / above[last - 1], 0.5, 1.0))
    while count > allowed and further < len(steps):
        part = min(1.0, math.log(count / allowed) / -math.log(fall))
        count, further, fall = count * fall**part, further + part, fall * faster
    return min(steps[last] * (steps[1] / steps[0]) ** further, steps[-1])
