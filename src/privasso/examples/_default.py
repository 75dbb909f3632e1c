"""The default fit, as a user gets it."""

from __future__ import annotations

import warnings

import numpy as np

from privasso.estimator import PrivateLasso
from privasso.examples._data import Split
from privasso.fit import PrivacyWarning
from privasso.privacy import LabelDP

#: Values of λ that are tried on the test rows, relative to the one that the fit chooses.
_LAMS = np.geomspace(1e2, 1e-2, 18)


def default_fit(
    split: Split, privacy: LabelDP, rng: np.random.Generator
) -> dict[str, tuple[float, int]]:
    """R² on new rows and number of non-zero coefficients, for the λ of the fit and the best one."""
    estimator = PrivateLasso(privacy=privacy, random_state=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the same labels are fitted many times
        estimator.fit(split.X, split.y)
    path = estimator.path(split.X, estimator.lam_ * _LAMS)
    models = [(estimator.coef_, estimator.intercept_)]
    models += list(zip(path.coef.T, path.intercept.tolist(), strict=True))
    found = [
        (r2(split.y_test, split.X_test @ coef + intercept), int(np.count_nonzero(coef)))
        for coef, intercept in models
        if np.isfinite(intercept)
    ]
    return {"auto": found[0], "oracle": max(found)}


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """R² of predictions."""
    return 1.0 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))
