"""What private fits predict at each ε beside a plain LASSO, on real and simulated data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from privasso._types import Foreign
from privasso._validation import generator
from privasso.estimator import PrivateLasso
from privasso.figures import BLUE, GREY, ORANGE, SKY, Figure, panels
from privasso.fit import PrivacyWarning
from privasso.privacy import LabelDP, RecordDP
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

    bunch: Foreign = load_diabetes(scaled=False)
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


RECORDS, LABELS = "privasso, private records", "privasso, private labels"
LABEL_NOISE, NO_PRIVACY = "noise on each label", "no privacy"
METHODS = (RECORDS, LABELS, LABEL_NOISE, NO_PRIVACY)


def compare_methods(
    splits: Iterable[Split],
    epsilons: Iterable[float],
    *,
    delta: float,
    rng: int | np.random.Generator | None = None,
    progress: Callable[[int], object] = lambda done: None,
) -> pl.DataFrame:
    """Fit each method once on each split at each ε; a row of the table is R² on the new rows.

    All private methods have the same ε and δ. `progress` is called with the number of fits since
    the last call.
    """
    rng = generator(rng)
    wanted, rows = list(epsilons), []
    for number, split in enumerate(splits):
        for method in METHODS:
            for epsilon in wanted if method != NO_PRIVACY else [None]:
                predicted = _predicted(method, split, epsilon or 1.0, delta, rng)
                found = {"r2": r2(split.y_test, predicted), "split": number}
                rows.append({"method": method, "epsilon": epsilon, **found})
                progress(1)
    return pl.DataFrame(rows, schema_overrides={"epsilon": pl.Float64})


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Return the median and quartiles of R² over the splits."""
    return table.group_by("method", "epsilon", maintain_order=True).agg(
        pl.col("r2").median(),
        pl.col("r2").quantile(0.25).alias("lower"),
        pl.col("r2").quantile(0.75).alias("upper"),
    )


def label_noise(privacy: LabelDP, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each label with Gaussian noise, which alone makes it (ε, δ)-private.

    A change of one label moves its noisy copy by at most the width of the bounds, which are μ
    deviations of the noise apart.
    """
    low, high = privacy.y_bounds
    return np.clip(y, low, high) + privacy.label_width / privacy.mu * rng.standard_normal(y.size)


def r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """R² of predictions."""
    return 1.0 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


def _predicted(
    method: str, split: Split, epsilon: float, delta: float, rng: np.random.Generator
) -> np.ndarray:
    """Predictions of the new rows."""
    labels = LabelDP(epsilon, delta, split.y_bounds)
    if method == NO_PRIVACY:
        return _lasso(split, split.y)
    if method == LABEL_NOISE:
        return _lasso(split, label_noise(labels, split.y, rng))
    records = RecordDP(epsilon, delta, bounds=split.column_bounds, y_bounds=split.y_bounds)
    privacy = records if method == RECORDS else labels
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)  # the same rows are fitted many times
        est = PrivateLasso(privacy=privacy, random_state=int(rng.integers(2**31)))
        return est.fit(split.X, split.y).predict(split.X_test)


def _lasso(split: Split, y: np.ndarray) -> np.ndarray:
    """Predictions of a LASSO on standardised columns, λ by cross-validation."""
    from sklearn.linear_model import LassoCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LassoCV(cv=5)).fit(split.X, y).predict(split.X_test)


LOOKS = {RECORDS: (BLUE, "o"), LABELS: (SKY, "D"), LABEL_NOISE: (ORANGE, "x")}
#: R² below this is cut off.
_LOWEST = -0.25


def comparison_figure(table: pl.DataFrame, title: str) -> Figure:
    """Draw medians over the splits with quartiles; `table` comes from `summarise`."""
    fig, (axes,) = panels(6.4, 3.8)
    for number, (method, (colour, marker)) in enumerate(LOOKS.items()):
        of = table.filter(method=method).sort("epsilon")
        spread = [of["r2"] - of["lower"], of["upper"] - of["r2"]]
        shift = 1.0 + 0.03 * (number - 1)  # so that error bars do not overlap
        axes.errorbar(
            of["epsilon"] * shift, of["r2"], spread, color=colour, marker=marker, markersize=6,
            linewidth=1.3, elinewidth=0.8, capsize=2, label=method, markerfacecolor="white",
        )  # fmt: skip
    without = table.filter(method=NO_PRIVACY)["r2"].item()
    axes.axhline(without, color=GREY, linewidth=1.0, linestyle="--", label=NO_PRIVACY)
    axes.axhline(0.0, color=GREY, linewidth=0.6)
    axes.set_xscale("log")
    at = table["epsilon"].drop_nulls().unique().sort().to_list()
    axes.set_xticks(at, [f"{epsilon:g}" for epsilon in at])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("ε")
    axes.set_ylabel("R² on new rows")
    axes.set_ylim(_LOWEST, 1.08 * max(without, 0.1))
    look = {"fontsize": 8.5, "handlelength": 1.6, "columnspacing": 1.2}
    fig.legend(loc="outside lower center", ncols=4, frameon=False, **look)
    fig.suptitle(title, fontsize=10.5, x=0.01, ha="left")
    return fig
