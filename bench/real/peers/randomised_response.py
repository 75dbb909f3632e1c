"""Randomised response on every label, then scikit-learn's `LogisticRegressionCV`.

Warner (1965), Randomized response: a survey technique for eliminating evasive answer bias. A label
of 0 or 1 is flipped with probability 1/(1 + e^ε), which is ε-private without δ; the cross-validated
fit to the flipped labels is post-processing. A probability p̃ of a flipped label is one of
(p̃ − q)/(1 − 2q) of the label itself, q the probability of a flip, which is cut to [0.01, 0.99].
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.real.peers.linear import Linear
from bench.real.tables.table import Bounds


def logistic_cv(X: np.ndarray, y: np.ndarray) -> Linear:
    """`LogisticRegressionCV` with its defaults on standardised columns: log odds."""
    if np.ptp(y) == 0.0:
        return Linear(np.zeros(X.shape[1]), 0.0)
    model = make_pipeline(StandardScaler(), LogisticRegressionCV(max_iter=1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y.astype(int))
    scaler, last = model[0], model[-1]
    coef = np.ravel(last.coef_) / scaler.scale_
    return Linear(coef, float(np.ravel(last.intercept_)[0] - scaler.mean_ @ coef))


@dataclass(frozen=True, eq=False)
class Unflipped(Linear):
    """Log odds of labels from those of flipped labels."""

    flip: float = 0.0

    def predict(self, X: np.ndarray) -> np.ndarray:
        odds = super().predict(X)
        p = (expit(odds) - self.flip) / (1.0 - 2.0 * self.flip)
        # What is cut off keeps its order.
        return logit(np.clip(p, 0.01, 0.99)) + 1e-6 * odds


def flipped(y: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Labels of 0 and 1, each flipped with probability 1/(1 + e^ε)."""
    return np.where(rng.random(y.size) < expit(-epsilon), 1.0 - y, y)


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
    found = logistic_cv(X, flipped(y, epsilon, rng))
    return Unflipped(found.coef, found.intercept, flip=float(expit(-epsilon)))
