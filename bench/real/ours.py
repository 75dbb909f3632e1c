"""privasso as a user gets it, through its public names alone."""

from __future__ import annotations

import warnings
from typing import Literal

import numpy as np

import privasso as pv
from bench.real.split import Split

#: λ of the oracle, relative to the one chosen.
_LAMS = np.geomspace(1e3, 1e-2, 41)
#: Seconds after which the plain LASSO chooses among the λ that it has solved.
_TIME_LIMIT = 20.0


def fitted(
    split: Split, mechanism: Literal["auto", "release"] = "auto", **settings: object
) -> pv.PrivateLasso:
    """A fit with a seed; the warnings about fitting the same labels again are expected."""
    privacy = pv.LabelDP(split.epsilon, split.delta, split.y_bounds, mechanism)
    estimator = pv.PrivateLasso(privacy=privacy, random_state=split.seed)
    estimator.set_params(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(split.X, split.y)


def default_and_best(split: Split) -> dict[str, np.ndarray]:
    """The default fit, and the λ of a release of all columns that predicts the test rows best."""
    estimator = fitted(split)
    chosen = estimator.predict(split.X_test)
    if hasattr(estimator, "screened_"):
        estimator = fitted(split, screen="all")
    path = estimator.path(split.X, estimator.lam_ * _LAMS)
    found = [chosen, *(split.X_test @ path.coef + path.intercept).T]
    errors = [float(np.sum((split.y_test - each) ** 2)) for each in found]
    return {"privasso": chosen, "privasso, best λ": found[int(np.nanargmin(errors))]}


def released(split: Split) -> dict[str, np.ndarray]:
    """The same from noisy products of covariates and labels, with noise of the best covariance."""
    return {"release of Fᵀy": fitted(split, "release").predict(split.X_test)}


def diagonal(split: Split) -> dict[str, np.ndarray]:
    """The plain LASSO with noise that is independent from column to column, of variance ∝ √v."""
    estimator = fitted(split, noise="power:0.5", denoise=False, time_limit=_TIME_LIMIT)
    return {"diagonal noise": estimator.predict(split.X_test)}


def records(split: Split) -> dict[str, np.ndarray]:
    """The default fit for whole records, from the bounds of the columns alone."""
    privacy = pv.RecordDP(
        split.epsilon, split.delta, bounds=split.declared, y_bounds=split.y_bounds
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator = pv.PrivateLasso(privacy=privacy, random_state=split.seed)
        return {"privasso": estimator.fit(split.X, split.y).predict(split.X_test)}


def binary_labels(split: Split) -> dict[str, np.ndarray]:
    """Log odds of the default fit for labels of two classes."""
    privacy = pv.LabelDP(split.epsilon, split.delta, (0.0, 1.0))
    return {"privasso, labels": _log_odds(privacy, split)}


def binary_records(split: Split) -> dict[str, np.ndarray]:
    """Log odds of the default fit for whole records with labels of two classes."""
    privacy = pv.RecordDP(split.epsilon, split.delta, bounds=split.declared, y_bounds=(0.0, 1.0))
    return {"privasso, records": _log_odds(privacy, split)}


def _log_odds(privacy: pv.LabelDP | pv.RecordDP, split: Split) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        estimator = pv.PrivateLogisticLasso(privacy=privacy, random_state=split.seed)
        return estimator.fit(split.X, split.y).decision_function(split.X_test)
