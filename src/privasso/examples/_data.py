"""The data of the examples, split into rows for fitting and rows for testing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso._validation import generator
from privasso.scales import LogNormal

#: Bounds of the labels, which are scores of disease progression, and of the columns: round numbers
#: that contain nearly all people, not the extremes of the data.
DIABETES_BOUNDS = (0.0, 350.0)
DIABETES_RANGES = {
    "age": (18, 90),
    "sex": (1, 2),
    "bmi": (15, 50),
    "bp": (60, 140),
    "s1": (90, 310),
    "s2": (40, 250),
    "s3": (20, 100),
    "s4": (2, 10),
    "s5": (3, 7),
    "s6": (50, 130),
}
_TEST_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Split:
    """Rows for fitting, rows for testing, and the bounds of labels and columns."""

    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    X_test: np.ndarray = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    column_bounds: np.ndarray = field(repr=False)


def diabetes_columns() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns and labels of scikit-learn's diabetes data in their own units."""
    from sklearn.datasets import load_diabetes

    bunch: Any = load_diabetes(scaled=False)
    return dict(zip(bunch.feature_names, bunch.data.T, strict=True)), bunch.target


def diabetes_splits(count: int, *, rng: int | np.random.Generator | None = None) -> Iterator[Split]:
    """Yield random splits of the diabetes data, with a quarter of the rows for testing."""
    rng = generator(rng)
    columns, y = diabetes_columns()
    X = np.stack(list(columns.values()), axis=1)
    bounds = np.array([DIABETES_RANGES[name] for name in columns], dtype=np.float64)
    for _ in range(count):
        order = rng.permutation(y.size)
        cut = round((1.0 - _TEST_SHARE) * y.size) - 1
        fit, test = order[:cut], order[cut:]
        yield Split(X[fit], y[fit], X[test], y[test], DIABETES_BOUNDS, bounds)


def simulated_splits(
    count: int,
    n_rows: int = 20_000,
    n_features: int = 100,
    *,
    rng: int | np.random.Generator | None = None,
) -> Iterator[Split]:
    """Yield simulated splits with scales over orders of magnitude.

    One coefficient in ten is nonzero. The covariates explain about 70 % of the variance of the
    labels. Bounds are at plus and minus four standard deviations, of labels and columns.
    """
    rng = generator(rng)
    for _ in range(count):
        yield _simulated(n_rows, n_features, rng)


def _simulated(n_rows: int, n_features: int, rng: np.random.Generator) -> Split:
    law, rho = LogNormal(0.0, 1.5), 0.1
    s = law.draw(n_features, rng)
    x0 = np.zeros(n_features)
    x0[rng.permutation(n_features)[: max(1, round(rho * n_features))]] = 1.0
    x0 *= rng.standard_normal(n_features)
    signal = float(np.sum((s * x0) ** 2))
    noise = math.sqrt(0.3 / 0.7 * signal)
    total = n_rows + n_rows // 4
    X = rng.standard_normal((total, n_features)) * s
    y = X @ x0 + noise * rng.standard_normal(total)
    bound = 4.0 * math.sqrt(signal + noise**2)
    ranges = np.stack([-4.0 * s, 4.0 * s], axis=1)
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], (-bound, bound), ranges)
