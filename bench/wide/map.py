"""Where a private sparse fit works: R² over rows, columns, true columns and ε."""

from __future__ import annotations

import numpy as np
import polars as pl

from bench.wide import ours
from bench.wide.data import Y_BOUNDS, wide
from bench.wide.problem import Problem
from privasso.privacy import ScreeningPrior, direct_r2, usual_screening

DELTA, REPEATS = 1e-6, 2
#: Columns, and how many of them have coefficients.
COLUMNS = ((1000, 3), (1000, 10), (1000, 30), (20_000, 3), (20_000, 10))
#: More entries are predicted only.
_MOST = 2_000_000


def map_() -> pl.DataFrame:
    """Predicted R² of a best possible 0.7, and in brackets the measured one where there is one."""
    found = []
    for epsilon in (1.0, 3.0):
        for m in (500, 1000, 2000, 5000, 20_000):
            row: dict[str, str] = {"ε": f"{epsilon:g}", "rows": f"{m:,}"}
            for n, true in COLUMNS:
                r2 = max(predicted(epsilon, m, n, true), 0.0)
                row[f"{true} of {n:,}"] = f"{r2:.2f}"
                if m * n <= _MOST:
                    row[f"{true} of {n:,}"] += f" ({measured(epsilon, m, n, true):.2f})"
            found.append(row)
            print(row, flush=True)
    return pl.DataFrame(found)


def predicted(epsilon: float, m: int, n: int, true: int) -> float:
    """R² that is predicted for ``screen="auto"``."""
    prior = ScreeningPrior(true, 0.7, 1.0 / (Y_BOUNDS[1] - Y_BOUNDS[0]), 1.0 / 3.0)
    settings = usual_screening(epsilon, DELTA, m, n)
    if settings is None:
        return direct_r2(prior, epsilon, DELTA, m, n)
    return settings.r2(prior, m, n)


def measured(epsilon: float, m: int, n: int, true: int) -> float:
    """Mean R² over some tables; below zero counts as zero, as in the prediction."""
    scores = []
    for seed in range(REPEATS):
        problem = Problem.simulated(wide("independent", m, n, seed, true=true), epsilon, DELTA)
        scores.append(max(ours.screened(problem, np.random.default_rng([seed, m])), 0.0))
    return float(np.mean(scores))
