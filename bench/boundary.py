"""What exact arithmetic at the privacy boundary costs."""

from __future__ import annotations

import warnings
from unittest.mock import patch

import numpy as np
import polars as pl

import privasso as pv
from bench.timing import best_times
from privasso.fit import FitOptions, plan_fit
from privasso.programs import Release
from privasso.queries import Query, rounded_gaussian

TITLE = "The exact privacy boundary, 100000 rows × 500 columns"
NOTE = (
    "A fit in memory with the exact mechanism against the same fit with floating-point products "
    "and NumPy's normal numbers, which are not private: their low-order bits give labels away. "
    "Target: at most 1.2 × for the whole fit, and a million draws of integer noise in 2 s."
)


class _InFloats(Query[Release]):
    """The mechanism as it would be in floating point."""

    def __init__(self, rows, bounds, calibration):
        self.given = rows, bounds, calibration

    def run(self, rows, bits):
        return _float_release(rows.labels, *self.given)

    loss = sentence = log_likelihoods = None  # pyright: ignore[reportAssignmentType]


def _float_program(self, rows, calibration):
    return lambda ask: ask(_InFloats(rows, self.y_bounds, calibration))


def _float_release(y, rows, bounds, calibration):
    labels = np.clip(y, *bounds) - 0.5 * (bounds[0] + bounds[1])
    rng = np.random.default_rng()
    b = rows.rmatvec(labels)
    b[rows.live] -= calibration.covariance.draw(rng)
    return Release(
        b=b,
        covariance=calibration.covariance.embedded(rows.live),
        n_rows=rows.shape[0],
        centre=0.5 * (bounds[0] + bounds[1]),
        label_sum=float(labels.sum() - calibration.sigma_sum * rng.standard_normal()),
        sigma_sum=calibration.sigma_sum,
        mu=calibration.mu,
    )


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

    def in_floats(step):
        def timed():
            with patch.object(pv.LabelDP, "program", _float_program):
                step()

        return timed

    def release():
        plan.release(y)

    times = best_times(
        {"fit": fit, "fit, floats": in_floats(fit), "release": release,
         "release, floats": in_floats(release)},
        repeat=3,
    )  # fmt: skip
    draws = best_times({"draws": lambda: rounded_gaussian(2.0**54, 10**6)})["draws"]
    rows = [
        {"what": what, "exact, s": times[name], "floats, s": times[f"{name}, floats"],
         "ratio": times[name] / times[f"{name}, floats"]}
        for what, name in (("whole fit", "fit"), ("release alone", "release"))
    ]  # fmt: skip
    rows.append({"what": "10⁶ draws of noise", "exact, s": draws, "floats, s": None, "ratio": None})
    return pl.DataFrame(rows)
