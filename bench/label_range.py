"""Fits that find the range of the labels, beside fits with bounds that are known or far too wide.

``python -m bench.label_range`` writes ``docs/data/label-range.csv``: the mean R² on held-out rows
of the tables of ``pip install --group real``, for whole records and for labels alone, and the least
of all splits with private bounds. Wide ones are ten times as wide, with the known in their middle.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import polars as pl

import privasso as pv
from bench.page import write
from bench.real.cells import Cell, split
from bench.real.split import Split
from bench.real.tables import available, load
from bench.real.task import r_squared

SPLITS, EPSILON, WIDER, FEW = 10, 1.0, 10.0, 2000


def bounds_of(data: Split) -> dict[str, object]:
    """Bounds of the labels by name."""
    low, high = data.y_bounds
    middle, reach = 0.5 * (low + high), 0.5 * WIDER * (high - low)
    return {
        "known": (low, high),
        "ten times as wide": (middle - reach, middle + reach),
        "private": "private",
    }


def scores(kind: str, data: Split) -> list[float]:
    """R² with each, with the same seed."""
    found = []
    for bounds in bounds_of(data).values():
        privacy = (
            pv.LabelDP(data.epsilon, data.delta, y_bounds=bounds)
            if kind == "labels"
            else pv.RecordDP(data.epsilon, data.delta, bounds=data.declared, y_bounds=bounds)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = pv.PrivateLasso(privacy=privacy, random_state=data.seed).fit(data.X, data.y)
        found.append(r_squared(data.y_test, fit.predict(data.X_test)))
    return found


def lines() -> Iterator[dict[str, object]]:
    """One for each table and kind."""
    for name in available("regression"):
        rows, columns = load(name).X.shape
        for kind in ("records", "labels"):
            drawn = [split(Cell(kind, name, "privasso", None, EPSILON), k) for k in range(SPLITS)]
            found = np.array([scores(kind, one) for one in drawn])
            lost = found[:, 0] - found[:, 2]
            mean = dict(zip(bounds_of(drawn[0]), found.mean(axis=0).tolist(), strict=True))
            error = float(lost.std(ddof=1) / np.sqrt(SPLITS))
            line = {"table": name, "kind": kind, "rows": rows, "columns": columns, **mean}
            print(name, kind, rows, columns, *(f"{x:.3f}" for x in mean.values()), flush=True)
            yield {**line, "standard error": error, "worst split": float(found[:, 2].min())}


def facts(table: pl.DataFrame) -> Iterator[dict[str, object]]:
    """What the lines say together, by the number of rows."""
    few = pl.col("rows") < FEW
    for kind in ("records", "labels"):
        for size, chosen in ((f"fewer than {FEW} rows", few), (f"{FEW} rows and more", ~few)):
            some = table.filter(chosen, kind=kind)
            wide, private = (
                some["known"] - some[name] for name in ("ten times as wide", "private")
            )
            for fact, value in (
                ("tables", some.height),
                ("median loss", round(float(np.median(private)), 3) + 0.0),
                ("largest loss", round(float(private.to_numpy().max()), 2)),
                ("median loss, wide", round(float(np.median(wide)), 3)),
                ("worst split", round(float(some["worst split"].to_numpy().min()), 2)),
            ):
                yield {"kind": kind, "size": size, "fact": fact, "value": value}


def main() -> None:
    """Write all lines, and what they say together."""
    table = pl.DataFrame(list(lines()))
    write("label-range", table, "python -m bench.label_range", digits=3)
    write("label-range-facts", pl.DataFrame(list(facts(table))), "python -m bench.label_range")


if __name__ == "__main__":
    main()
