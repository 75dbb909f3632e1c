"""Records of a fit whose labels are private: rows in units of the noise, each by itself.

With noise of the covariance Σ on the columns and σ₀² on the label sum, a row is
g_μ = s(Σ^(−½)(f_μ − mean), 1/σ₀), s a public number. Rows that are too long are shrunk. So what one
label can do is bounded for whatever the rows are, and a record becomes the same in every storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from privasso._blas import one_thread
from privasso._types import Matrix
from privasso._validation import X_FINITE
from privasso.blocks import taken
from privasso.operators import Covariates, Whitening
from privasso.programs._records import bounded_labels, empty_records, shorter
from privasso.programs._release import Calibration, Release
from privasso.solvers import LABEL_BITS, entry_grid


@dataclass(frozen=True, eq=False)
class LabelRows:
    """The rows g_μ, of any length.

    Attributes
    ----------
    whitening : Whitening
        f ↦ Σ^(−½)(f − mean).
    size : float
        s.
    ones : float or None
        s/σ₀, the last entry of a row; None without an intercept.
    weighted : bool
        Whether a further column of the records holds public weights.
    """

    whitening: Whitening
    size: float
    ones: float | None
    weighted: bool

    @staticmethod
    def of(rows: Covariates, calibration: Calibration, size: float) -> LabelRows:
        """Those of covariates and the noise that was calibrated for them."""
        ones = size / calibration.sigma_sum if rows.centred else None
        whitening = rows.whitening(calibration.covariance)
        return LabelRows(whitening, size, ones, rows.weights is not None)

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return self.whitening.rank + (self.ones is not None)

    def __call__(self, X: Matrix) -> np.ndarray:
        """The rows of some records."""
        found, rank = np.empty((X.shape[0], self.n_columns)), self.whitening.rank
        for span, white in self.whitening.rows(X):
            np.multiply(white, self.size, out=found[span, :rank])
        if self.ones is not None:
            found[:, rank] = self.ones
        return found

    def weights(self, X: Matrix) -> np.ndarray | None:
        """Given weights of some records."""
        if not self.weighted:
            return None
        return taken(X, np.array([-1]))[:, 0]

    def normal_product(self, moments: np.ndarray, u: np.ndarray) -> np.ndarray:
        """GᵀGu, from the second moments Σ w(f, 1)(f, 1)ᵀ of the covariates."""
        matrix, rank, n = self.whitening.matrix, self.whitening.rank, len(self.whitening.matrix)
        one = np.empty(0) if self.ones is None else self.ones * u[rank:]
        with one_thread():
            inner = u[:rank] * matrix if matrix.ndim == 1 else matrix @ u[:rank]
            outer = moments @ np.append(self.size * inner, one)
            found = outer[:n] * matrix if matrix.ndim == 1 else outer[:n] @ matrix
        last = np.empty(0) if self.ones is None else self.ones * outer[n:]
        return np.append(self.size * found, last)


@dataclass(frozen=True, eq=False)
class LabelMap:
    """Records as rows √w g and labels √w y on grids, shrunk to a radius together.

    Attributes
    ----------
    rows : LabelRows
        g.
    y_bounds : (float, float)
        Bounds of the labels, which become (y − middle)/range.
    radius : float
        Longest row.
    largest_weight : float
        Of those that are given.
    empty : bool
        Whether a record without a label becomes zeros; otherwise its label counts as the middle.
    """

    rows: LabelRows
    y_bounds: tuple[float, float]
    radius: float
    largest_weight: float = 1.0
    empty: bool = False

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return self.rows.n_columns

    @property
    def grid(self) -> int:
        """The s of the grid 2⁻ˢ of the entries."""
        return entry_grid(self.radius * (1.0 + 1e-12))

    @property
    def largest_label(self) -> float:
        """Largest absolute value of a label."""
        ends = np.abs(scaled_labels(np.array(self.y_bounds), self.y_bounds))
        return float(np.max(ends)) * math.sqrt(self.largest_weight) * (1.0 + 1e-12)

    def weights(self, rows: np.ndarray) -> None:
        """All are 1: rows and labels are multiplied by their roots."""

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of some records of a chunk."""
        X = X[start:stop]
        rows, weights = self.rows(X), self.rows.weights(X)
        labels = scaled_labels(np.asarray(y[start:stop], dtype=np.float64), self.y_bounds)
        if weights is not None:
            roots = np.sqrt(weights)
            rows *= roots[:, None]
            labels *= roots
        longest = self.radius * shorter(self.n_columns)
        if not _shorten(rows, labels, longest, math.ldexp(1.0, self.grid), 2.0**LABEL_BITS):
            raise ValueError(X_FINITE)
        if self.empty:
            gone = empty_records(y[start:stop])
            rows[gone], labels[gone] = 0.0, 0.0
        return rows, labels


