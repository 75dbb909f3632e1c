"""Private sparse fits of wide tables: R² on new rows, its prediction, and the cost of the choice.

``python -m bench.wide real --write`` renews the comparison on real tables in `docs/data`;
``peers``, ``map``, ``cost`` and ``prototype`` renew the other tables.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from bench.page import renew
from bench.wide import cost, map, ours, prototype, real
from bench.wide.data import wide
from bench.wide.peers import PUBLISHED, RECORDS, Setting
from bench.wide.problem import Problem

DELTA, REPEATS = 1e-6, 3
#: Kind of columns, rows, columns, ε.
CELLS = (
    ("independent", 2000, 2000, 1.0),
    ("independent", 5000, 2000, 1.0),
    ("independent", 1000, 2000, 3.0),
    ("AR 0.5", 5000, 1000, 1.0),
    ("AR 0.9", 5000, 1000, 1.0),
    ("blocks", 5000, 1000, 1.0),
    ("blocks", 5000, 1000, 3.0),
)


def peers() -> pl.DataFrame:
    """R² of each method, the mean over some tables: published setting, and best of the grid."""
    found = []
    for kind, m, n, epsilon in CELLS:
        scores: dict[str, dict[Setting, list[float]]] = {}
        for seed in range(REPEATS):
            problem = Problem.simulated(wide(kind, m, n, seed), epsilon, DELTA)
            given = ours.known_columns(problem, np.random.default_rng([seed, 0]))
            own = ours.screened(problem, np.random.default_rng([seed, 1]))
            scores.setdefault("true columns given", {}).setdefault(PUBLISHED, []).append(given)
            scores.setdefault(real.OURS, {}).setdefault(PUBLISHED, []).append(own)
            for k, (name, peer) in enumerate(RECORDS.items()):
                for setting, r2 in peer(problem, np.random.default_rng([seed, 2 + k])).items():
                    scores.setdefault(name, {}).setdefault(setting, []).append(r2)
        row = {"columns": kind, "rows × columns": f"{m:,} × {n:,}", "ε": f"{epsilon:g}"}
        found.append({**row, **{name: _both(of) for name, of in scores.items()}})
        print(found[-1], flush=True)
    return pl.DataFrame(found)


def _both(scores: dict[Setting, list[float]]) -> str:
    """The mean of the published setting, and in brackets the best mean where there is a grid."""
    means = {setting: float(np.mean(x)) for setting, x in scores.items()}
    text = f"{means[PUBLISHED]:.2f}"
    return text if len(means) == 1 else f"{text} ({max(means.values()):.2f})"


def records() -> pl.DataFrame:
    """Real tables with private records; measures first what is missing."""
    real.run(("records",))
    return real.table("records")


def labels() -> pl.DataFrame:
    """Real tables with private labels."""
    real.run(("labels",))
    return real.table("labels")


if __name__ == "__main__":
    tables = {
        "real-summary": real.summary,
        "real-records": records,
        "real-labels": labels,
        "peers": peers,
        "map-1": partial(map.table, 1.0),
        "map-3": partial(map.table, 3.0),
        "cost": cost.table,
        "prototype": prototype.table,
    }
    together = {"real": tuple(tables)[2::-1], "map": ("map-1", "map-3")}
    renew("python -m bench.wide", __doc__, tables, "wide", together)
