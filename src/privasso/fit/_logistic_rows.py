"""Rows of standardised columns, with a column of ones, for a logistic regression."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from privasso._types import Matrix
from privasso.operators import Covariates


class LogisticRows:
    """The live columns, centred if there is an intercept and divided by their root mean squares.

    Coefficients x refer to these columns; with an intercept the last entry is the log odds at the
    means of the columns.

    Parameters
    ----------
    rows : Covariates
        The covariates, without weights of their own.
    """

    def __init__(self, rows: Covariates) -> None:
        self.covariates = rows
        self.intercept = rows.centred
        self.n_columns = int(rows.live.sum())
        self.scale = np.sqrt(rows.squares[rows.live] / rows.total)

    @property
    def units(self) -> np.ndarray:
        """The scales of the columns, and 1 for the column of ones."""
        return np.append(self.scale, 1.0) if self.intercept else self.scale

    @cached_property
    def design(self) -> Matrix:
        """The columns as a matrix with the column of ones; sparse ones are not centred."""
        rows = self.covariates
        ones = np.ones((rows.shape[0], int(self.intercept)))
        if rows.sparse:
            scaled = rows.stored @ sp.diags_array(1.0 / self.scale)
            return sp.csr_array(sp.hstack([scaled, ones]) if self.intercept else scaled)
        Z = np.empty((rows.shape[0], self.n_columns + self.intercept))
        for span, block in rows.blocks():
            Z[span, : self.n_columns] = block[:, rows.live] / self.scale
        Z[:, self.n_columns :] = ones
        return Z

    def for_design(self, x: np.ndarray) -> np.ndarray:
        """Coefficients of `design` that give the same log odds."""
        return self._shifted(x, -1.0)

    def of_design(self, x: np.ndarray) -> np.ndarray:
        """The reverse of `for_design`."""
        return self._shifted(x, 1.0)

    def _shifted(self, x: np.ndarray, sign: float) -> np.ndarray:
        rows, n = self.covariates, self.n_columns
        if not (self.intercept and rows.sparse):
            return x
        middle = rows.mean[rows.live] / self.scale
        return np.append(x[:n], x[n] + sign * float(middle @ x[:n]))

    def log_odds(self, x: np.ndarray) -> np.ndarray:
        """Zx of all rows."""
        return self.design @ self.for_design(x)

    def products(self, r: np.ndarray) -> np.ndarray:
        """Zᵀr."""
        rows = self.covariates
        found = rows.rmatvec(r)[rows.live] / self.scale
        return np.append(found, np.sum(r)) if self.intercept else found

    def moments(self, weights: np.ndarray) -> np.ndarray:
        """Σ_μ w_μ z_μz_μᵀ."""
        found = self.covariates.moments(weights, ones=self.intercept)
        return found / np.outer(self.units, self.units)

    def in_units(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of all columns in their own units, and the intercept."""
        rows, n = self.covariates, self.n_columns
        coef = np.zeros(rows.shape[1])
        coef[rows.live] = x[:n] / self.scale
        return coef, float(x[n] - rows.mean @ coef) if self.intercept else 0.0
