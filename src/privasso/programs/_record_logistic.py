"""Logistic regression on whole records: how a table becomes weighted rows, and with how much noise.

The slope of the logistic loss of a record is at most 1, whatever its label is, and its curvature at
most ¼. A long row is not shrunk, which would bias the fit towards small log odds, but has a smaller
weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from privasso.programs._record_rows import PerturbedObjective
from privasso.programs._records import empty_records, shorter, within
from privasso.programs._worst_tables import Table
from privasso.queries import PerturbedMinimiser


@dataclass(frozen=True, eq=False)
class LogisticMap:
    """Records as scaled rows, as long as they are, with labels 0 and 1; zeros for empty records.

    A label above ½ counts as 1, any other as 0.

    Attributes
    ----------
    bounds, origin, half, intercept, radius
        As for `RecordMap`.
    reach : float
        K.
    """

    bounds: np.ndarray = field(repr=False)
    origin: np.ndarray = field(repr=False)
    half: np.ndarray = field(repr=False)
    intercept: bool
    radius: float
    reach: float

    grid = None
    largest_label = 1.0

    @property
    def n_columns(self) -> int:
        """Entries of a row."""
        return len(self.bounds) + self.intercept

    def __call__(
        self, X: np.ndarray, y: np.ndarray, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows and labels of some records of a chunk."""
        labels, rows = y[start:stop], np.ones((stop - start, self.n_columns))
        part = within(X[start:stop], self.bounds)
        part -= self.origin
        part /= np.where(self.half > 0.0, self.half, 1.0)
        part[:, self.half == 0.0] = 0.0
        rows[:, : len(self.bounds)] = part
        rows[empty_records(labels)] = 0.0
        return rows, np.where(labels > 0.5, 1.0, 0.0)

    def weights(self, rows: np.ndarray) -> np.ndarray:
        """Weights of rows; each depends on its own record only."""
        length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        radius = self.radius * shorter(rows.shape[1])
        with np.errstate(divide="ignore"):
            w = np.minimum(radius / length, radius * self.reach / length**2)
        return np.minimum(1.0, w)


@dataclass(frozen=True, eq=False)
class PerturbedLogistic(PerturbedObjective):
    """A perturbed logistic regression on scaled rows f with labels 0 and 1.

    Rows have the weights w = min(1, R/‖f‖, RK/‖f‖²), so that none pulls harder than R, and no pull
    changes by more than RK/4 per unit of the coefficients.

    Attributes
    ----------
    reach : float
        K.
    """

    reach: float = 0.0

    def minimiser(self, lam: float) -> PerturbedMinimiser:
        """The question for log odds of scaled columns."""
        return PerturbedMinimiser(self.view, self.noise, lam, self.penalised, self.columns)

    @cached_property
    def view(self) -> LogisticMap:  # pyright: ignore[reportIncompatibleVariableOverride]
        """How a record becomes a row and a label."""
        scaling, radius = self._scaling(), self.noise.radius
        return LogisticMap(self.bounds, *scaling, bool(self.fit_intercept), radius, self.reach)

    def _worst_case(self, n_rows: int) -> Table:
        """All others are at the same place and of the other class, so that its pull is full."""
        X, labels = np.tile(self.bounds[:, 1], (n_rows, 1)), np.zeros(n_rows)
        labels[0] = 1.0
        return X, labels, "a record made up among others of the other class"

    def in_units(self, u: np.ndarray) -> tuple[np.ndarray, float]:
        """Log odds per unit of the columns, and where all columns are zero."""
        coef, n = self.per_unit(u), len(self.bounds)
        return coef, float(u[n] - self.origin @ coef) if self.fit_intercept else 0.0
