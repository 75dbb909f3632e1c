"""From scores by split to means, standard errors, wins and losses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from bench.real.cells import SECOND, Cell, Scores
from bench.real.task import Task

#: A default this close to the best λ of its own release counts as well chosen.
CLOSE = 0.05


@dataclass(frozen=True)
class Mean:
    """Mean over the splits that could be fitted, its standard error, and how many could not."""

    mean: float
    error: float
    failed: int


@dataclass
class Row:
    """One table in one form under one guarantee: scores by column, then by split."""

    table: str
    form: str
    epsilon: float
    scores: dict[str, Mapping[int, float | None]] = field(default_factory=dict)
    second: dict[str, Mapping[int, float | None]] = field(default_factory=dict)

    def mean(self, column: str) -> Mean:
        return mean_of(self.scores[column])

    def difference(self, one: str, other: str) -> Mean:
        """Mean of the differences by split, and its standard error."""
        pairs = [(self.scores[one][k], self.scores[other].get(k)) for k in self.scores[one]]
        gaps = [a - b for a, b in pairs if a is not None and b is not None]
        return mean_of(dict(enumerate(gaps)))

    def verdict(self, one: str, other: str) -> str:
        """ "win" or "loss" where the mean difference exceeds one standard error, else "tie"."""
        found = self.difference(one, other)
        if not abs(found.mean) > found.error:
            return "tie"
        return "win" if found.mean > 0.0 else "loss"


def mean_of(by_split: Mapping[int, float | None]) -> Mean:
    """Mean over splits."""
    values = list(by_split.values())
    kept = np.array([value for value in values if value is not None])
    if kept.size == 0:
        return Mean(math.nan, math.nan, len(values))
    error = float(kept.std(ddof=1) / math.sqrt(kept.size)) if kept.size > 1 else math.nan
    return Mean(float(kept.mean()), error, len(values) - kept.size)


def rows(
    found: dict[Cell, Scores], epsilons: list[float], forms: list[str], splits: int
) -> list[Row]:
    """The rows of the table; what depends on neither form nor guarantee is in all of them."""
    tables = list(dict.fromkeys(cell.table for cell in found))
    result = []
    for table in tables:
        for form in forms:
            for epsilon in epsilons:
                row = Row(table, form, epsilon)
                for cell, scores in found.items():
                    here = cell.form in (None, form) and cell.epsilon in (None, epsilon)
                    if cell.table == table and here:
                        _add(row, cell.find().columns, scores, splits)
                result.append(row)
    return result


def _add(row: Row, columns: tuple[str, ...], scores: Scores, splits: int) -> None:
    """Add the columns of a cell; a split that failed is None in each of them."""
    for column in columns:
        by_split = scores.by_column.get(column, {})
        row.scores[column] = {k: by_split.get(k) for k in range(splits)}
        if column + SECOND in scores.by_column:
            other = scores.by_column[column + SECOND]
            row.second[column] = {k: other.get(k) for k in range(splits)}


def columns(found: Iterable[Row]) -> list[str]:
    """All columns, in the order in which they first appear."""
    return list(dict.fromkeys(column for row in found for column in row.scores))


def rivals(task: Task, found: list[Row]) -> list[str]:
    """The private methods other than the one under test and its oracle."""
    apart = {task.own, task.oracle, "no privacy"}
    return [column for column in columns(found) if column not in apart]


def duels(task: Task, found: list[Row]) -> list[tuple[str, str]]:
    """Own columns, each with a rival that protects the same."""
    names = columns(found)
    if task.duels:
        return [(own, rival) for own, rival in task.duels if {own, rival} <= set(names)]
    return [(task.own, rival) for rival in rivals(task, found)]


def counts(found: list[Row], own: str, rival: str) -> dict[str, int]:
    """Numbers of wins, ties and losses of `own`."""
    total = {"win": 0, "tie": 0, "loss": 0}
    for row in found:
        if own in row.scores and rival in row.scores:
            total[row.verdict(own, rival)] += 1
    return total


def close_share(found: list[Row], own: str, oracle: str) -> float:
    """Share of rows whose default is within `CLOSE` of the best λ of its own release."""
    near = [row.difference(oracle, own).mean <= CLOSE for row in found if oracle in row.scores]
    return float(np.mean(near)) if near else math.nan


def margins(found: list[Row], own: str, before: str) -> np.ndarray:
    """Mean differences by row between the method under test and another, sorted."""
    both = [row for row in found if own in row.scores and before in row.scores]
    return np.sort([row.difference(own, before).mean for row in both])


def better(found: list[Row], rival: str) -> list[Row]:
    """Of the forms of each table under each guarantee, the one in which the rival is better."""
    best: dict[tuple[str, float], Row] = {}
    for row in found:
        cell = row.table, row.epsilon
        if cell not in best or _score(row, rival) > _score(best[cell], rival):
            best[cell] = row
    return list(best.values())


def _score(row: Row, column: str) -> float:
    found = row.mean(column).mean if column in row.scores else math.nan
    return -math.inf if math.isnan(found) else found
