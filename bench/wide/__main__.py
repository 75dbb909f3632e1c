"""Private sparse fits of wide tables: R² on new rows, its prediction, and the cost of the choice.

``python -m bench.wide real --write`` renews the comparison on real tables in `docs/data`;
``peers``, ``map``, ``cost``, ``prototype`` and ``choices`` renew the other tables.
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
from privasso.accounting import ChoiceLoss, gaussian_epsilon

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


def choices() -> pl.DataFrame:
    """ε at δ of ten choices of bounded range 0.1, composed in four ways."""
    count, each = 10, 0.1
    orders = 1.0 + np.geomspace(1e-2, 1e4, 20_000)
    rho = count * each**2 / 8.0
    renyi = rho * orders + np.log1p(-1.0 / orders) - (np.log(DELTA * orders)) / (orders - 1.0)
    loss = ChoiceLoss(each, count)
    found = {
        "added up": count * each,
        "concentrated differential privacy, ρ = kε₀²/8": float(renyi.min()),
        "this recursion": loss.epsilon(DELTA),
        "a Gaussian mechanism with the same variance of its loss": gaussian_epsilon(DELTA, loss.mu),
    }
    cells = [f"{x:.3g}" for x in found.values()]
    return pl.DataFrame({"ten choices, composed as": list(found), "ε": cells})


if __name__ == "__main__":
    tables = {
        "choices": choices,
        "real-summary": real.summary,
        "real-records": records,
        "real-labels": labels,
        "peers": peers,
        "map-1": partial(map.table, 1.0),
        "map-3": partial(map.table, 3.0),
        "cost": cost.table,
        "prototype": prototype.table,
    }
    together = {"real": ("real-labels", "real-records", "real-summary"), "map": ("map-1", "map-3")}
    renew("python -m bench.wide", __doc__, tables, "wide", together)
