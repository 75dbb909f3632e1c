"""Residuals of a fit, for each record by itself."""

from __future__ import annotations

import numpy as np
from numba import njit


def ordered_residuals(
    X: np.ndarray, y: np.ndarray, coef: np.ndarray, intercept: float
) -> np.ndarray:
    """Residuals y − X @ coef − intercept, the same to the last bit for a row in any block.

    >>> ordered_residuals(np.eye(2), np.ones(2), np.array([0.5, 2.0]), 0.25)
    array([ 0.25, -1.25])
    """
    residuals = np.array(y, dtype=np.float64)
    _subtract(X, coef, residuals)
    residuals -= intercept
    return residuals


def full_residuals(G: np.ndarray, labels: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Residuals of records before their rows and labels were shrunk; NaN for empty records.

    The last entry of a row is the factor by which it was shrunk, because it was 1.
    """
    residuals = np.array(labels, dtype=np.float64)
    _subtract(G, u, residuals)
    factor = G[:, -1]
    return np.divide(residuals, factor, out=np.full(residuals.size, np.nan), where=factor > 0.0)


@njit(nogil=True, cache=True)
def _subtract(G, u, residuals):  # pragma: no cover
    """Subtract each product in the order of the columns, whatever the storage."""
    for j in range(u.size):
        for i in range(residuals.size):
            residuals[i] -= G[i, j] * u[j]
