"""Columns of numbers as the bytes of a file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ENDINGS = (".csv", ".parquet")


def table_bytes(columns: Mapping[str, Any], path: Path) -> bytes:
    r"""Return the columns as CSV or Parquet, by the ending of the name.

    Examples
    --------
    >>> table_bytes({"a": [1.5, 2.0]}, Path("table.csv"))
    b'a\n1.5\n2.0\n'
    """
    import polars as pl

    check_ending(path)
    frame, buffer = pl.DataFrame(dict(columns)), io.BytesIO()
    if path.suffix.lower() == ".csv":
        frame.write_csv(buffer)
    else:
        frame.write_parquet(buffer)
    return buffer.getvalue()


def check_ending(path: Path) -> None:
    """Refuse a name that does not say which kind of table to write."""
    if path.suffix.lower() not in ENDINGS:
        raise ValueError(f"{path} must end in .csv or .parquet, which says how to write it")
