"""Wide tables with known coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

TEST_ROWS = 2000
#: Labels have the variance 1; these are four deviations.
Y_BOUNDS = (-4.0, 4.0)


@dataclass(frozen=True, eq=False)
class Wide:
    """A table, rows to test on, which columns have coefficients, and these."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    support: np.ndarray
    coef: np.ndarray

    def true_r2(self) -> float:
        """R² of the true coefficients on the test rows."""
        residual = self.y_test - self.X_test[:, self.support] @ self.coef
        return float(1.0 - np.mean(residual**2) / np.var(self.y_test))


def wide(
    kind: str, rows: int, columns: int, seed: int, *, true: int = 10, explained: float = 0.7
) -> Wide:
    """Columns uniform in [−1, 1]: independent, "AR 0.9", or "blocks" of 20 at correlation 0.8.

    The true columns have coefficients of one size and explain a part of the variance of the labels,
    which is 1: the best possible R².
    """
    rng = np.random.default_rng(seed)
    m = rows + TEST_ROWS
    Z = rng.standard_normal((m, columns)).astype(np.float32)
    if kind.startswith("AR"):
        r = float(kind.split()[1])
        for j in range(1, columns):
            Z[:, j] = r * Z[:, j - 1] + math.sqrt(1.0 - r * r) * Z[:, j]
    elif kind == "blocks":
        common = rng.standard_normal((m, columns // 20)).astype(np.float32)
        Z = math.sqrt(0.8) * np.repeat(common, 20, axis=1) + math.sqrt(0.2) * Z
    elif kind != "independent":
        raise ValueError(f"no tables of kind {kind!r}")
    X = (2.0 * ndtr(Z) - 1.0).astype(np.float32)
    support = rng.choice(columns, true, replace=False)
    if kind == "blocks":
        support = 20 * rng.choice(columns // 20, true, replace=False) + rng.integers(0, 20, true)
    coef = rng.choice([-1.0, 1.0], true)
    coef *= math.sqrt(explained) / (X[:, support] @ coef).std()
    y = X[:, support] @ coef + math.sqrt(1.0 - explained) * rng.standard_normal(m)
    return Wide(X[:rows], y[:rows], X[rows:], y[rows:], support, coef)
