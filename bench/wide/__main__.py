"""Private sparse fits of wide tables of records: R² on new rows, and its prediction.

``python -m bench.wide --write`` renews the tables of `docs/wide.md`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from bench.page import renew
from bench.wide.data import Y_BOUNDS, wide
from bench.wide.peers import PEERS
from privasso.privacy import ScreeningPrior, direct_r2, usual_screening

PAGE = Path(__file__).parent.parent.parent / "docs" / "wide.md"
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
    """R² of each method, the mean over some tables, at the best and the median of its settings."""
    found = []
    for kind, m, n, epsilon in CELLS:
        scores: dict[str, dict[tuple[float, ...], list[float]]] = {name: {} for name in PEERS}
        for seed in range(REPEATS):
            table = wide(kind, m, n, seed)
            for k, (name, peer) in enumerate(PEERS.items()):
                rng = np.random.default_rng([seed, k])
                for setting, r2 in peer(table, epsilon, DELTA, rng).items():
                    scores[name].setdefault(setting, []).append(r2)
        best = {name: _best(of) for name, of in scores.items()}
        found.append(
            {"columns": kind, "rows × columns": f"{m:,} × {n:,}", "ε": f"{epsilon:g}", **best}
        )
        print(found[-1], flush=True)
    return pl.DataFrame(found)


def _best(scores: dict[tuple[float, ...], list[float]]) -> str:
    """The best mean over the settings, and in brackets the median one where there are several."""
    means = [float(np.mean(x)) for x in scores.values()]
    best = f"{max(means):.2f}"
    return best if len(means) == 1 else f"{best} ({np.median(means):.2f})"


def map_() -> pl.DataFrame:
    """Predicted R² over rows, columns, true columns and ε, of a best possible 0.7."""
    found = []
    width = Y_BOUNDS[1] - Y_BOUNDS[0]
    for epsilon in (1.0, 3.0):
        for m in (500, 1000, 2000, 5000, 20_000):
            row: dict[str, str] = {"ε": f"{epsilon:g}", "rows": f"{m:,}"}
            for n, true in ((1000, 3), (1000, 10), (1000, 30), (100_000, 3), (100_000, 10)):
                prior = ScreeningPrior(true, 0.7, 1.0 / width, 1.0 / 3.0)
                settings = usual_screening(epsilon, DELTA, m, n)
                r2 = direct_r2(prior, epsilon, DELTA, m, n)
                if settings is not None:
                    r2 = settings.r2(prior, m, n)
                row[f"{true} of {n:,}"] = f"{max(r2, 0.0):.2f}"
            found.append(row)
    return pl.DataFrame(found)


if __name__ == "__main__":
    renew("python -m bench.wide", __doc__, {"peers": peers, "map": map_}, PAGE)
