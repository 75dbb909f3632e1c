"""Where a private sparse fit works: R² over rows, columns, true columns, strength and ε."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from bench.wide import ours
from bench.wide.data import Y_BOUNDS, wide
from bench.wide.problem import Problem
from privasso.planning import ScreeningPrior, direct_r2, usual_screening

PICTURE = Path(__file__).parent.parent.parent / "docs" / "images" / "wide-map.png"
DELTA = 1e-6
EPSILONS = (1.0, 3.0)
#: Best possible R²: the part of the variance of the labels that the true columns explain together.
STRENGTHS = (0.2, 0.5, 0.7, 0.9)
ROWS = (500, 1000, 2000, 5000, 20_000)
#: Columns, and how many of them have coefficients.
COLUMNS = ((1000, 3), (1000, 10), (1000, 30), (20_000, 3), (20_000, 10))
#: Tables by their number of entries; larger ones are predicted only.
_TABLES = ((2_000_000, 5), (10_000_000, 3), (40_000_000, 1))
#: Panels of the picture.
_PANELS = ((1000, 10), (20_000, 10))


@dataclass(frozen=True)
class Place:
    """A table of the map, but for ε."""

    rows: int
    columns: int
    true: int
    explained: float


def table(epsilon: float) -> pl.DataFrame:
    """R² that is predicted, and in brackets what was measured where there are tables.

    With the last ε the picture is drawn, too.
    """
    found = []
    for explained in STRENGTHS:
        for m in ROWS:
            row: dict[str, str] = {"best possible R²": f"{explained:g}", "rows": f"{m:,}"}
            for n, true in COLUMNS:
                place = Place(m, n, true, explained)
                scores = measured(place)[epsilon]
                seen = f" ({_two(float(np.mean(scores)))})" if scores else ""
                r2 = predicted(epsilon, m, n, true, explained)
                row[f"{true} of {n:,}"] = f"{_two(r2)}{seen}"
            found.append(row)
    if epsilon == EPSILONS[-1]:
        draw()
    return pl.DataFrame(found)


def _two(r2: float) -> str:
    """Two digits, without the sign of a zero."""
    return f"{r2:.2f}".replace("-0.00", "0.00")


def predicted(epsilon: float, m: int, n: int, true: int, explained: float = 0.7) -> float:
    """R² that is predicted for ``screen="auto"``."""
    prior = ScreeningPrior(true, explained, 1.0 / (Y_BOUNDS[1] - Y_BOUNDS[0]), 1.0 / 3.0)
    settings = usual_screening(epsilon, DELTA, m, n)
    if settings is None:
        return direct_r2(prior, epsilon, DELTA, m, n)
    return settings.r2(prior, m, n)


@cache
def measured(place: Place) -> dict[float, list[float]]:
    """R² on new rows of each table, by ε; nothing for large tables."""
    m, n = place.rows, place.columns
    tables = next((count for most, count in _TABLES if m * n <= most), 0)
    found: dict[float, list[float]] = {epsilon: [] for epsilon in EPSILONS}
    for seed in range(tables):
        # No two tables of the map have the same rows or the same noise.
        words = [seed, m, n, place.true, round(100 * place.explained)]
        rng = np.random.default_rng(words)
        drawn = int(rng.integers(2**31))
        table = wide("independent", m, n, drawn, true=place.true, explained=place.explained)
        for epsilon in EPSILONS:
            found[epsilon].append(ours.screened(Problem.simulated(table, epsilon, DELTA), rng))
    print(place, {e: _two(float(np.mean(x))) for e, x in found.items() if x}, flush=True)
    return found


def draw() -> None:
    """Predicted R² against the rows as lines, and measured means as points."""
    from privasso.figures import BLUE, GREEN, GREY, ORANGE, PINK, figure, save

    sheet = figure(10.0, 6.4)
    panels = sheet.subplots(2, 2, sharex=True, sharey=True)
    rows = np.unique(np.geomspace(ROWS[0], ROWS[-1], 25).round(-1).astype(int)).tolist()
    for line, epsilon in zip(panels, EPSILONS, strict=True):
        for axes, (n, true) in zip(line, _PANELS, strict=True):
            colours = (PINK, GREEN, BLUE, ORANGE)
            for explained, colour in zip(STRENGTHS, colours, strict=True):
                curve = [predicted(epsilon, m, n, true, explained) for m in rows]
                axes.plot(rows, curve, color=colour, label=f"best possible R² {explained:g}")
                axes.axhline(explained, color=colour, linewidth=0.6, linestyle=":")
                for m in ROWS:
                    scores = measured(Place(m, n, true, explained))[epsilon]
                    if scores:
                        error = np.std(scores) / math.sqrt(len(scores))
                        axes.errorbar(m, np.mean(scores), error, fmt="o", color=colour, ms=4)
            axes.set_xscale("log")
            axes.set_xticks(ROWS, [f"{m:,}" for m in ROWS])
            axes.minorticks_off()
            axes.axhline(0.0, color=GREY, linewidth=0.5)
            axes.set_title(f"{true} of {n:,} columns, ε = {epsilon:g}", fontsize=10, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel("R² on new rows")
    for axes in panels[1]:
        axes.set_xlabel("rows")
    panels[0, 0].legend(frameon=False, fontsize=8, loc="lower right", ncols=2)
    save(sheet, PICTURE)
