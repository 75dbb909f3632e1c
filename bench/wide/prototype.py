"""The first version of the choice, and ``screen="auto"`` with nothing set, on the same tables."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from bench.wide import ours
from bench.wide.data import wide
from bench.wide.map import predicted
from bench.wide.problem import Problem
from privasso.planning import usual_screening

DELTA, EPSILON, TABLES = 1e-6, 1.0, 5
#: Rows, columns, and how many of them have coefficients.
SIZES = (
    (2000, 2000, 10),
    (5000, 2000, 10),
    (5000, 2000, 30),
    (20_000, 5000, 10),
    (20_000, 5000, 100),
    (5000, 10_000, 10),
)
#: Settings of the first version: number of columns, part of ε for the choice, and where labels are
#: clipped around the middle of their bounds, as a part of their range.
COUNT, SHARE, CLIP = 10, 0.6, 0.25


def first_version(problem: Problem, rng: np.random.Generator) -> float:
    """R² on the test rows of a fit of ten columns, the budget added up.

    The columns have the largest |Σ f ỹ| + (2b/ε₀)G, f in units of half the range of a column, G a
    Gumbel number, and ε₀ the same for each of the ten choices. A fit with the rest of ε follows.
    """
    low, high = problem.y_bounds
    b = CLIP * (high - low)
    labels = np.clip(problem.y - 0.5 * (low + high), -b, b)
    least, most = problem.column_bounds
    # Columns in units of half their range, from the middle of their bounds.
    sums = (problem.X.T @ labels - 0.5 * (least + most) * labels.sum()) / (0.5 * (most - least))
    each = SHARE * problem.epsilon / COUNT
    noisy = np.abs(sums) + rng.gumbel(scale=2.0 * b / each, size=sums.size)
    columns = np.sort(np.argpartition(noisy, -COUNT)[-COUNT:])
    return ours.fitted(problem, columns, (1.0 - SHARE) * problem.epsilon, None, rng)


def table() -> pl.DataFrame:
    """R² on new rows for records at ε = 1, of a best possible 0.7, over some tables."""
    found = []
    for m, n, true_columns in SIZES:
        scores = np.empty((TABLES, 4))
        for seed in range(TABLES):
            simulated = wide("independent", m, n, seed, true=true_columns)
            problem = Problem.simulated(simulated, EPSILON, DELTA)
            scores[seed] = (
                first_version(problem, np.random.default_rng([seed, 2])),
                ours.screened(problem, np.random.default_rng([seed, 1])),
                ours.known_columns(problem, np.random.default_rng([seed, 0])),
                simulated.true_r2(),
            )
            print(m, n, true_columns, seed, scores[seed].round(3).tolist(), flush=True)
        settings = usual_screening(EPSILON, DELTA, m, n)
        first, own, given, true = scores.mean(axis=0)
        ahead = scores[:, 1] - scores[:, 0]
        error = float(np.std(ahead, ddof=1)) / math.sqrt(TABLES)
        found.append(
            {
                "rows × columns": f"{m:,} × {n:,}",
                "true columns": f"{true_columns}",
                "columns chosen": "all" if settings is None else str(settings.columns),
                "predicted": f"{predicted(EPSILON, m, n, true_columns):.2f}",
                "first version": f"{first:.3f}",
                "**screen, then fit**": f"{own:.3f}",
                "ahead by": f"{ahead.mean():.3f} ± {error:.3f}",
                "true columns given": f"{given:.3f}",
                "true coefficients": f"{true:.3f}",
            }
        )
    return pl.DataFrame(found)
