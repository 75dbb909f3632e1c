"""The data of the examples, split into rows for fitting and rows for testing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privasso._validation import generator
from privasso.scales import LogNormal

#: Bounds of the labels, which are scores of disease progression: round numbers that contain any
#: such score, not the extremes of the data.
DIABETES_BOUNDS = (0.0, 350.0)
_TEST_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Split:
    """Rows for fitting, rows for testing, and the bounds of the labels."""

    X: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    X_test: np.ndarray = field(repr=False)
    y_test: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]


def diabetes_columns(degree: int = 2) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns and labels of scikit-learn's diabetes data in their own units.

    With degree 1 these are the ten measurements. With degree 2 they also include the squares and
    products of the measurements minus their means; without this, a product would be nearly
    collinear with its factors. The square of `sex` is left out: `sex` takes two values, so its
    square is a linear function of it.
    """
    from sklearn.datasets import load_diabetes

    bunch: Any = load_diabetes(scaled=False)
    names: list[str] = bunch.feature_names
    target: np.ndarray = bunch.target
    columns: dict[str, np.ndarray] = dict(zip(names, bunch.data.T, strict=True))
    if degree == 1:
        return columns, target
    middle = {name: column - column.mean() for name, column in columns.items()}
    for i, first in enumerate(names):
        for second in names[i:]:
            if (first, second) != ("sex", "sex"):
                name = f"{first}^2" if first == second else f"{first}*{second}"
                columns[name] = middle[first] * middle[second]
    return columns, target


def diabetes_splits(
    count: int, degree: int = 2, *, rng: int | np.random.Generator | None = None
) -> Iterator[Split]:
    """Yield random splits of the diabetes data, with a quarter of the rows for testing."""
    rng = generator(rng)
    columns, y = diabetes_columns(degree)
    X = np.stack(list(columns.values()), axis=1)
    for _ in range(count):
        order = rng.permutation(y.size)
        cut = round((1.0 - _TEST_SHARE) * y.size) - 1
        fit, test = order[:cut], order[cut:]
        yield Split(X[fit], y[fit], X[test], y[test], DIABETES_BOUNDS)


def simulated_splits(
    n_rows: int = 20_000, n_features: int = 200, rng: int | np.random.Generator | None = None
) -> Iterator[Split]:
    """Yield one large simulated split with scales over orders of magnitude.

    One coefficient in ten is nonzero. The covariates explain about 70 % of the variance of the
    labels. The bounds are at plus and minus four standard deviations of the labels.
    """
    rng = generator(rng)
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
    yield Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], (-bound, bound))
