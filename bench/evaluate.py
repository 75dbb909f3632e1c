"""How often the intervals of `pv.evaluate` hold, on populations that are known completely.

``python -m bench.evaluate --write`` renews docs/data/evaluate-*.csv, which takes half an hour. Rows
are drawn from a table with replacement, so that the table is the population: its R², mean absolute
error and so on are known, and so is the share of its rows that a prediction interval holds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

import privasso as pv
from bench.page import DATA, renew

EPSILONS, ROWS, KINDS, DELTA = (1.0, 3.0), (500, 5000), ("labels", "records"), 1e-6
LINEAR = ("r2", "mae", "rmse", "calibration")
CLASSES = ("auc", "log-loss", "accuracy", "calibration")
WITHIN = "prediction-interval"
#: Draws of rows and noise, of each interval and of each prediction interval.
REPETITIONS, DRAWS = 1000, 40
#: Rows of simulated populations.
_MANY = 200_000


@dataclass(frozen=True, eq=False)
class Population:
    """All rows, bounds of the labels, and a public model that was not fitted on these rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    y_bounds: tuple[float, float]
    model: Any

    def privacy(self, kind: str, epsilon: float) -> pv.LabelDP | pv.RecordDP:
        """Labels alone, or whole records."""
        if kind == "labels":
            return pv.LabelDP(epsilon, DELTA, y_bounds=self.y_bounds)
        bounds = np.stack([self.X.min(axis=0), self.X.max(axis=0)], axis=1)
        return pv.RecordDP(epsilon, DELTA, bounds=bounds, y_bounds=self.y_bounds)

    @property
    def predictions(self) -> np.ndarray:
        """Within the bounds, as labels are."""
        return np.clip(self.X @ self.model.coef_.ravel() + self.model.intercept_, *self.y_bounds)

    def truth(self) -> dict[str, float]:
        """The metrics of the population, by other code than that of the package."""
        y = np.clip(self.y, *self.y_bounds)
        if isinstance(self.model, LogisticRegression):
            p = self.model.predict_proba(self.X)[:, 1]
            odds = np.log(p / (1.0 - p))
            level = 0.0
            for _ in range(50):
                q = expit(odds + level)
                level += float(np.sum(y - q) / np.sum(q * (1.0 - q)))
            again = LogisticRegression(C=1e12, tol=1e-10).fit(odds[:, None], y)
            return {
                "auc": float(roc_auc_score(y, p)),
                "log-loss": float(-np.mean(np.log(np.where(y == 1.0, p, 1.0 - p)))),
                "accuracy": float(np.mean((p > 0.5) == (y == 1.0))),
                "calibration intercept": level,
                "calibration slope": float(again.coef_[0, 0]),
            }
        p = self.predictions
        return {
            "r2": 1.0 - float(np.mean((y - p) ** 2) / np.var(y)),
            "mae": float(np.mean(np.abs(y - p))),
            "rmse": float(np.sqrt(np.mean((y - p) ** 2))),
            "calibration intercept": float(np.mean(y - p)),
            "calibration slope": float(np.polyfit(p, y, 1)[0]),
        }

    def drawn(self, rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows with replacement."""
        at = rng.integers(0, len(self.y), n_rows)
        return self.X[at], self.y[at]

    def evaluated(
        self, kind: str, epsilon: float, n_rows: int, seed: int, metrics: tuple[str, ...]
    ) -> pv.evaluation.Evaluation:
        """One evaluation of rows that are drawn for it."""
        X, y = self.drawn(np.random.default_rng([seed, n_rows]), n_rows)
        privacy = self.privacy(kind, epsilon)
        return pv.evaluate(self.model, X, y, privacy=privacy, metrics=metrics, random_state=seed)


def of_table(name: str, X: np.ndarray, y: np.ndarray, y_bounds: tuple[float, float]) -> Population:
    """The rows that a ridge regression was not fitted on: two thirds."""
    order = np.random.default_rng(0).permutation(len(y))
    few, rest = order[: len(y) // 3], order[len(y) // 3 :]
    scale = X.std(axis=0) + 1e-9
    model = Ridge(1.0).fit(X[few] / scale, y[few])
    return Population(name, X[rest] / scale, y[rest], y_bounds, model)


def skewed(name: str, rows: int = _MANY, *, spread: float = 1.0, seed: int = 0) -> Population:
    """Lognormal residuals whose spread grows with a covariate, and a rare level."""
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(size=(rows, 4)), rng.uniform(size=rows) < 0.02]
    noise = 0.12 * (0.3 + X[:, 0]) * (rng.lognormal(0.0, spread, rows) - np.exp(spread**2 / 2))
    y = X @ [0.5, 0.3, 0.0, -0.2, 0.3] + noise
    model = LinearRegression().fit(X[:2000], y[:2000])
    return Population(name, X, y, (-0.5, 2.0), model)


def two_classes(rows: int = _MANY) -> Population:
    """A quarter positive; the model was fitted on few rows, so that its slope is off."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(rows, 5))
    y = (rng.uniform(size=rows) < expit(X @ [3.0, -2.0, 1.0, 0.0, 0.0] - 2.3)).astype(float)
    return Population("two classes", X, y, (0.0, 1.0), LogisticRegression().fit(X[:400], y[:400]))


def numbers(bunch: Any) -> tuple[np.ndarray, np.ndarray]:
    """Covariates and outcome of a table of scikit-learn."""
    return bunch.data, bunch.target.astype(np.float64)


def tables() -> Iterator[Population]:
    """Ten populations for prediction intervals: those of scikit-learn, and skewed ones."""
    X, y = numbers(load_diabetes(scaled=False))
    yield of_table("diabetes: progression", X, y, (0.0, 400.0))
    yield of_table("diabetes: glucose", X[:, :9], X[:, 9], (40.0, 200.0))
    X, y = numbers(load_digits())
    yield of_table("digits: digit", X, y, (-1.0, 10.0))
    ink = X.sum(axis=1)
    yield of_table("digits: ink", X[:, 4::8], ink, (0.0, 600.0))
    X, y = numbers(load_wine())
    yield of_table("wine: alcohol", X[:, 1:], X[:, 0], (10.0, 16.0))
    X, y = numbers(load_breast_cancer())
    yield of_table("tumours: area", X[:, 4:10], X[:, 3], (0.0, 3000.0))
    yield of_table("tumours: worst texture", X[:, :10], X[:, 21], (0.0, 60.0))
    yield skewed("lognormal")
    yield skewed("lognormal, long tail", spread=1.5, seed=2)
    yield skewed("nearly normal", spread=0.2, seed=3)


def intervals() -> pl.DataFrame:
    """How often the intervals of each metric hold that of the population."""
    lines = []
    for population, metrics in ((skewed("lognormal"), LINEAR), (two_classes(), CLASSES)):
        truth = population.truth()
        for kind, epsilon, rows in product(KINDS, EPSILONS, ROWS):
            ends = {name: [] for name in truth}
            for seed in range(REPETITIONS):
                one = population.evaluated(kind, epsilon, rows, seed, metrics)
                for name, pair in one.intervals.items():
                    ends[name].append((one.values[name], *pair))
            for name, found in ends.items():
                value, low, high = np.array(found).T
                held = (low <= truth[name]) & (truth[name] <= high)
                line = _line(population, kind, epsilon, rows)
                line |= {"metric": name, "truth": truth[name], "repetitions": REPETITIONS}
                line |= {"covered": float(held.mean())}
                line |= {"median length": float(np.median(high - low))}
                # Noise that hides a metric leaves no value.
                middle = None if np.isnan(np.median(value)) else float(np.median(value))
                lines.append({**line, "median value": middle})
    return pl.DataFrame(lines)


def predictions() -> pl.DataFrame:
    """Which share of a population prediction intervals of 90 % hold, on average over draws."""
    lines = []
    for population in tables():
        y = np.clip(population.y, *population.y_bounds)
        distances = np.sort(np.abs(y - population.predictions))
        for kind, epsilon, rows in product(KINDS, EPSILONS, ROWS):
            radii = np.array(
                [
                    population.evaluated(kind, epsilon, rows, seed, (WITHIN,)).values[WITHIN]
                    for seed in range(DRAWS)
                ]
            )
            inside = np.searchsorted(distances, radii * (1.0 + 1e-12), side="right")
            line = _line(population, kind, epsilon, rows)
            line |= {"truth": float(np.quantile(distances, 0.9))}
            line |= {"covered": float(np.mean(inside)) / len(distances)}
            lines.append({**line, "median distance": float(np.median(radii))})
    return pl.DataFrame(lines)


def _line(population: Population, kind: str, epsilon: float, rows: int) -> dict[str, object]:
    name = population.name
    return {"population": name, "private": kind, "epsilon": f"{epsilon:g}", "rows": rows}


def facts() -> pl.DataFrame:
    """The numbers of the page, from the tables that were written."""
    one = pl.read_csv(DATA / "evaluate-intervals.csv")
    two = pl.read_csv(DATA / "evaluate-predictions.csv")
    inside = {rows: 100.0 * two.filter(pl.col("rows") == rows)["covered"] for rows in ROWS}
    numbers: dict[str, Any] = {
        "least share of intervals": 100.0 * float(one["covered"].to_numpy().min()),
        "median share of intervals": 100.0 * float(np.median(one["covered"].to_numpy())),
    }
    for rows, shares in inside.items():
        numbers[f"least inside, {rows} rows"] = shares.min()
        numbers[f"most inside, {rows} rows"] = shares.max()
    lines = [{"fact": fact, "value": f"{value:.1f}"} for fact, value in numbers.items()]
    return pl.DataFrame(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    made = {"intervals": intervals, "predictions": predictions, "facts": facts}
    renew("python -m bench.evaluate", __doc__, made, "evaluate")
