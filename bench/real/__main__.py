"""Private fits on real tables, beside published alternatives at the same guarantee.

``labels`` compares methods that protect the labels given public covariates, ``records`` methods
that protect whole records, ``binary`` methods for outcomes of two values. What was run before is
kept in a folder and not run again, unless the source of the method or the table has changed.
``forecast`` compares forecasts, made before the labels are read, with what fits then reach.
``--write`` keeps the tables in ``docs/data``, from which pages take their numbers and ``picture``
draws.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import polars as pl
from rich.console import Console

from bench.page import write
from bench.real.cells import cells
from bench.real.forecast import compared
from bench.real.forecast import page as forecast_page
from bench.real.page import document, tables
from bench.real.picture import draw
from bench.real.run import complete
from bench.real.summary import rows
from bench.real.tables import REGISTRY, chosen
from bench.real.task import TASKS, Task

_KEPT = Path("build/real-tables")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    if options.task == "forecast":
        return _forecast(options, console)
    if options.task == "picture":
        draw(options.out)
        return 0
    task = TASKS[options.task]
    left_out = {c.name: c.missing() for c in task.contenders}
    left_out = {name: reason for name, reason in left_out.items() if reason}
    for reason in left_out.values():
        console.print(f"not run: {reason}", markup=False)
    try:
        names = chosen(task.kind, options.tables, options.least_rows)
    except ValueError as error:
        console.print(f"error: {error}", markup=False)
        return 2
    wanted = cells(task, names, options.epsilon, options.form, set(left_out))
    found = complete(wanted, options.splits, options.keep, options.jobs, console)
    table = rows(found, options.epsilon, options.form, options.splits)
    for end, each in tables(task, table, options.splits).items():
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, tbl_width_chars=-1):
            print(each)
        if options.write:
            write(f"real-{task.name}{end}", each, f"{_command(options)} --write")
    if options.out is not None:
        options.out.write_text(document(task, table, options.splits), encoding="utf-8")
    return 0


def _forecast(options: argparse.Namespace, console: Console) -> int:
    try:
        tables = chosen("regression", options.tables, 0)
    except ValueError as error:
        console.print(f"error: {error}", markup=False)
        return 2
    found = compared(tables, options.epsilon, options.splits, console)
    print(forecast_page(found, options.splits))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.real", description=__doc__)
    parsers = parser.add_subparsers(dest="task", required=True)
    for task in TASKS.values():
        _add_options(parsers.add_parser(task.name, help=task.title), task)
    forecast = parsers.add_parser("forecast", help="Forecasts beside what fits reach")
    forecast.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    forecast.add_argument("--splits", type=int, default=20)
    forecast.add_argument("--tables", nargs="+", default=["all"])
    picture = parsers.add_parser("picture", help="A picture of the pages with all results")
    picture.add_argument("--out", type=Path, default=Path("docs/images/real-tables.png"))
    return parser


def _add_options(parser: argparse.ArgumentParser, task: Task) -> None:
    names = ", ".join(entry.name for entry in REGISTRY.values() if entry.kind == task.kind)
    add = parser.add_argument
    add("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0], help="values of ε")
    add("--splits", type=int, default=30, help="random splits into training and test rows")
    add("--tables", nargs="+", default=["all"], help=f"all, or any of {names}")
    add("--least-rows", type=int, default=task.least_rows, help="smallest table of all")
    add("--form", nargs="+", default=list(task.forms), choices=task.forms, help="of the columns")
    add("--jobs", type=int, default=1, help="processes")
    add("--keep", type=Path, default=_KEPT, help="folder of what was run before")
    add("--write", action="store_true", help="renew the tables in docs/data")
    add("--out", type=Path, help="a JSON file for the scores of all splits")


def _command(options: argparse.Namespace) -> str:
    words = ["python -m bench.real", options.task, "--epsilon"]
    words += [f"{epsilon:g}" for epsilon in options.epsilon]
    words += ["--splits", str(options.splits)]
    if options.tables != ["all"]:
        words += ["--tables", *options.tables]
    if options.least_rows != TASKS[options.task].least_rows:
        words += ["--least-rows", str(options.least_rows)]
    if options.form != list(TASKS[options.task].forms):
        words += ["--form", *options.form]
    return " ".join(words)


if __name__ == "__main__":
    sys.exit(main())
