"""diffprivlib's `LinearRegression`, with its defaults.

Holohan, Braghin, Mac Aonghusa, Levacher (2019), Diffprivlib: the IBM differential privacy library,
after the functional mechanism of Zhang, Zhang, Xiao, Yang, Winslett (2012). It is ε-private without
δ, which is a stronger guarantee than that of the others at the same ε.

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
    from diffprivlib.models import LinearRegression

    low, high = column_bounds.T
    unit = 2.0 * (np.clip(X, low, high) - low) / (high - low) - 1.0
    ones = np.ones(X.shape[1])
    model = LinearRegression(
        epsilon=epsilon,
        bounds_X=(-ones, ones),
        bounds_y=y_bounds,
        random_state=int(rng.integers(2**31 - 1)),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(unit, np.clip(y, *y_bounds))
    coef = np.ravel(model.coef_) * 2.0 / (high - low)
    intercept = float(np.ravel(model.intercept_)[0]) - float(coef @ (0.5 * (low + high)))
    return Linear(coef, intercept, bounds=column_bounds)
