"""Which reader a file needs, by the ending of its name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from privasso.tables._arrays import NpzTable
from privasso.tables._frames import ArrowTable, CsvTable, ParquetTable
from privasso.tables._table import Table

READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": lambda path: CsvTable(path, ","),
    ".tsv": lambda path: CsvTable(path, "\t"),
    ".parquet": ParquetTable,
    ".arrow": ArrowTable,
    ".feather": ArrowTable,
    ".ipc": ArrowTable,
    ".npz": NpzTable,
}


def open_table(path: str | os.PathLike[str]) -> Table:
    r"""Open a data file; only the names of its columns are read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "data.csv")
    ...     _ = file.write_text("age,smoker,pressure\n61,true,120.5\n48,false,118\n")
    ...     table = open_table(file)
    ...     table.names, table.matrix(["pressure", "smoker"])
    (('age', 'smoker', 'pressure'), array([[120.5,   1. ],
           [118. ,   0. ]]))
    """
    path = Path(path)
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        endings = ", ".join(READERS)
        raise ValueError(f"{path} has none of the endings {endings}, which say how to read it")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a data file")
    path.stat()  # a file that is not there is an OSError with its name
    return reader(path)
