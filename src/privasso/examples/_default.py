"""The default fit, as a user gets it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from privasso.examples._data import Split
from privasso.fit import FitOptions, PrivacyWarning, plan_fit
from privasso.privacy import LabelDP

#: Values of λ that are tried on the test rows, relative to the one that the fit chooses.
_LAMS = np.geomspace(1e2, 1e-2, 18)


def default_fits(
    split: Split, privacy: LabelDP, draws: int, rng: np.random.Generator
) -> Iterator[dict[str, tuple[float, int]]]:
    """R² on new rows and non-zero coefficients of each fit, for its own λ and for the best one.

    All settings of a fit follow from X and the guarantee. They are computed once for all draws.
    """
    plan = plan_fit(split.X, FitOptions(privacy), seeded=True)
    for _ in range(draws):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyWarning)  # the labels are fitted many times
            released = plan.release(split.y, rng=rng)
        model = released.solve()
        path = released.path(model.lam * _LAMS)
        models = [(model.coef, model.intercept)]
        models += list(zip(path.coef.T, path.intercept.tolist(), strict=True))
        found = [
            (r2(split.y_test, split.X_test @ coef + intercept), int(np.count_nonzero(coef)))
            for coef, intercept in models
            if np.isfinite(intercept)
        ]
        yield {"auto": found[0], "oracle": max(found)}


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """R² of predictions."""
    return 1.0 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))
