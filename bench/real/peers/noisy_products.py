"""Noisy products of standardised columns and labels, with the same noise for each column.

The Gaussian mechanism on Fᵀ(y − c), where F has standardised columns and one of ones, and c is the
middle of the label bounds: a change of one label moves the products by at most (high − low) times
the norm of the longest row, which is public. The LASSO is solved from the noisy products and FᵀF at
λ = σ√(2 log N), the universal threshold of Donoho and Johnstone (1994, Ideal spatial adaptation by
wavelet shrinkage), which no coordinate of the noise is likely to exceed. The column of ones is not
penalised.
"""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import StandardScaler

from bench.real.peers.gaussian import mu_for, release
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds


def fit(
    X: np.ndarray,
    y: np.ndarray,
    *,
    epsilon: float,
    delta: float,
    y_bounds: Bounds,
    column_bounds: np.ndarray,
    rng: np.random.Generator,
) -> Linear:
    scaler = StandardScaler().fit(X)
    F = np.column_stack([scaler.transform(X), np.ones(len(X))])
    centre, width = 0.5 * (y_bounds[0] + y_bounds[1]), y_bounds[1] - y_bounds[0]
    mu, sensitivity = mu_for(epsilon, delta), width * float(np.linalg.norm(F, axis=1).max())
    b = release(F.T @ (np.clip(y, *y_bounds) - centre), sensitivity, mu, rng)
    # The columns have mean zero, so the label sum concerns the intercept alone.
    lam = sensitivity / mu * np.sqrt(2.0 * np.log(max(X.shape[1], 2)))
    x = lasso(F[:, :-1].T @ F[:, :-1], b[:-1], lam)
    coef = x / scaler.scale_
    return Linear(coef, float(centre + b[-1] / len(X) - scaler.mean_ @ coef))


def lasso(G: np.ndarray, b: np.ndarray, lam: float, sweeps: int = 2000) -> np.ndarray:
    """argmin ½xᵀGx − bᵀx + λ‖x‖₁ by coordinate descent; columns without entries stay at zero."""
    x, rest = np.zeros(b.size), b.copy()
    for _ in range(sweeps):
        moved = 0.0
        for k in np.flatnonzero(np.diag(G) > 0.0):
            at = rest[k] + G[k, k] * x[k]
            new = np.sign(at) * max(abs(at) - lam, 0.0) / G[k, k]
            if new != x[k]:
                rest -= (new - x[k]) * G[:, k]
                moved = max(moved, abs(new - x[k]) * np.sqrt(G[k, k]))
                x[k] = new
        if moved <= 1e-6 * np.linalg.norm(b) / np.sqrt(np.trace(G)):
            break
    return x
