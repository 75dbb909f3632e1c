"""Tables in `docs/data`, from which the pages of the documentation take their numbers."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

DATA = Path(__file__).parent.parent / "docs" / "data"


def renew(
    prog: str,
    description: str | None,
    tables: Mapping[str, Callable[[], pl.DataFrame]],
    prefix: str,
    together: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Make the tables that the command line names, print them, and with --write keep them.

    A table is kept as `docs/data/PREFIX-NAME.csv`. `together` has names for several tables.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    names = list(tables)
    parser.add_argument("names", nargs="*", default=names, help=f"any of {', '.join(names)}")
    parser.add_argument("--write", action="store_true", help=f"renew docs/data/{prefix}-*.csv")
    arguments = parser.parse_args()
    several = together or {}
    for name in [one for given in arguments.names for one in several.get(given, (given,))]:
        table = tables[name]()
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=4):
            print(name, table)
        if arguments.write:
            write(f"{prefix}-{name}", table, f"{prog} {name} --write")


def write(file: str, table: pl.DataFrame, command: str, digits: int = 4) -> None:
    """Write a table as `docs/data/FILE.csv`, and in `commands.csv` how it is made again."""
    lines = [[_text(value, digits) for value in row] for row in table.iter_rows()]
    _save(file, table.columns, lines)
    known = DATA / "commands.csv"
    with known.open(encoding="utf-8", newline="") as source:
        made = {row["file"]: row["command"] for row in csv.DictReader(source)}
    _save(
        "commands", ["file", "command"], [list(x) for x in sorted({**made, file: command}.items())]
    )


def extend(file: str, rows: list[dict[str, str]], keys: list[str], command: str) -> None:
    """Write rows of `docs/data/FILE.csv`; rows of earlier runs with other keys are kept."""
    known, new = DATA / f"{file}.csv", {tuple(row[key] for key in keys) for row in rows}
    if known.exists():
        with known.open(encoding="utf-8", newline="") as source:
            before = list(csv.DictReader(source))
        rows = [row for row in before if tuple(row[key] for key in keys) not in new] + rows
    write(file, pl.DataFrame(rows), command)


def _save(file: str, head: list[str], lines: list[list[str]]) -> None:
    with (DATA / f"{file}.csv").open("w", encoding="utf-8", newline="") as target:
        csv.writer(target, lineterminator="\n").writerows([head, *lines])


def _text(value: object, digits: int) -> str:
    if isinstance(value, float):
        if abs(value) >= 10.0**digits and math.isfinite(value):  # 1020 instead of 1.02e+03
            return f"{value:.0f}"
        return f"{value:.{digits}g}" if math.isfinite(value) else "∞"
    return "" if value is None else str(value)