@njit(cache=True, nogil=True)
def _shorten(rows, labels, longest, grid, label_grid):  # pragma: no cover
    """Shrink rows with their labels, and round both towards zero; False if one is no number."""
    good = True
    for i in range(rows.shape[0]):
        factor = _factor(rows[i], longest)
        good = good and np.isfinite(factor)
        labels[i] = np.trunc(factor * labels[i] * label_grid) / label_grid
        for j in range(rows.shape[1]):
            rows[i, j] = np.trunc(rows[i, j] * factor * grid) / grid
    return good


@njit(cache=True, nogil=True)
def _factor(row, longest):  # pragma: no cover
    """What makes a row no longer than this; not finite if an entry is not."""
    total = 0.0
    for j in range(row.size):
        total += row[j] * row[j]
    if not np.isfinite(total):
        return np.nan
    return min(1.0, longest / np.sqrt(total)) if total > 0.0 else 1.0


def integer_rows(rows: np.ndarray, bits: int) -> np.ndarray:
    """Rows as integers in units of 2^−bits, shrunk until none is longer than 1."""
    # The integers are half a unit away at most, in each entry.
    longest = shorter(rows.shape[1]) - math.sqrt(rows.shape[1]) * math.ldexp(0.5, -bits)
    if longest < 0.5:
        raise ValueError("there are too many columns for exact sums; choose some of them")
    if not _whole(rows, longest, math.ldexp(1.0, bits)):
        raise ValueError(X_FINITE)
    return rows


@njit(cache=True, nogil=True)
def _whole(rows, longest, grid):  # pragma: no cover
    good = True
    for i in range(rows.shape[0]):
        factor = _factor(rows[i], longest)
        good = good and np.isfinite(factor)
        for j in range(rows.shape[1]):
            rows[i, j] = np.rint(rows[i, j] * factor * grid)
    return good


def scaled_labels(y: np.ndarray, bounds: tuple[float, float]) -> np.ndarray:
    """Labels from the middle of their bounds, as parts of the range; a missing one is zero.

    >>> scaled_labels(np.array([0.0, 3.0, 9.0, np.nan]), (2.0, 6.0)).tolist()
    [-0.5, -0.25, 0.5, 0.0]
    """
    low, high = bounds
    width = high - low
    scaled = (bounded_labels(y, bounds) - (low + 0.5 * width)) / width
    return np.clip(scaled, -0.5, 0.5, out=scaled)  # which rounding could leave


def as_release(
    rows: Covariates,
    bounds: tuple[float, float],
    calibration: Calibration,
    white: np.ndarray,
    unit: float,
    *,
    level: float = 0.0,
    times: float = 1.0,
) -> Release:
    """What noisy products of whitened rows and labels say of the products of rows and labels.

    Parameters
    ----------
    rows, bounds, calibration
        Of the fit.
    white : ndarray
        The products in units of their noise, the label sum last.
    unit : float
        In which labels are measured.
    level : float
        What corrects the intercept, as a part of the range of the labels.
    times : float
        What the products are multiplied by first.
    """
    covariance, sigma_sum, white = calibration.covariance, calibration.sigma_sum, times * white
    low, high = bounds
    width = high - low
    weights = calibration.weights
    b = np.zeros(rows.shape[1])
    b[rows.live] = covariance.colour(white[: covariance.rank])
    return Release(
        b=b,
        covariance=covariance.embedded(rows.live),
        n_rows=rows.shape[0],
        centre=(low + 0.5 * width) / unit,
        label_sum=float(sigma_sum * white[-1]) if rows.centred else None,
        sigma_sum=sigma_sum if rows.centred else None,
        mu=calibration.mu,
        weight_sum=rows.shape[0] if weights is None else float(weights.sum()),
        unit=unit,
        level=level * (width / unit),
    )
