"""Which columns a fit keeps, beside those that matter and those that `LassoCV` keeps.

``python -m bench.selection --write`` renews docs/data/selection-*.csv, which takes an hour. In the
simulated designs it is known which coefficients are zero; of real tables it is not, so there both
kinds of disagreement with `LassoCV` on the same rows are counted. Real tables come from the
dependency group `real`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import ndtr
from sklearn.linear_model import LassoCV

import privasso as pv
from bench.page import DATA, renew
from bench.real.tables import chosen, load

EPSILON, DELTA = 1.0, 1e-6
#: Draws of rows and noise.
SAMPLES, SPLITS = 20, 10
#: Rows on which predictions are judged.
_FRESH = 20_000
#: The labels have this deviation, as a part of the range of their bounds.
_SPREAD = 0.15
#: Fewest rows of a real table, and most; of larger ones a part is drawn.
_LEAST, _MOST = 1_000, 10_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows and labels with their bounds."""

    X: np.ndarray
    y: np.ndarray
    bounds: np.ndarray
    y_bounds: tuple[float, float]

    def r2(self, coef: np.ndarray, intercept: float) -> float:
        """R² of a model on these rows."""
        return 1.0 - float(np.mean((self.y - self.X @ coef - intercept) ** 2) / np.var(self.y))


@dataclass(frozen=True)
class Design:
    """Simulated rows of uniform, autoregressive or 0/1 columns.

    Attributes
    ----------
    name : str
        In words.
    rows, columns, true : int
        Rows, columns, and columns that have an effect.
    correlation : float
        Between neighbouring columns, before these are mapped to numbers from 0 to 1.
    r2 : float
        Share of the variance of the labels that the columns explain.
    levels : bool
        Whether half of the columns are 0 or 1, with shares from 0.02 to 0.5.
    scales : float
        Deviation of the logarithm of the factors of the columns.
    """

    name: str
    rows: int
    columns: int
    true: int
    correlation: float = 0.0
    r2: float = 0.5
    levels: bool = False
    scales: float = 0.0

    def draw(self, seed: int) -> tuple[Rows, Rows, np.ndarray]:
        """Rows to fit, rows to judge predictions by, and which columns have an effect."""
        rng = np.random.default_rng([seed, self.rows, self.columns])
        factors = np.exp(self.scales * rng.standard_normal(self.columns))
        shares = rng.uniform(0.02, 0.5, self.columns) * (np.arange(self.columns) % 2)
        shares *= self.levels
        effects = np.zeros(self.columns)
        at = rng.choice(self.columns, self.true, replace=False)
        effects[at] = rng.choice([-1.0, 1.0], self.true) * rng.uniform(0.5, 1.5, self.true)
        X = self._columns(rng, self.rows + _FRESH, shares)
        effects /= np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
        signal = (X - X.mean(axis=0)) @ effects
        if self.true:
            signal *= np.sqrt(self.r2) / signal.std()
        noise = np.sqrt(1.0 - (self.r2 if self.true else 0.0)) * rng.standard_normal(len(X))
        y = np.clip(_SPREAD * (signal + noise), -0.5, 0.5)
        bounds = np.stack([np.zeros(self.columns), factors], axis=1)
        fitted, fresh = (
            Rows(X[part] * factors, y[part], bounds, (-0.5, 0.5))
            for part in (slice(self.rows), slice(self.rows, None))
        )
        return fitted, fresh, effects != 0.0

    def _columns(self, rng: np.random.Generator, m: int, shares: np.ndarray) -> np.ndarray:
        Z = rng.standard_normal((m, self.columns))
        for k in range(1, self.columns):
            a = self.correlation
            Z[:, k] = a * Z[:, k - 1] + np.sqrt(1.0 - a * a) * Z[:, k]
        U = ndtr(Z)
        return np.where(shares > 0.0, shares > U, U)


DESIGNS = (
    Design("few columns", 2_000, 10, 3),
    Design("few rows", 500, 10, 3),
    Design("independent", 2_000, 40, 5),
    Design("more rows", 20_000, 40, 5),
    Design("correlation 0.7", 20_000, 40, 5, correlation=0.7),
    Design("weak effects", 20_000, 40, 5, r2=0.1),
    Design("half of the columns 0 or 1", 20_000, 40, 5, levels=True),
    Design("scales of all sizes", 20_000, 40, 5, scales=1.5),
    Design("many columns", 20_000, 150, 8),
    Design("no effects", 5_000, 40, 0),
)
"""Ten designs."""


