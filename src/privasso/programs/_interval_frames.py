"""The coordinates in which scores are summed: private columns, or public ones."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from privasso.operators import Covariates, Whitening
from privasso.programs._estimate import ScaleSums, noisy_moments
from privasso.programs._point import Point, StandardRows, TurnedRows
from privasso.programs._public_sums import (
    far_moments,
    longest_row,
    public_curvature,
    rows_below,
)
from privasso.programs._records import half_ranges
from privasso.queries import Ask, Neighbours, NoisySum

#: Part of the squared sensitivity for scales of private columns.
SCALES = 0.15
#: Rounding of the lengths of public rows.
ROUNDED = 1.0 + 1e-6
#: Columns are divided by this power of their scales: rare levels, which make rows long, keep most
#: of their weight.
_POWER = 0.75
#: Eigenvalues of correlations below this, times the number of columns, count as zero.
_LEAST = 1e-9
#: The fourth moment of a normal number; on fewer rows than these no coefficient may rest: where it
#: rests on 10 to 20, ordinary intervals of 95 % hold in 87 %, and on 20 to 50 in 91 %.
_NORMAL, _FEWEST = 3.0, 20.0
#: Eigenvalues are raised to this part of the largest for the shape of noise.
_FLAT = 1e-10


class Frame(ABC):
    """The coordinates in which scores are summed.

    Attributes
    ----------
    cut : ndarray of shape (N, 2) or None
        Bounds that covariates are clipped to, where these are private.
    columns : ndarray of int or None
        The columns of the records, if not all.
    """

    cut: np.ndarray | None = None
    columns: np.ndarray | None = None

    @abstractmethod
    def settled(self, ask: Ask, mu: float, neighbours: Neighbours) -> Placed:
        """What they are, after questions of this sensitivity if they are not public."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Coordinates that are public now.

    Attributes
    ----------
    rows : callable
        Makes rows of records.
    square : float
        Mean squared length of a row, or the largest one where rows are public.
    unit : ndarray of shape (d,)
        Mean squares of their entries, as far as is known.
    into : ndarray of shape (N, d)
        Coefficients, of those of the rows.
    origin : ndarray of shape (N,)
        What is zero in the rows.
    offset : ndarray of shape (d,)
        What is added to all rows.
    unknown : ndarray of bool, of shape (N,)
        Columns that are combinations of others, or constant: they have no coefficient of their own.
    whole : ndarray of shape (2, d)
        Mean squares of the entries of private rows before they are shrunk, and the deviations of
        their noise.
    reach : ndarray of shape (d,)
        The largest entries that there can be in private rows.
    far : ndarray of shape (d,)
        How far away the entries of some rows are, see `OneStep`.
    few : ndarray of bool, of shape (N,), or None
        Columns whose coefficients rest on a few public rows.
    curvature : callable or None
        That of squared residuals for None, or of a logistic regression at a point, where rows are
        public.
    """

    rows: StandardRows | TurnedRows
    square: float
    unit: np.ndarray = field(repr=False)
    into: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)
    offset: np.ndarray = field(repr=False)
    unknown: np.ndarray = field(repr=False)
    whole: np.ndarray = field(repr=False)
    reach: np.ndarray = field(repr=False)
    far: np.ndarray = field(repr=False)
    few: np.ndarray | None = field(default=None, repr=False)
    curvature: Callable[[Point | None], np.ndarray] | None = field(default=None, repr=False)

    def moved(self, point: Point, step: np.ndarray, width: float) -> Point:
        """The point after a step in the coordinates of the rows, of labels of range 1."""
        change = width * (self.into @ step)
        level = width * float(self.offset @ step) - float(self.origin @ change)
        return replace(point, coef=point.coef + change, intercept=point.intercept + level)


@dataclass(frozen=True, eq=False)
class RecordFrame(Frame):
    """Private columns, in units of scales that are found with noise.

    Attributes
    ----------
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    intercept : bool
        Whether there is a column of ones.
    columns : ndarray of int or None
        The columns of the records, if not all.
    """

    bounds: np.ndarray = field(repr=False)
    intercept: bool
    columns: np.ndarray | None = field(default=None, repr=False)

    @property
    def cut(self) -> np.ndarray:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The bounds."""
        return self.bounds

    def settled(self, ask: Ask, mu: float, neighbours: Neighbours) -> Placed:
        middle, half = half_ranges(self.bounds, centred=True)
        sums = ScaleSums(self.bounds, middle, half, self.columns)
        query = NoisySum(sums, mu * math.sqrt(SCALES), neighbours)
        centre, scale, second, doubt = noisy_moments(ask, query, centred=True)
        usual = math.sqrt(float(np.mean(scale**2)))
        unit = half * scale**_POWER * usual ** (1.0 - _POWER)
        origin = middle + half * centre if self.intercept else np.zeros(len(half))
        squares = (scale / usual) ** (2.0 - 2.0 * _POWER)
        if not self.intercept:
            live = unit > 0.0
            squares = (
                squares
                + np.where(live, middle + half * centre, 0.0) ** 2 / np.where(live, unit, 1.0) ** 2
            )
        rows = StandardRows(self.bounds, origin, unit, self.intercept)
        inverse = np.divide(1.0, unit, out=np.zeros(unit.size), where=unit > 0.0)
        into = np.zeros((unit.size, rows.n_columns))
        into[:, : unit.size] = np.diag(inverse)
        square = float(squares.sum()) + self.intercept
        ones, offset = np.ones(rows.n_columns), np.zeros(rows.n_columns)
        offset[unit.size :] = 1.0
        whole = np.outer([1.0, 0.0], second) + np.array([[0.0], [doubt]])
        whole = np.c_[whole * (half * inverse) ** 2, np.zeros((2, rows.n_columns - unit.size))]
        reach = np.append(
            np.max(np.abs(self.bounds.T - origin), axis=0) * inverse,
            np.ones(rows.n_columns - unit.size),
        )
        return Placed(rows, square, ones, into, origin, offset, unit == 0.0, whole, reach, ones)


