"""The page of a comparison, in Markdown, and the same in JSON."""

from __future__ import annotations

import json
import math

import numpy as np

from bench.real.cells import DELTA, TRAINING
from bench.real.summary import (
    CLOSE,
    Mean,
    Row,
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


def markdown(task: Task, found: list[Row], splits: int, command: str, left_out: list[str]) -> str:
    """The whole page: how it was made, the summary, every row, and the tables."""
    parts = [
        f"# {task.title}: real tables",
        _method(task, found, splits, command),
        *(f"Not run: {reason}." for reason in left_out),
        "## Summary",
        *_summary(task, found),
        "## All results",
        _results(task, found),
        *_second(task, found),
        "## Tables",
        _tables(found),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def document(task: Task, found: list[Row], splits: int) -> str:
    """All scores by split, in JSON."""
    body = [
        {"table": r.table, "form": r.form, "epsilon": r.epsilon, "scores": r.scores} for r in found
    ]
    head = {"task": task.name, "score": task.measure, "delta": DELTA, "splits": splits}
    return json.dumps({**head, "rows": body}, indent=1, ensure_ascii=False) + "\n"


def _method(task: Task, found: list[Row], splits: int, command: str) -> str:
    forms = {row.form for row in found}
    form = (
        " Columns are raw (as recorded) or standardised (on the training rows); methods that "
        "standardise or scale the columns themselves have the same result in both."
        if len(forms) > 1
        else ""
    )
    return (
        f"Numbers are the mean of the {task.measure} over {splits} random splits into "
        f"{TRAINING:.0%} training and {1 - TRAINING:.0%} test rows, ± one standard error; δ = "
        f"{DELTA:g}. All methods have the same splits and the same public bounds, and "
        f"{task.tuned}. Settings are the defaults of each package or the rule of each paper. "
        f"“Best λ” looks at the test rows: it shows what the choice of λ costs, and nobody "
        f"can have it.{form}\n\nMade by `{command}`; the seeds are fixed."
    )


def _summary(task: Task, found: list[Row]) -> list[str]:
    pairs = duels(task, found)
    owns = {own for own, _ in pairs}
    if not owns & set(columns(found)):
        return [f"`{task.own}` is not among the methods of this table yet."]
    first = f"{task.own} against" if not task.duels else "method against"
    lines = [
        "A win or a loss is a mean difference over the splits of more than one standard error.",
        f"| {first} | wins | ties | losses | median difference | least |\n" + "|---" * 6 + "|",
    ]
    for own, rival in pairs:
        n, gaps = counts(found, own, rival), margins(found, own, rival)
        name = f"{own}, against {rival}" if task.duels else rival
        lines[-1] += (
            f"\n| {name} | {n['win']} | {n['tie']} | {n['loss']} | "
            f"{_number(float(np.median(gaps)))} | {_number(float(gaps[0]))} |"
        )
    if any(task.oracle in row.scores for row in found):
        share = close_share(found, task.own, task.oracle)
        lines.append(
            f"In {share:.0%} of the rows the default is within {CLOSE} of the best λ of its own "
            "release."
        )
    if any(task.before in row.scores for row in found):
        gaps = margins(found, task.own, task.before)
        quarter, half, three = np.quantile(gaps, [0.25, 0.5, 0.75])
        lines.append(
            f"Difference to {task.before} over the rows: median {_number(half)}, quartiles "
            f"{_number(quarter)} and {_number(three)}, mean {_number(float(gaps.mean()))}."
        )
    return lines


def _results(task: Task, found: list[Row]) -> str:
    names, several = columns(found), len({row.form for row in found}) > 1
    pairs = duels(task, found)
    own = any(one in row.scores for row in found for one, _ in pairs)
    head = ["table", *(["form"] if several else []), "ε", *names, *(["loses to"] if own else [])]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in found:
        cells = [row.table, *([row.form] if several else []), f"{row.epsilon:g}"]
        cells += [_cell(row.mean(name)) if name in row.scores else "" for name in names]
        if own:
            both = [(a, b) for a, b in pairs if {a, b} <= row.scores.keys()]
            cells.append(", ".join(b for a, b in both if row.verdict(a, b) == "loss"))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _second(task: Task, found: list[Row]) -> list[str]:
    """The second measure of all methods."""
    if task.second is None:
        return []
    title, names = task.second[0], columns(found)
    head = ["table", "ε", *names]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in found:
        cells = [_cell(mean_of(row.second[n])) if n in row.second else "" for n in names]
        lines.append("| " + " | ".join([row.table, f"{row.epsilon:g}", *cells]) + " |")
    return [f"## {title[0].upper()}{title[1:]}", "Smaller is better.", "\n".join(lines)]


def _tables(found: list[Row]) -> str:
    lines = ["| table | rows × columns | outcome | bounds | source |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(row.table for row in found):
        table = load(name)
        m, n = table.X.shape
        low, high = table.y_bounds
        lines.append(
            f"| {name} | {m} × {n} | {table.outcome} | {low:g} to {high:g} | {table.source} |"
        )
    return "\n".join(lines)


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
