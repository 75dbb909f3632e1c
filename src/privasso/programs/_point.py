"""A public point, and what a record is there: its row, its residual, and the slope of its loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from privasso._types import Matrix, SparseMatrix
from privasso.operators import Whitening
from privasso.programs._records import bounded_labels, empty_records, ordered_residuals, within


@dataclass(frozen=True, eq=False)
class StandardRows:
    """Records as rows (x − centre)/scale with a one in the end; zeros for empty records.

    Attributes
    ----------
    bounds : ndarray of shape (N, 2)
        Values outside are clipped.
    centre, scale : ndarray of shape (N,)
        Of the columns; a column without a scale is zero.
    intercept : bool
        Whether a one follows.
    """

    bounds: np.ndarray = field(repr=False)
    centre: np.ndarray = field(repr=False)
    scale: np.ndarray = field(repr=False)
    intercept: bool

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return len(self.bounds) + self.intercept

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The rows of some records."""
        rows = np.ones((len(X), self.n_columns))
        live = self.scale > 0.0
        part = within(X, self.bounds) - self.centre
        rows[:, : len(self.bounds)] = np.where(live, part / np.where(live, self.scale, 1.0), 0.0)
        return rows


@dataclass(frozen=True, eq=False)
class TurnedRows:
    """Public records as rows (f − mean)T + offset.

    Attributes
    ----------
    whitening : Whitening
        f ↦ (f − mean)T.
    offset : ndarray
        Where the constant column is.
    """

    whitening: Whitening
    offset: np.ndarray = field(repr=False)

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return self.offset.size

    def __call__(self, X: Matrix) -> np.ndarray:
        """The rows of some records."""
        found = np.empty((X.shape[0], self.n_columns))
        for span, white in self.whitening.rows(X):
            np.add(white, self.offset, out=found[span])
        return found


@dataclass(frozen=True, eq=False)
class Point:
    """Public coefficients, from which residuals are measured in parts of the range of the labels.

    Attributes
    ----------
    coef : ndarray of shape (N,)
        Coefficients.
    intercept : float
        Intercept.
    y_bounds : (float, float)
        Labels outside are clipped.
    bounds : ndarray of shape (N, 2) or None
        Covariates outside are clipped; None where they are public.
    empty : bool
        Whether a record without a label is empty; otherwise its label is the middle.
    """

    coef: np.ndarray = field(repr=False)
    intercept: float
    y_bounds: tuple[float, float]
    bounds: np.ndarray | None = field(repr=False)
    empty: bool

    def residuals(self, X: Matrix, y: np.ndarray) -> np.ndarray:
        """Residuals of linear predictions; NaN for empty records."""
        labels = bounded_labels(np.asarray(y, np.float64), self.y_bounds, empty=self.empty)
        return ordered_residuals(self._cells(X), labels, self.coef, self.intercept) / self._width

    def odds(self, X: Matrix) -> np.ndarray:
        """Log odds of some records."""
        return -ordered_residuals(self._cells(X), np.zeros(X.shape[0]), self.coef, self.intercept)

    @property
    def _width(self) -> float:
        return self.y_bounds[1] - self.y_bounds[0]

    def _cells(self, X: SparseMatrix) -> np.ndarray:
        X = np.asarray(X.toarray() if sp.issparse(X) else X)
        X = np.asarray(X[:, : self.coef.size], dtype=np.float64)
        return X if self.bounds is None else within(X, self.bounds)


class Slope(ABC):
    """ψ and ψ' of a loss at a public point.

    Attributes
    ----------
    largest : float
        Bound of abs(ψ).
    change : float
        Bound of the difference of the ψ of two labels.
    bend : float
        Bound of ψ'.
    prior, most : float
        Deviation beforehand of an effect, per deviation of a column, and the largest deviation
        afterwards with which an interval is given.
    """

    largest: float
    change: float
    bend: float
    prior: float
    most: float

    @abstractmethod
    def __call__(self, point: Point, X: Matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ψ and ψ' of some records; NaN for those that are empty."""


@dataclass(frozen=True)
class ClippedSlope(Slope):
    """Residuals clipped at ±κ. Their curvature is that of the quadratic loss, or of Huber's.

    Attributes
    ----------
    largest : float
        κ, as a part of the range of the labels.
    huber : bool
        Whether only records count whose residual is not clipped.
    """

    largest: float
    huber: bool

    # Labels of range 1 deviate by a half at most. They usually deviate by a sixth, which no effect
    # of a column alone exceeds: an interval of twice a twelfth to each side would hold them all.
    bend, prior, most = 1.0, 0.5, 1.0 / 12.0

    def __post_init__(self) -> None:
        # No label changes a residual by more than their range.
        object.__setattr__(self, "change", min(2.0 * self.largest, 1.0))

    def __call__(self, point: Point, X: Matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The clipped residuals, and zero or one."""
        r = point.residuals(X, y)
        bend = np.abs(r) <= self.largest if self.huber else np.ones(r.size)
        return np.clip(r, -self.largest, self.largest), np.asarray(bend, dtype=np.float64)


@dataclass(frozen=True)
class LogisticSlope(Slope):
    """y − p and p(1 − p), p the probability of a label 1; labels above ½ count as 1."""

    # An interval of odds ratios from 1/e² to e² says little.
    largest, change, bend, prior, most = 1.0, 1.0, 0.25, 2.0, 1.0

    def __call__(self, point: Point, X: Matrix, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both from the log odds at the point."""
        p = 1.0 / (1.0 + np.exp(-np.clip(point.odds(X), -700.0, 700.0)))
        labels = np.asarray(y, np.float64)
        one = np.where(labels > 0.5, 1.0, 0.0)
        if point.empty:
            one[empty_records(labels)] = np.nan
        return one - p, p * (1.0 - p)


def squared_lengths(G: np.ndarray) -> np.ndarray:
    """Those of rows, the same to the last bit for a row in any block."""
    squares = np.zeros(len(G))
    for column in G.T:
        squares += column * column
    return squares


def long_rows(G: np.ndarray, radius: float) -> np.ndarray:
    """The weights min(1, (R/‖f‖)²) of rows, the same to the last bit for a row in any block."""
    with np.errstate(divide="ignore"):
        return np.minimum(1.0, radius * radius / squared_lengths(G))
