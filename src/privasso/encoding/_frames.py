"""Data frames of polars and pandas as columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privasso._text import is_unicode
from privasso._validation import attempt
from privasso.encoding._columns import Columns, Levels, Numbers
from privasso.encoding._declared import read_declared
from privasso.encoding._dictionary import Dictionary
from privasso.encoding._series import read_series
from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl

#: Types of pandas whose cells may be anything.
_MIXED = ("object", "str", "category")
#: Numbers from this size on are written as one that is infinite.
_LARGE = 1e308


def columns_of_frame(
    frame: Any, names: Sequence[str] | None = None, *, categorical: Sequence[str] = ()
) -> Columns:
    """Return columns of a polars or pandas data frame, all of them unless names are given.

    The columns of `categorical` are read as levels whatever their type is.
    """
    labels = frame_labels(frame)
    for name in (*(names or ()), *categorical):
        _check_there(name, labels)
    found = [
        read_series(_series(name, frame[labels[name]]), as_levels=name in categorical)
        for name in (labels if names is None else names)
    ]
    return _columns(found, len(frame))


def declared_columns(frame: Any, dictionary: Dictionary) -> Columns:
    """Return the columns of a dictionary from a data frame, each cell read for itself.

    What a cell holds is never refused: see `read_declared`.
    """
    labels = frame_labels(frame)
    found = []
    for name in dictionary.names:
        _check_there(name, labels)
        levels = dictionary.levels.get(name)
        found.append(read_declared(_series(name, frame[labels[name]], declared=True), levels))
    return _columns(found, len(frame))


def frame_labels(frame: Any) -> dict[str, Any]:
    """Names of the columns of a data frame as texts, with what the frame itself calls them."""
    if not hasattr(frame, "columns"):
        raise ValueError(
            f"a table must be a data frame of polars or pandas, not {type(frame).__name__}: levels "
            "and column names are not known otherwise"
        )
    labels = {str(label): label for label in frame.columns}
    if len(labels) != len(frame.columns):
        raise ValueError("the data frame has two columns of the same name; rename one of them")
    return labels


def _check_there(name: str, labels: dict[str, Any]) -> None:
    if name not in labels:
        raise ValueError(f"the data frame has no column {name!r}")


def _columns(found: Iterable[Numbers | Levels | Trouble], n_rows: int) -> Columns:
    columns, troubles = [], []
    for one in found:
        (troubles if isinstance(one, Trouble) else columns).append(one)
    return Columns(tuple(columns), n_rows, tuple(troubles))


def _series(name: str, column: Any, *, declared: bool = False) -> pl.Series:
    """Return the column as a polars series; pandas ones need no pyarrow for it.

    Declared columns of a type that may hold anything become texts, cell by cell.
    """
    import polars as pl

    if isinstance(column, pl.Series):
        return column.alias(name)
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiubMm":
        return pl.Series(name, column.to_numpy())
    if declared and str(column.dtype).startswith(_MIXED):
        texts = [attempt(lambda cell=cell: _text(cell)) for cell in column.tolist()]
        return pl.Series(name, texts, dtype=pl.String)
    gone = column.isna().to_numpy()
    cells = [None if no else cell for cell, no in zip(column.tolist(), gone, strict=True)]
    found = attempt(lambda: pl.Series(name, cells, strict=True))
    # Otherwise of several types, or of one of its own.
    return pl.Series(name, [[0]] * len(cells)) if found is None else found


def _text(cell: Any) -> str | None:
    """What a text file would hold for a cell; None if it is neither text nor a number."""
    if isinstance(cell, str):
        return cell if is_unicode(cell) else None
    number: Any = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(number, bool):
        return str(number).lower()
    if not isinstance(number, (Real, Decimal)) or number != number:
        return None
    number = cast(Any, number)
    if not -_LARGE < number < _LARGE:
        return "-1e999" if number < 0 else "1e999"
    whole = math.trunc(number)
    return str(whole) if number == whole else repr(float(number))
