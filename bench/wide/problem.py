"""What every method of the comparison is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bench.wide.data import Y_BOUNDS, Wide

Kind = Literal["records", "labels"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Training rows, test rows, public bounds, and the guarantee to fit under.

    Attributes
    ----------
    X, y, X_test, y_test : ndarray
        As they are recorded, within their bounds.
    column_bounds : (float, float)
        Bounds of all columns.
    y_bounds : (float, float)
        Bounds of the labels.
    kind : {"records", "labels"}
        What is private.
    epsilon, delta : float
        The guarantee.
    support : ndarray of int or None
        The true columns, where they are known.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    column_bounds: tuple[float, float]
    y_bounds: tuple[float, float]
    kind: Kind
    epsilon: float
    delta: float
    support: np.ndarray | None = None

    @classmethod
    def simulated(cls, table: Wide, epsilon: float, delta: float) -> Problem:
        """A simulated table with private records."""
        parts = (table.X, table.y, table.X_test, table.y_test)
        return cls(*parts, (-1.0, 1.0), Y_BOUNDS, "records", epsilon, delta, table.support)

    @property
    def bounds(self) -> np.ndarray:
        """Bounds of each column."""
        return np.tile(np.array(self.column_bounds), (self.X.shape[1], 1))

    def r2(self, predicted: np.ndarray) -> float:
        """R² on the test rows."""
        return float(1.0 - np.mean((self.y_test - predicted) ** 2) / np.var(self.y_test))
