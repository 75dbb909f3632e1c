"""Which reader or writer a file needs, by the ending of its name."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from privasso._files import check_regular
from privasso._text import escaped, for_sheets
from privasso.tables._frames import FrameTable
from privasso.tables._numbers import BedTable, NpzTable
from privasso.tables._table import Table
from privasso.tables._text import TextTable

TEXT = (".csv", ".tsv")
#: Files that hold nothing but numbers.
NUMBERS = (".npz", ".bed")
READERS: dict[str, Callable[[Path], Table]] = {
    **dict.fromkeys(TEXT, TextTable),
    ".parquet": partial(FrameTable, form="parquet"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), partial(FrameTable, form="arrow")),
    ".npz": NpzTable,
    ".bed": BedTable,
}

ENDINGS = (".csv", ".parquet")


def open_table(path: str | os.PathLike[str], *, row_names: bool = False) -> Table:
    """Open a data file; only the names of its columns are read.

    With `row_names` each line of a text file begins with the name of its row, for which the header
    has no field, as R's write.table writes it.
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if path.is_dir():
        raise ValueError(f"{escaped(path)} is a folder, not a file")
    if reader is None:
        endings = ", ".join(READERS)
        raise ValueError(
            f"{escaped(path)} has none of the endings {endings}, which say how to read it"
        )
    check_regular(path)
    if row_names:
        if path.suffix.lower() not in TEXT:
            raise ValueError(f"{escaped(path)} is no text file, and --row-names is for these only")
        return TextTable(path, row_names=True)
    return reader(path)


def table_bytes(columns: Mapping[str, object], path: Path) -> bytes:
    """Return the columns as CSV or Parquet, by the ending of the name.

    In CSV a name that a spreadsheet would take for a formula has an apostrophe before it.
    """
    import polars as pl

    check_ending(path)
    frame, buffer = pl.DataFrame(dict(columns)), io.BytesIO()
    if path.suffix.lower() == ".csv":
        frame.rename(for_sheets).write_csv(buffer)
    else:
        frame.write_parquet(buffer)
    return buffer.getvalue()


def check_ending(path: Path) -> None:
    """Refuse a name that does not say which kind of table to write."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(
            f"{escaped(path)} must end in .csv or .parquet, which says how to write it"
        )
