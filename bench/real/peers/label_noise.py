"""Noise on every label, then scikit-learn's `LassoCV`.

The Gaussian mechanism on the vector of labels, whose sensitivity under a change of one label is the
width of the bounds (Dwork and Roth 2014, section 3.5.1; calibrated as in Balle and Wang 2018). What
follows, the choice of λ by 5-fold cross-validation included, is post-processing and free. The
columns are standardised, as the documentation of scikit-learn advises.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.real.peers.gaussian import mu_for, release
from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds


def lasso_cv(X: np.ndarray, y: np.ndarray) -> Linear:
    """`LassoCV` with its defaults on standardised columns; the fit without privacy."""
    model = make_pipeline(StandardScaler(), LassoCV())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    scaler, lasso = model[0], model[-1]
    coef = lasso.coef_ / scaler.scale_
    return Linear(coef, float(lasso.intercept_ - scaler.mean_ @ coef))


def noisy_labels(
    y: np.ndarray, epsilon: float, delta: float, y_bounds: Bounds, rng: np.random.Generator
) -> np.ndarray:
    """Clipped labels with noise of standard deviation (high − low)/μ(ε, δ)."""
    return release(np.clip(y, *y_bounds), y_bounds[1] - y_bounds[0], mu_for(epsilon, delta), rng)


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
    return lasso_cv(X, noisy_labels(y, epsilon, delta, y_bounds, rng))
