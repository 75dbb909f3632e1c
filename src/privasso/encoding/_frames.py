"""Data frames of polars and pandas as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privasso.encoding._columns import Columns
from privasso.encoding._series import read_series
from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl


def columns_of_frame(
    frame: Any, names: Sequence[str] | None = None, *, categorical: Sequence[str] = ()
) -> Columns:
    """Return columns of a polars or pandas data frame, all of them unless names are given.

    The columns of `categorical` are read as levels whatever their type is.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"age": [61, 48], "ward": [3, 4]})
    >>> columns_of_frame(frame, categorical=["ward"]).columns[1].levels
    ('3', '4')
    """
    if not hasattr(frame, "columns"):
        raise ValueError(
            f"a table must be a data frame of polars or pandas, not {type(frame).__name__}: levels "
            "and column names are not known otherwise"
        )
    labels = {str(label): label for label in frame.columns}
    if len(labels) != len(frame.columns):
        raise ValueError("the data frame has two columns of the same name; rename one of them")
    for name in (*(names or ()), *categorical):
        if name not in labels:
            raise ValueError(f"the data frame has no column {name!r}")
    columns, troubles = [], []
    for name in labels if names is None else names:
        one = read_series(_series(name, frame[labels[name]]), as_levels=name in categorical)
        (troubles if isinstance(one, Trouble) else columns).append(one)
    return Columns(tuple(columns), len(frame), tuple(troubles))


def _series(name: str, column: Any) -> pl.Series:
    """Return the column as a polars series; pandas ones need no pyarrow for it."""
    import polars as pl

    if isinstance(column, pl.Series):
        return column.alias(name)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiubMm":
        return pl.Series(name, column.to_numpy())
    gone = column.isna().to_numpy()
    cells = [None if no else cell for cell, no in zip(column.tolist(), gone, strict=True)]
    try:
        return pl.Series(name, cells, strict=True)
    except (TypeError, pl.exceptions.PolarsError):  # of several types, or of one of its own
        return pl.Series(name, [[0]] * len(cells))