def fits(table: Rows, seed: int) -> Iterator[tuple[str, np.ndarray, float]]:
    """Coefficients and intercept of every method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scale = np.where(table.X.std(axis=0) > 0.0, table.X.std(axis=0), 1.0)
        plain = LassoCV(cv=5).fit(table.X / scale, table.y)
        yield "LassoCV", plain.coef_ / scale, float(plain.intercept_)
        kinds = {
            "labels": pv.LabelDP(EPSILON, DELTA, y_bounds=table.y_bounds),
            "records": pv.RecordDP(EPSILON, DELTA, bounds=table.bounds, y_bounds=table.y_bounds),
        }
        for kind, privacy in kinds.items():
            for aim in ("auto", "select", "predict"):
                est = pv.PrivateLasso(privacy=privacy, aim=aim, random_state=seed)
                est.fit(table.X, table.y)
                yield f"{kind}, {aim}", est.coef_, float(est.intercept_)


def simulated() -> pl.DataFrame:
    """False and missed columns, and R² on new rows, over all draws."""
    found = []
    for design in DESIGNS:
        for seed in range(SAMPLES):
            table, fresh, true = design.draw(seed)
            for method, coef, intercept in fits(table, seed):
                kept = coef != 0.0
                found.append(
                    {
                        "design": design.name,
                        "rows": design.rows,
                        "columns": design.columns,
                        "true": design.true,
                        "method": method,
                        "false": float(np.sum(kept & ~true)),
                        "missed": float(np.sum(~kept & true)),
                        "R²": fresh.r2(coef, intercept),
                    }
                )
        print(design.name, flush=True)
    return _means(found, ["design", "rows", "columns", "true", "method"])


def real() -> pl.DataFrame:
    """The same for nine tenths of the rows of real tables, beside `LassoCV` on these rows."""
    found = []
    for name in chosen("regression", ["all"], _LEAST):
        table = load(name)
        X, y = np.clip(table.X, *table.column_bounds.T), np.clip(table.y, *table.y_bounds)
        for seed in range(SPLITS):
            order = np.random.default_rng(seed).permutation(len(table.y))[:_MOST]
            cut = len(order) // 10
            train, test = (
                Rows(X[part], y[part], table.column_bounds, table.y_bounds)
                for part in (order[cut:], order[:cut])
            )
            plain = None
            for method, coef, intercept in fits(train, seed):
                kept = coef != 0.0
                plain = kept if plain is None else plain
                found.append(
                    {
                        "table": name,
                        "rows": len(train.y),
                        "columns": X.shape[1],
                        "method": method,
                        "kept": float(np.sum(kept)),
                        "not by LassoCV": float(np.sum(kept & ~plain)),
                        "by LassoCV alone": float(np.sum(~kept & plain)),
                        "R²": test.r2(coef, intercept),
                    }
                )
        print(name, flush=True)
    return _means(found, ["table", "rows", "columns", "method"])


def _means(found: list[dict[str, object]], keys: list[str]) -> pl.DataFrame:
    return pl.DataFrame(found).group_by(keys, maintain_order=True).mean()


def summary() -> pl.DataFrame:
    """Means over the designs and over the tables, and R² beside that of `LassoCV`."""
    names = {
        "simulated": ("design", "false", "missed"),
        "real": ("table", "not by LassoCV", "by LassoCV alone"),
    }
    found = []
    for file, (key, more, fewer) in names.items():
        table = pl.read_csv(DATA / f"selection-{file}.csv")
        plain = table.filter(pl.col("method") == "LassoCV").select(key, best="R²")
        beside = table.join(plain, on=key).with_columns(lost=pl.col("best") - pl.col("R²"))
        means = beside.group_by("method", maintain_order=True).agg(
            pl.col(more, fewer).mean().round(1),
            pl.col("lost").median().round(3).alias("R² lost, median"),
            pl.col("lost").max().round(3).alias("R² lost, most"),
        )
        found.append(
            means.rename({more: f"{file}: {more}", fewer: f"{file}: {fewer}"}).rename(
                {f"R² lost, {one}": f"{file}: R² lost, {one}" for one in ("median", "most")}
            )
        )
    return found[0].join(found[1], on="method", how="left", maintain_order="left")


if __name__ == "__main__":
    tables = {"simulated": simulated, "real": real, "summary": summary}
    renew("python -m bench.selection", __doc__, tables, "selection")