@dataclass(frozen=True, eq=False)
class LabelFrame(Frame):
    """Public columns, in units of noise that hides every label, of which curvatures are public.

    Attributes
    ----------
    covariates : Covariates
        All of them.
    """

    covariates: Covariates = field(repr=False)

    def settled(self, ask: Ask, mu: float, neighbours: Neighbours) -> Placed:
        return self._placed

    @cached_property
    def _placed(self) -> Placed:
        """In units of the noise along its axes, which are those of the curvature as well.

        Σ hides the longest row, and no row is shrunk. It is found as in `optimal_shape`, for the
        mean variance of all coefficients over that without privacy, in one step.
        """
        one, table = self.covariates, self.covariates.table()
        live, n = np.flatnonzero(one.live), one.shape[1]
        W, lost = principal_units(one)
        r, offset = W.shape[1], np.zeros(W.shape[1])
        if one.centred:
            W, offset = np.c_[W, np.zeros(len(W))], np.append(offset, 1.0)

        def turned(by: np.ndarray) -> TurnedRows:
            return TurnedRows(Whitening(one.mean, live, np.ascontiguousarray(W @ by)), offset @ by)

        # What a coefficient weighs: the inverse of its variance without privacy.
        variances = np.sum(W**2, axis=1)
        weight = (W / variances[:, None]).T @ W
        weight[r:, r:] += np.eye(len(offset) - r)
        half = power(weight, 0.5)

        def root(moments: np.ndarray) -> np.ndarray:
            """Σ^(−½) of the best shape for these moments."""
            return half @ power(half @ moments @ half, -0.25)

        first = root(np.eye(len(offset)))
        mean = float(np.sum(first**2))
        moments = far_moments(table, turned(first), mean)
        undone = np.linalg.inv(first)
        inverse = root(undone.T @ moments @ undone)
        mean = float(np.sum(inverse**2))
        inverse = inverse / math.sqrt(longest_row(table, turned(inverse), mean))
        # Along the axes of Σ.
        values, axes = np.linalg.eigh(inverse @ inverse.T)
        rows = turned(axes * np.sqrt(values))
        into, unknown = np.zeros((n, rows.n_columns)), np.ones(n, dtype=bool)
        into[live], unknown[live] = rows.whitening.matrix, lost

        @cache
        def curvature(point: Point | None) -> np.ndarray:
            return public_curvature(table, rows, ROUNDED, point)

        G = curvature(None)
        turns = np.c_[np.diag(np.diag(G) ** -0.5), _influences(G, into)]
        resting = rows_below(table, rows, turns)
        far = np.sqrt(np.maximum(one.shape[0] / (_NORMAL * resting[: len(G)]), 1.0))
        few, none, ones = resting[len(G) :] < _FEWEST, np.zeros((2, len(G))), np.ones(len(G))
        return Placed(
            rows, 1.0, values, into, one.mean, rows.offset, unknown, none, ones, far, few, curvature
        )


def power(A: np.ndarray, exponent: float) -> np.ndarray:
    """A power of a symmetric positive matrix."""
    values, vectors = np.linalg.eigh(A)
    values = np.maximum(values, _FLAT * values[-1])
    return (vectors * values**exponent) @ vectors.T


def _influences(G: np.ndarray, into: np.ndarray) -> np.ndarray:
    """What the entries of a row add to a coefficient, with sums of squares of one over all rows."""
    found = np.linalg.lstsq(G, into.T, rcond=None)[0]
    squares = np.einsum("ij,ik,kj->j", found, G, found)
    return found / np.sqrt(np.where(squares > 0.0, squares, 1.0))


def principal_units(rows: Covariates) -> tuple[np.ndarray, np.ndarray]:
    """W with rows fW of uncorrelated entries of mean square one, and the columns that are lost.

    Directions in which columns hardly vary are left out; columns in them have no coefficient.
    """
    G = rows.moments(None) / rows.shape[0]
    deviations = np.sqrt(np.diag(G))
    values, vectors = np.linalg.eigh(G / np.outer(deviations, deviations))
    varies = values > _LEAST * max(len(values), 1)
    lost = np.sqrt(np.sum(vectors[:, ~varies] ** 2, axis=1)) > math.sqrt(_LEAST)
    return vectors[:, varies] / np.sqrt(values[varies]) / deviations[:, None], lost
