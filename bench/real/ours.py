"""privasso as a user gets it, through its public names alone."""

from __future__ import annotations

import warnings

import numpy as np

import privasso as pv
from bench.real.split import Split

#: λ of the oracle, relative to the largest product of a centred column with the labels. At the
#: upper end no coefficient is left.
_LAMS = np.geomspace(1e3, 1e-4, 57)


def fitted(split: Split, noise: str | None = None) -> pv.PrivateLasso:
    """A fit with a seed; the warnings about fitting the same labels again are expected."""
    privacy = pv.LabelDP(split.epsilon, split.delta, y_bounds=split.y_bounds)
    estimator = pv.PrivateLasso(lam="auto", privacy=privacy, random_state=split.seed)
    if noise is not None:
        estimator.set_params(noise=noise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return estimator.fit(split.X, split.y)


def default_and_best(split: Split) -> dict[str, np.ndarray]:
    """The default fit, and the λ of the same release that predicts the test rows best."""
    estimator = fitted(split)
    chosen = estimator.predict(split.X_test)
    found = [chosen]
    centred = split.X - split.X.mean(axis=0)
    unit = float(np.abs(centred.T @ (split.y - split.y.mean())).max())
    for lam in unit * _LAMS:
        path = estimator.path(split.X, [lam])
        if not np.isfinite(path.coef).all():
            break  # below the least λ that has a minimiser
        found.append(split.X_test @ path.coef[:, 0] + path.intercept[0])
    errors = [float(np.sum((split.y_test - each) ** 2)) for each in found]
    return {"privasso": chosen, "privasso, best λ": found[int(np.argmin(errors))]}


def diagonal(split: Split) -> dict[str, np.ndarray]:
    """Noise that is independent from column to column, of variance ∝ √v."""
    return {"diagonal noise": fitted(split, "power:0.5").predict(split.X_test)}
