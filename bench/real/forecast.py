"""Forecasts on real tables, from rough public knowledge, beside what fits then reach."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

import privasso as pv
from bench.real.cells import Cell, split
from bench.real.ours import fitted
from bench.real.split import Split
from bench.real.task import r_squared
from privasso.fit import FitOptions, plan_fit
from privasso.forecast import Assumptions, Scheme, Simulated

#: Explained shares that somebody may expect who knows the subject but not the labels.
_SHARES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
_RHO = 0.3


@dataclass(frozen=True, eq=False)
class Compared:
    """A forecast and the R² on held-out rows of fits on several splits."""

    table: str
    epsilon: float
    suppose: Assumptions
    forecast: Simulated
    reached: np.ndarray

    @property
    def covered(self) -> float:
        """Share of the splits in the forecast's interval."""
        low, high = self.forecast.interval
        return float(np.mean((self.reached >= low) & (self.reached <= high)))

    @property
    def too_good(self) -> float:
        """By how much the forecast's median is above that of the fits."""
        return self.forecast.median - float(np.median(self.reached))


def rough_knowledge(splits: list[Split]) -> Assumptions:
    """The nearest round numbers to what the labels show without privacy."""
    reached = []
    for one in splits:
        scaler = StandardScaler().fit(one.X)
        model = LassoCV(cv=5).fit(scaler.transform(one.X), one.y)
        reached.append(r_squared(one.y_test, model.predict(scaler.transform(one.X_test))))
    share = float(_SHARES[np.argmin(np.abs(_SHARES - np.median(reached)))])
    deviation = float(np.std(splits[0].y))
    digit = 10.0 ** math.floor(math.log10(deviation))
    return Assumptions(_RHO, share, round(deviation / digit) * digit)


def compared(
    tables: list[str], epsilons: list[float], count: int, console: Console
) -> list[Compared]:
    """One comparison for each table and ε, in that order."""
    found = []
    for table in tables:
        suppose = None
        for epsilon in epsilons:
            cell = Cell("labels", table, "privasso", "raw", epsilon)
            splits = [split(cell, number) for number in range(count)]
            suppose = suppose or rough_knowledge(splits[:3])
            privacy = pv.LabelDP(epsilon, splits[0].delta, splits[0].y_bounds)
            scheme = Scheme.of_plan(plan_fit(splits[0].X, FitOptions(privacy)))
            forecast = scheme.simulate(suppose, 120)
            reached = [r_squared(one.y_test, fitted(one).predict(one.X_test)) for one in splits]
            found.append(Compared(table, epsilon, suppose, forecast, np.array(reached)))
            console.print(f"{table}, ε = {epsilon:g}", markup=False, highlight=False)
    return found


def page(found: list[Compared], count: int) -> str:
    """A table in Markdown, and the coverage over all its lines."""
    lines = [
        f"R² on held-out rows: simulated without labels, and reached by fits on {count} splits.",
        "",
        "| table | ε | assumed R² | assumed deviation | forecast | its middle 80 % "
        "| reached (median) | from | to | inside |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for one in found:
        low, high = one.forecast.interval
        quantiles = np.quantile(one.reached, [0.5, 0.1, 0.9])
        cells = [one.table, f"{one.epsilon:g}", f"{one.suppose.r2:g}", f"{one.suppose.label_sd:g}"]
        cells += [f"{one.forecast.median:.2f}", f"{low:.2f} to {high:.2f}"]
        cells += [f"{x:.2f}" for x in quantiles] + [f"{one.covered:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    errors = np.array([one.too_good for one in found])
    lines += [
        "",
        f"Of {len(found)} forecasts × {count} splits, "
        f"{np.mean([one.covered for one in found]):.0%} are in the interval. "
        f"The median of the forecast is above that of the fits by {np.median(errors):.2f} "
        f"(median over the lines), at most {np.max(errors):.2f}, and by more than 0.1 in "
        f"{np.sum(errors > 0.1)} lines.",
    ]
    return "\n".join(lines) + "\n"
