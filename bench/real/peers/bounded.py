"""Columns and labels in the unit of their public bounds."""

from __future__ import annotations

import numpy as np

from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds


def scaled(
    X: np.ndarray, y: np.ndarray, column_bounds: np.ndarray, y_bounds: Bounds
) -> tuple[np.ndarray, np.ndarray]:
    """Rows (f, 1)/√(N+1) with f in [−1, 1]^N, of norm at most 1, and labels in [−1, 1]."""
    low, high = column_bounds.T
    f = 2.0 * (np.clip(X, low, high) - low) / (high - low) - 1.0
    rows = np.column_stack([f, np.ones(len(f))]) / np.sqrt(f.shape[1] + 1.0)
    z = 2.0 * (np.clip(y, *y_bounds) - y_bounds[0]) / (y_bounds[1] - y_bounds[0]) - 1.0
    return rows, z


def unscaled(theta: np.ndarray, column_bounds: np.ndarray, y_bounds: Bounds) -> Linear:
    """The model in the units of the data whose coefficients are θ in those of `scaled`."""
    low, high = column_bounds.T
    half = 0.5 * (y_bounds[1] - y_bounds[0])
    per_column = half * theta / np.sqrt(theta.size)
    coef = per_column[:-1] * 2.0 / (high - low)
    intercept = y_bounds[0] + half + per_column[-1] - float(coef @ (0.5 * (low + high)))
    return Linear(coef, float(intercept), bounds=column_bounds)
