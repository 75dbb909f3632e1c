"""The tables of a comparison that the documentation takes, and all scores in JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl

from bench.real.cells import DELTA
from bench.real.summary import (
    CLOSE,
    Mean,
    Row,
    better,
    close_share,
    columns,
    counts,
    duels,
    margins,
    mean_of,
)
from bench.real.tables import load
from bench.real.task import Task

_LOWEST = -10.0
#: A fit keeps most of what a fit without privacy explains if it keeps this share of its R².
MOST = 0.8
_WITHOUT = "no privacy"


def tables(task: Task, found: list[Row], splits: int) -> dict[str, pl.DataFrame]:
    """Each table by the end of the name of its file."""
    made = {
        "": results(task, found),
        "-summary": summary(task, found),
        "-facts": facts(task, found, splits),
        "-tables": sources(found),
    }
    if task.second is not None:
        made["-" + task.second[0].replace(" ", "-")] = second(found)
    return made


def document(task: Task, found: list[Row], splits: int) -> str:
    """All scores by split, in JSON."""
    body = [
        {"table": r.table, "form": r.form, "epsilon": r.epsilon, "scores": r.scores} for r in found
    ]
    head = {"task": task.name, "score": task.measure, "delta": DELTA, "splits": splits}
    return json.dumps({**head, "rows": body}, indent=1, ensure_ascii=False) + "\n"


def results(task: Task, found: list[Row]) -> pl.DataFrame:
    """The score of every method in every row, with standard errors, and whom ours loses to."""
    names, several = columns(found), len({row.form for row in found}) > 1
    pairs = duels(task, found)
    own = any(one in row.scores for row in found for one, _ in pairs)
    lines = []
    for row in found:
        line = {"table": row.table, **({"form": row.form} if several else {})}
        line["ε"] = f"{row.epsilon:g}"
        line |= {n: _cell(row.mean(n)) if n in row.scores else "" for n in names}
        if own:
            both = [(a, b) for a, b in pairs if {a, b} <= row.scores.keys()]
            line["loses to"] = ", ".join(b for a, b in both if row.verdict(a, b) == "loss")
        lines.append(line)
    return pl.DataFrame(lines)


def summary(task: Task, found: list[Row]) -> pl.DataFrame:
    """Wins and losses against each rival, which counts in the better of its forms."""
    lines = []
    for own, rival in duels(task, found):
        cells = better(found, rival)
        if own in columns(cells):
            n, gaps = counts(cells, own, rival), margins(cells, own, rival)
            line = {"method": own, "against": rival}
            line |= {"wins": str(n["win"]), "ties": str(n["tie"]), "losses": str(n["loss"])}
            line["median difference"] = _number(float(np.median(gaps)))
            lines.append({**line, "least": _number(float(gaps[0]))})
    return pl.DataFrame(lines)


def facts(task: Task, found: list[Row], splits: int) -> pl.DataFrame:
    """What the pages say of all rows together, as numbers."""
    cells = better(found, _WITHOUT)
    said = {"splits": splits, "tables": len({row.table for row in cells}), "cells": len(cells)}
    if task.own in columns(cells) and task.kind == "regression":
        for epsilon in dict.fromkeys(row.epsilon for row in cells):
            shares = [
                row.mean(task.own).mean / row.mean(_WITHOUT).mean
                for row in cells
                if row.epsilon == epsilon
            ]
            most = sum(share >= MOST for share in shares)
            said[f"tables that keep {MOST:.0%} at ε = {epsilon:g}"] = most
            said[f"median share kept at ε = {epsilon:g}, %"] = round(100 * float(np.median(shares)))
    if any(task.oracle in row.scores for row in cells):
        share = close_share(cells, task.own, task.oracle)
        said[f"default within {CLOSE} of the best λ, % of cells"] = round(100 * share)
    return pl.DataFrame({"fact": list(said), "value": [str(value) for value in said.values()]})


def second(found: list[Row]) -> pl.DataFrame:
    """The second measure of all methods."""
    names = columns(found)
    return pl.DataFrame(
        {
            "table": row.table,
            "ε": f"{row.epsilon:g}",
            **{n: _cell(mean_of(row.second[n])) if n in row.second else "" for n in names},
        }
        for row in found
    )


def sources(found: list[Row]) -> pl.DataFrame:
    """Size, outcome, bounds and origin of each table."""
    lines = []
    for name in dict.fromkeys(row.table for row in found):
        table = load(name)
        m, n = table.X.shape
        low, high = table.y_bounds
        line = {"table": name, "rows × columns": f"{m} × {n}", "outcome": table.outcome}
        lines.append({**line, "bounds": f"{low:g} to {high:g}", "source": table.source})
    return pl.DataFrame(lines)


def _cell(value: Mean) -> str:
    if math.isnan(value.mean):
        return "failed"
    failed = f" ({value.failed} failed)" if value.failed else ""
    if value.mean < _LOWEST:
        return f"< {_number(_LOWEST)}{failed}"
    if value.mean > -_LOWEST:  # a log loss
        return f"> {_number(-_LOWEST)}{failed}"
    error = "" if math.isnan(value.error) else f" ± {value.error:.2f}"
    return f"{_number(value.mean)}{error}{failed}"


def _number(value: float) -> str:
    """Two digits after the point, with a minus sign; nothing below −10 is told apart."""
    if value < _LOWEST:
        return f"< {_number(_LOWEST)}"
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")
