"""What exact arithmetic at the privacy boundary costs."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

import privasso as pv
from bench.timing import best_times
from privasso.fit import FitOptions, plan_fit
from privasso.queries import rounded_gaussian

TITLE = "The exact privacy boundary, 100000 rows × 500 columns"
NOTE = (
    "A release in memory with the exact mechanism against floating-point products and NumPy's "
    "normal numbers, which are not private: their low-order bits give labels away. A whole fit in "
    "floats is the exact one with the other release in its place. Target: at most 1.2 × for "
    "the whole fit, and a million draws of integer noise in 2 s."
)


def _in_floats(X, means, y, bounds, root):
    """Products of centred columns with noise, as they would be in floating point."""
    labels = np.clip(y, *bounds) - 0.5 * (bounds[0] + bounds[1])
    rng = np.random.default_rng()
    return X.T @ labels - means * labels.sum() - root @ rng.standard_normal(len(root))


def run() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100_000, 500)) * np.exp(rng.normal(0.0, 1.0, 500))
    X = np.asfortranarray(X)  # as a file of columns is read
    y = np.clip(X[:, :5] @ np.ones(5) / 5, -3, 3)
    warnings.simplefilter("ignore", pv.PrivacyWarning)  # the labels are simulated
    options = FitOptions(pv.LabelDP(1.0, 1e-6, (-3, 3), mechanism="release"), lam=2000.0)
    plan = plan_fit(X, options)

    def fit():
        plan_fit(X, options).release(y).solve()

    def release():
        plan.release(y)

    def floats():
        _in_floats(X, means, y, (-3, 3), root)

    means, root = X.mean(axis=0), np.eye(X.shape[1])
    times = best_times({"fit": fit, "release": release, "floats": floats}, repeat=3)
    times["fit, floats"] = times["fit"] - times["release"] + times["floats"]
    times["release, floats"] = times["floats"]
    draws = best_times({"draws": lambda: rounded_gaussian(2.0**54, 10**6)})["draws"]
    rows = [
        {"what": what, "exact, s": times[name], "floats, s": times[f"{name}, floats"],
         "ratio": times[name] / times[f"{name}, floats"]}
        for what, name in (("whole fit", "fit"), ("release alone", "release"))
    ]  # fmt: skip
    rows.append({"what": "10⁶ draws of noise", "exact, s": draws, "floats, s": None, "ratio": None})
    return pl.DataFrame(rows)
