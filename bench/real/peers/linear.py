"""What every linear peer takes and returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bench.real.tables.table import Bounds


@dataclass(frozen=True, eq=False)
class Linear:
    """Predictions fᵀ·coef + intercept, with f clipped to `bounds` first if there are any."""

    coef: np.ndarray
    intercept: float
    bounds: np.ndarray | None = None

    def predict(self, X: np.ndarray) -> np.ndarray:
        if self.bounds is not None:
            X = np.clip(X, self.bounds[:, 0], self.bounds[:, 1])
        return X @ self.coef + self.intercept


class Peer(Protocol):
    """A private fit of a linear model.

    Parameters
    ----------
    X, y : ndarray
        Training rows.
    epsilon, delta : float
        The guarantee.
    y_bounds, column_bounds
        Public bounds, to which everything that is protected is clipped.
    rng : numpy Generator
        The source of all randomness.
    """

    def __call__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        *,
        epsilon: float,
        delta: float,
        y_bounds: Bounds,
        column_bounds: np.ndarray,
        rng: np.random.Generator,
    ) -> Linear: ...
