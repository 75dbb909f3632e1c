"""Records as rows of bounded length, from public bounds of the columns alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso._validation import real_array
from privasso.privacy._perturbed_objective import ObjectiveNoise, perturbed_minimiser
from privasso.privacy._rounded_gaussian import BitSource

#: R relative to √N, the length of a row whose entries are all at their bounds.
_RADIUS = 0.85
#: Rows are shrunk by this part more than needed, so that rounding never leaves one too long.
_SHORTER = 2.0**-40


def longest_row(n_columns: int) -> float:
    """R for rows with so many columns: few real rows are at all of their bounds at once.

    Examples
    --------
    >>> round(longest_row(4), 6)
    1.7
    """
    return _RADIUS * math.sqrt(n_columns)


@dataclass(frozen=True, eq=False)
class PerturbedObjective:
    """How a table becomes rows of bounded length, and with how much noise they are fitted.

    With an intercept covariates become (f − middle)/half range, the intercept is one more column
    of ones, and labels become (y − middle)/range. Without one, covariates are divided by their
    largest absolute value and labels by their range. Rows longer than the radius are shrunk
    together with their labels.

    Attributes
    ----------
    noise : ObjectiveNoise
        In units of the scaled rows and labels.
    bounds : ndarray of shape (N, 2)
        Bounds of the columns.
    y_bounds : (float, float)
        Bounds of the labels.
    fit_intercept : bool
        Whether there is a column of ones, which has no penalty.
    lam : float
        The λ that is used unless another one is given, in units of the labels.
    """

    noise: ObjectiveNoise
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    fit_intercept: bool
    lam: float

    @property
    def width(self) -> float:
        """Range of the labels."""
        return self.y_bounds[1] - self.y_bounds[0]

    def release(
        self, X: Any, y: np.ndarray, lam: float, bits: BitSource
    ) -> tuple[np.ndarray, float]:
        """Run the mechanism, and return coefficients and intercept in the units of the data."""
        rows, labels = self.rows(X, y)
        penalised = np.ones(rows.shape[1])
        if self.fit_intercept:
            penalised[-1] = 0.0
        u = perturbed_minimiser(
            rows, labels, lam / self.width, self.noise, bits, penalty_weights=penalised
        )
        n = self.bounds.shape[0]
        middle, half = self._scaling()
        coef = np.where(half > 0.0, self.width * u[:n] / np.where(half > 0.0, half, 1.0), 0.0)
        centre = 0.5 * self.y_bounds[0] + 0.5 * self.y_bounds[1]
        level = centre + self.width * u[n] if self.fit_intercept else 0.0
        return coef, float(level - middle @ coef) if self.fit_intercept else 0.0

    def rows(self, X: Any, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows no longer than the radius, and their labels; each depends on its own record only.

        Examples
        --------
        >>> from privasso import RecordDP
        >>> privacy = RecordDP(1.0, 1e-6, bounds=[(0.0, 20.0)], y_bounds=(0.0, 4.0))
        >>> objective = privacy.objective(2, 1, None, fit_intercept=True)
        >>> rows, labels = objective.rows([[15.0], [30.0]], np.array([1.0, 4.0]))
        >>> rows.round(3).tolist(), labels.round(3).tolist()  # the second is clipped and shrunk
        ([[0.5, 1.0], [0.85, 0.85]], [-0.25, 0.425])
        """
        n = self.bounds.shape[0]
        X = real_array("X", X, shape=(None, n), dtype=None, finite=False)
        middle, half = self._scaling()
        rows = np.empty((X.shape[0], n + self.fit_intercept))
        clipped = np.clip(X, self.bounds[:, 0], self.bounds[:, 1])
        rows[:, :n] = np.clip((clipped - middle) / np.where(half > 0.0, half, 1.0), -1.0, 1.0)
        rows[:, :n][:, half == 0.0] = 0.0
        if self.fit_intercept:
            rows[:, n] = 1.0
        if not np.isfinite(rows).all():
            raise ValueError("X must be finite; fill or drop missing values before the fit")
        centre = 0.5 * self.y_bounds[0] + 0.5 * self.y_bounds[1]
        # Without an intercept labels are measured from zero, so that Xβ can reach them.
        middle_label = centre if self.fit_intercept else 0.0
        labels = (np.clip(y, *self.y_bounds) - middle_label) / self.width
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        shorter = 1.0 - _SHORTER - (rows.shape[1] + 16) * 2.0**-52
        with np.errstate(divide="ignore"):
            factor = np.minimum(1.0, self.noise.radius * shorter / length)
        rows *= factor[:, None]
        return rows, factor * labels

    def _scaling(self) -> tuple[np.ndarray, np.ndarray]:
        """Middle and half range; without an intercept zero and the largest absolute value."""
        low, high = self.bounds[:, 0], self.bounds[:, 1]
        if self.fit_intercept:
            return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        return np.zeros_like(low), np.maximum(np.abs(low), np.abs(high))
