"""Objective perturbation for labels of blocks of rows, with sums that do not depend on their order.

It is the mechanism of `_clipped_release`: rows in units of the noise have a length of at most 1,
and the minimiser of the perturbed objective is released. Each row is whitened and rounded to a
grid by itself, and shrunk where it would be longer, so that the guarantee holds for whatever the
blocks hold. The minimiser is found by the exact sums of `_exact_minimiser`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import njit

from privasso.operators import BlockCovariates, BlockWhitening
from privasso.privacy._clipped_release import as_release, scaled_labels
from privasso.privacy._kind import Calibration
from privasso.privacy._label_level import Level, weighted_residuals
from privasso.privacy._record_map import shorter
from privasso.privacy._release import Release
from privasso.queries import Answering, BitSource, exact_minimiser
from privasso.solvers import LABEL_BITS, PassSetting, entry_grid


@dataclass(frozen=True, eq=False)
class LabelMap:
    """Records as rows and labels on grids: whitened, no longer than the radius.

    Attributes
    ----------
    whitening : BlockWhitening
        Rows in units of the noise.
    level : float
        What they are multiplied by.
    ones : float
        Last entry of a row, for the intercept; not used without one.
    intercept : bool
    y_bounds : (float, float)
        Bounds of the labels, which become (y − middle)/range.
    radius : float
        Longest row.
    """

    whitening: BlockWhitening
    level: float
    ones: float
    intercept: bool
    y_bounds: tuple[float, float]
    radius: float

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return self.whitening.rank + self.intercept

    @property
    def grid(self) -> int:
        """The s of the grid 2⁻ˢ of the entries."""
        return entry_grid(self.radius * (1.0 + 1e-12))

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of some records of a chunk."""
        rows, rank = np.empty((stop - start, self.n_columns)), self.whitening.rank
        for span, white in self.whitening.rows(X[start:stop]):
            rows[span, :rank] = self.level * white
        if self.intercept:
            rows[:, rank] = self.ones
        labels = scaled_labels(np.asarray(y[start:stop], dtype=np.float64), self.y_bounds)
        longest = self.radius * shorter(self.n_columns)
        if not _shorten(rows, labels, longest, math.ldexp(1.0, self.grid), 2.0**LABEL_BITS):
            raise ValueError("X must be finite; fill or drop missing values before the fit")
        return rows, labels


@njit(cache=True, nogil=True)
def _shorten(rows, labels, longest, grid, label_grid):  # pragma: no cover
    """Shrink rows with their labels, and round both towards zero; False if one is no number."""
    good = True
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        good = good and np.isfinite(total)
        factor = min(1.0, longest / np.sqrt(total)) if total > 0.0 else 1.0
        labels[i] = np.trunc(factor * labels[i] * label_grid) / label_grid
        for j in range(rows.shape[1]):
            rows[i, j] = np.trunc(rows[i, j] * factor * grid) / grid
    return good


def block_clipped_release(
    rows: BlockCovariates,
    bounds: tuple[float, float],
    calibration: Calibration,
    bits: BitSource,
    *,
    unit: float = 1.0,
    level: Level | None = None,
) -> Release:
    """Run the mechanism over the blocks, and return its minimiser as products of rows and labels.

    Parameters
    ----------
    rows : BlockCovariates
        Public covariates; their blocks hold the labels.
    bounds, calibration, bits, unit, level
        As in `clipped_release`.
    """
    noise = calibration.objective
    assert noise is not None
    range_ = (bounds[1] - bounds[0]) / unit
    size = noise.sigma * range_
    ones = size / calibration.sigma_sum if rows.centred else 0.0
    label_map = LabelMap(
        rows.whitening(calibration.covariance), size, ones, rows.centred, bounds, noise.radius
    )  # fmt: skip
    n = label_map.n_columns
    setting = PassSetting.of(n, label_map.grid, noise.kappa)
    u = exact_minimiser(rows.source, label_map, setting, 0.0, noise, bits, np.zeros(n))
    white = (_whitened_gram(rows, calibration, size, ones) @ u + noise.ridge * u) / noise.sigma
    off = 0.0
    if level is not None:
        mean = calibration.sigma_sum * float(white[-1]) / rows.shape[0] / range_
        ask = Answering(rows.source, bits)
        residuals = partial(_from_mean, bounds=bounds, mean=mean)
        off = level.correction(ask, residuals, columns=np.empty(0, dtype=np.intp))
    return as_release(rows, bounds, calibration, white, off, float(rows.shape[0]), unit)


def _from_mean(
    X: np.ndarray, y: np.ndarray, bounds: tuple[float, float], mean: float
) -> np.ndarray:
    """Labels from a given mean, in units of their range.

    They are taken as they are in the blocks, and not on a grid, so that a label moves the sum by no
    more than the range of the labels.
    """
    scaled = scaled_labels(np.asarray(y, dtype=np.float64), bounds)
    return weighted_residuals(np.ones(1), scaled, mean)


def _whitened_gram(
    rows: BlockCovariates, calibration: Calibration, level: float, ones: float
) -> np.ndarray:
    """GᵀG of the whitened rows, from the Gram matrix; both are public."""
    covariance = calibration.covariance
    half = level * covariance.whiten(rows.gram)
    inner = level * covariance.whiten(half.T)
    if not rows.centred:
        return inner
    n = covariance.rank
    found = np.empty((n + 1, n + 1))
    found[:n, :n] = inner
    found[n, :n] = found[:n, n] = ones * level * covariance.whiten(rows.column_sums[rows.live])
    found[n, n] = rows.shape[0] * ones**2
    return found
