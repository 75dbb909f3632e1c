"""diffprivlib's `LogisticRegression`, with its defaults.

Holohan, Braghin, Mac Aonghusa, Levacher (2019), Diffprivlib: the IBM differential privacy library,
after the objective perturbation of Chaudhuri, Monteleoni, Sarwate (2011). It protects whole records
and is ε-private without δ. The columns are in the unit of their public bounds, rows of norm at most
√N.

Version 0.6.6 does not work with scikit-learn 1.9; with 1.7 it does.
"""

from __future__ import annotations

import warnings

import numpy as np

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
    from diffprivlib.models import LogisticRegression

    low, high = column_bounds.T
    unit = 2.0 * (np.clip(X, low, high) - low) / (high - low) - 1.0
    model = LogisticRegression(
        epsilon=epsilon,
        data_norm=float(np.sqrt(X.shape[1])) * (1.0 + 1e-9),
        random_state=int(rng.integers(2**31 - 1)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(unit, y.astype(int))
    coef = np.ravel(model.coef_) * 2.0 / (high - low)
    intercept = float(np.ravel(model.intercept_)[0]) - float(coef @ (0.5 * (low + high)))
    return Linear(coef, intercept, bounds=column_bounds)
