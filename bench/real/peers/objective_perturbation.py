"""Logistic regression with a random linear term in the objective.

Chaudhuri, Monteleoni, Sarwate (2011), Differentially private empirical risk minimization,
Algorithm 2. For rows of norm at most 1 it minimises the mean logistic loss plus (Λ/2)‖w‖² + bᵀw/M,
where b has a density proportional to exp(−ε'‖b‖/2) and ε' = ε − 2 log(1 + c/(MΛ)), c = 1/4; where
ε' would not be positive, Λ is raised until ε' = ε/2. It protects whole records, neighbours being
tables of which one record is replaced, and is ε-private without δ. This is also the mechanism of
diffprivlib's `LogisticRegression`.

Setting: Λ = 1/M, the default of scikit-learn and of diffprivlib. The column of ones is one of the
columns, so the intercept is penalised, as the proof requires.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from bench.real.peers.bounded import scaled, unscaled
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds

_CURVATURE = 0.25


def budget(epsilon: float, rows: int, ridge: float) -> tuple[float, float]:
    """ε' of the noise, and Λ, raised where it must be."""
    left = epsilon - 2.0 * np.log1p(_CURVATURE / (rows * ridge))
    if left > 0.0:
        return float(left), ridge
    return 0.5 * epsilon, float(_CURVATURE / (rows * np.expm1(epsilon / 4.0)))


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
    F, sign = scaled(X, y, column_bounds, (0.0, 1.0))
    rows, d = F.shape
    left, ridge = budget(epsilon, rows, 1.0 / rows)
    # A density proportional to exp(−ε'‖b‖/2) has a uniform direction and a gamma norm.
    direction = rng.standard_normal(d)
    b = rng.gamma(d, 2.0 / left) * direction / np.linalg.norm(direction)

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (F @ w)
        value = np.logaddexp(0.0, -margin).mean() + 0.5 * ridge * (w @ w) + (b @ w) / rows
        slope = -(F.T @ (sign * expit(-margin))) / rows + ridge * w + b / rows
        return float(value), slope

    found = minimize(
        objective, np.zeros(d), jac=True, method="L-BFGS-B", options={"maxiter": 5000, "gtol": 1e-9}
    )
    odds = unscaled(found.x, column_bounds, (-1.0, 1.0))
    return Linear(odds.coef, odds.intercept, bounds=column_bounds)
