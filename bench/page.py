"""Tables of a benchmark in a page of the documentation, renewed by one command."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl


def renew(
    prog: str,
    description: str | None,
    tables: Mapping[str, Callable[[], pl.DataFrame]],
    page: Path,
    together: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Make the tables that the command line names, print them, and with --write renew the page.

    `together` has names for several tables.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    names = list(tables)
    parser.add_argument("names", nargs="*", default=names, help=f"any of {', '.join(names)}")
    parser.add_argument("--write", action="store_true", help=f"renew docs/{page.name}")
    arguments = parser.parse_args()
    several = together or {}
    for name in [one for given in arguments.names for one in several.get(given, (given,))]:
        table = tables[name]()
        with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_hide_dataframe_shape=True, float_precision=4):
            print(name, table)
        if arguments.write:
            page.write_text(replaced(page.read_text("utf-8"), name, table), encoding="utf-8")


def replaced(text: str, name: str, table: pl.DataFrame) -> str:
    """Put the table between its marks."""
    from bench.__main__ import markdown

    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, _, rest = text.partition(start)
    _, found, tail = rest.partition(end)
    if not found:
        raise ValueError(f"the page has no place for the table {name!r}")
    rounded = table.with_columns(pl.selectors.float().map_elements(_four, return_dtype=pl.String))
    return f"{head}{start}\n{markdown(rounded)}\n{end}{tail}"


def _four(value: float) -> str:
    """Four digits, for tables of small differences."""
    return f"{value:.4g}" if math.isfinite(value) else "∞"
