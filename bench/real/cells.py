"""Cells of the comparison, and the files in which their scores are kept."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.preprocessing import StandardScaler

from bench.real.contenders import Contender, Split, fingerprint
from bench.real.tables import Table, load
from bench.real.task import TASKS, Task

DELTA = 1e-6
TRAINING = 0.7
#: Added to the name of a column for its second measure.
SECOND = " (second)"


@dataclass(frozen=True)
class Cell:
    """One contender on one table under one guarantee; form and ε are None where neither matters."""

    task: str
    table: str
    contender: str
    form: str | None
    epsilon: float | None

    @property
    def file(self) -> Path:
        ends = [self.contender, self.form, None if self.epsilon is None else f"{self.epsilon:g}"]
        return Path(self.task, self.table, "_".join(end for end in ends if end) + ".json")

    def find(self) -> Contender:
        """The contender itself."""
        return next(c for c in TASKS[self.task].contenders if c.name == self.contender)


@dataclass
class Scores:
    """Scores of a cell by column and split; None is a fit that failed."""

    by_column: dict[str, dict[int, float | None]] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


def cells(
    task: Task, tables: list[str], epsilons: list[float], forms: list[str], skip: set[str]
) -> list[Cell]:
    """All cells of a run."""
    found = []
    for table in tables:
        for contender in task.contenders:
            if contender.name in skip:
                continue
            for form in forms if contender.by_form else [None]:
                for epsilon in epsilons if contender.private else [None]:
                    found.append(Cell(task.name, table, contender.name, form, epsilon))
    return found


def split(cell: Cell, number: int) -> Split:
    """Training and test rows; the same for all contenders, guarantees and forms of a table.

    The seed is the same for all contenders too, so that methods that do the same tie exactly.
    """
    table = load(cell.table)
    place = np.random.default_rng([_number(cell.table), number]).permutation(table.y.size)
    middle = round(TRAINING * table.y.size)
    train, test = place[:middle], place[middle:]
    X, X_test = table.X[train], table.X[test]
    if cell.form == "standardised":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    epsilon = 0.0 if cell.epsilon is None else cell.epsilon
    words = [_number(cell.table), round(1e6 * epsilon), number]
    return Split(
        X=np.ascontiguousarray(X),
        y=table.y[train],
        X_test=np.ascontiguousarray(X_test),
        y_test=table.y[test],
        y_bounds=table.y_bounds,
        column_bounds=table.column_bounds,
        epsilon=epsilon,
        delta=DELTA,
        seed=int(np.random.SeedSequence(words).generate_state(1)[0]),
        indicators=table.indicators,
    )


def read(folder: Path, cell: Cell) -> Scores:
    """What is kept of a cell; nothing if its method or its table has changed since."""
    try:
        text = (folder / cell.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return Scores()
    kept = json.loads(text)
    if kept["made_from"] != _made_from(cell):
        return Scores()

    def numbered(by_split: dict) -> dict:
        return {int(number): value for number, value in by_split.items()}

    return Scores(
        {column: numbered(by_split) for column, by_split in kept["scores"].items()},
        numbered(kept["seconds"]),
        numbered(kept["failures"]),
    )


def write(folder: Path, cell: Cell, scores: Scores) -> None:
    """Keep the scores of a cell; an interruption leaves the file as it was or as it will be."""
    path = folder / cell.file
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "made_from": _made_from(cell),
        "scores": scores.by_column,
        "seconds": scores.seconds,
        "failures": scores.failures,
    }
    partly = path.with_suffix(".part")
    partly.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
    os.replace(partly, path)


def _made_from(cell: Cell) -> dict[str, object]:
    table: Table = load(cell.table)
    return {
        "method": fingerprint(cell.find()),
        "table": table.digest,
        "delta": DELTA,
        "training": TRAINING,
    }


def _number(text: str) -> int:
    return zlib.crc32(text.encode())
