"""Numbers and tables of the pages, from the files in `docs/data` that commands write."""

from __future__ import annotations

import csv
import re
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
Row = dict[str, str]


@cache
def table(name: str) -> list[Row]:
    """Rows of a file by the names of its columns."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def commands() -> dict[str, str]:
    """The command that writes each file."""
    return {row["file"]: row["command"] for row in table("commands")}


def rows(name: str, conditions: list[str]) -> list[Row]:
    """Rows that meet every condition: `value`, which is any cell of the row, or `column=value`."""
    found = table(name)
    for condition in conditions:
        column, equal, value = condition.partition("=")
        if equal and column in found[0]:
            found = [row for row in found if row[column] == value]
        else:
            found = [row for row in found if condition in row.values()]
        if not found:
            raise ValueError(f"no row of {name} has {condition!r} beside {conditions}")
    return found


def number(text: str) -> str:
    """One cell without its error: `file; condition; …; column`.

    >>> number("commands; file=real-records; command").split()[:4]
    ['python', '-m', 'bench.real', 'records']
    """
    name, *conditions, column = parts(text)
    found = rows(name, conditions)
    if len(found) > 1:
        raise ValueError(f"{len(found)} rows of {name} have {conditions}")
    if column not in found[0]:
        raise ValueError(f"{name} has no column {column!r}, but {', '.join(found[0])}")
    return found[0][column].split(" ±")[0]


def markdown(name: str, columns: list[str], conditions: list[str], digits: str = "") -> list[str]:
    """Lines of a table; `column => new name` renames a column.

    With `digits`, decimal numbers have so many of them after the point, and no error behind them.
    """
    found = rows(name, conditions)
    taken = [one.partition(" => ") for one in columns or list(found[0])]
    lines = [[new or old for old, _, new in taken], ["---"] * len(taken)]
    lines += [[rounded(row[old], digits) for old, _, _ in taken] for row in found]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def rounded(cell: str, digits: str) -> str:
    """A decimal number with fewer digits; other cells as they are.

    >>> rounded("−0.714 ± 0.01", "2"), rounded("0.7", ""), rounded("1,000", "2")
    ('−0.71', '0.7', '1,000')
    >>> rounded("-0.004", "2")  # a zero has no sign
    '0.00'
    """
    found = re.fullmatch(r"([<> +−-]*)(\d+\.\d+)(?: ±.*)?", cell)
    if not found or not digits:
        return cell
    number = f"{float(found[2]):.{int(digits)}f}"
    return f"{found[1] if float(number) else found[1].rstrip('-−')}{number}"


def parts(text: str) -> list[str]:
    """What stands between semicolons."""
    return [part.strip() for part in text.split(";") if part.strip()]
