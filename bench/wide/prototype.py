"""The four tables of the prototype again: what ``screen="auto"`` reaches with nothing set."""

from __future__ import annotations

import numpy as np
import polars as pl

from bench.wide import ours
from bench.wide.data import wide
from bench.wide.map import predicted
from bench.wide.problem import Problem
from privasso.privacy import usual_screening

DELTA, EPSILON, TABLES, TRUE = 1e-6, 1.0, 5, 10
#: Rows, columns, and the R² of the prototype.
SIZES = ((2000, 2000, 0.33), (5000, 2000, 0.70), (20_000, 5000, 0.71), (5000, 10_000, 0.70))


def table() -> pl.DataFrame:
    """R² on new rows for records at ε = 1, of a best possible 0.7, over some tables."""
    found = []
    for m, n, before in SIZES:
        scores, given = [], []
        for seed in range(TABLES):
            problem = Problem.simulated(wide("independent", m, n, seed), EPSILON, DELTA)
            scores.append(ours.screened(problem, np.random.default_rng([seed, 1])))
            given.append(ours.known_columns(problem, np.random.default_rng([seed, 0])))
            print(m, n, seed, f"{scores[-1]:.3f} of {given[-1]:.3f}", flush=True)
        settings = usual_screening(EPSILON, DELTA, m, n)
        chosen = "all" if settings is None else str(settings.columns)
        found.append(
            {
                "rows × columns": f"{m:,} × {n:,}",
                "columns chosen": chosen,
                "prototype": f"{before:.2f}",
                "predicted": f"{predicted(EPSILON, m, n, TRUE):.2f}",
                "**screen, then fit**": f"{np.mean(scores):.3f}",
                "least": f"{min(scores):.3f}",
                "true columns given": f"{np.mean(given):.3f}",
            }
        )
    return pl.DataFrame(found)
