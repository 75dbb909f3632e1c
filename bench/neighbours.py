"""R² of fits of labels and of whole records under both kinds of neighbours, on real tables.

``python -m bench.neighbours --write`` renews docs/data/neighbours-real.csv. All fits have default
settings; splits are those of `bench.real`. Tables come from the dependency group `real`.
"""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl

import privasso as pv
from bench.page import renew
from bench.real.cells import Cell, split
from bench.real.tables import chosen
from bench.real.task import r_squared

EPSILON, SPLITS = 1.0, 10
NEIGHBOURS = ("emptied", "replaced")


def real() -> pl.DataFrame:
    """Mean R² of every table, and the standard error of what labels are ahead of records."""
    found = []
    for name in chosen("regression", ["all"]):
        cell = Cell("labels", name, "", None, EPSILON)
        scores = np.array([_scores(cell, number) for number in range(SPLITS)])
        means = scores.mean(axis=0)
        row: dict[str, object] = {"table": name}
        row["rows × columns"] = "{} × {}".format(*split(cell, 0).X.shape)
        for k, relation in enumerate(NEIGHBOURS):
            labels, records = scores[:, k], scores[:, 2 + k]
            row[f"labels, {relation}"] = means[k]
            row[f"records, {relation}"] = means[2 + k]
            row[f"standard error, {relation}"] = float(np.std(labels - records) / SPLITS**0.5)
        found.append(row)
        print(row, flush=True)
    return pl.DataFrame(found)


def _scores(cell: Cell, number: int) -> list[float]:
    data = split(cell, number)
    kinds = [
        pv.LabelDP(data.epsilon, data.delta, data.y_bounds, neighbours=relation)
        for relation in NEIGHBOURS
    ] + [
        pv.RecordDP(
            data.epsilon, data.delta, data.declared, y_bounds=data.y_bounds, neighbours=relation
        )
        for relation in NEIGHBOURS
    ]
    found = []
    for privacy in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = pv.PrivateLasso(privacy=privacy, random_state=data.seed).fit(data.X, data.y)
        found.append(r_squared(data.y_test, fit.predict(data.X_test)))
    return found


if __name__ == "__main__":
    renew("python -m bench.neighbours", __doc__, {"real": real}, "neighbours")
