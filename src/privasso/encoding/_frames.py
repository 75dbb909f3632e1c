"""Data frames of polars and pandas as columns, read as they are or by a public description."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, cast

import numpy as np

from privasso._text import is_unicode
from privasso._types import Foreign, Frame
from privasso._validation import attempt
from privasso.encoding._columns import (
    COMMA,
    MISSING,
    Columns,
    Levels,
    Numbers,
    floats,
    read_series,
)
from privasso.encoding._dictionary import Dictionary
from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl


#: Types of pandas whose cells may be anything.
_MIXED = ("object", "str", "category")
#: Numbers from this size on are written as one that is infinite.
_LARGE = 1e308


def columns_of_frame(
    frame: Frame, names: Sequence[str] | None = None, *, categorical: Sequence[str] = ()
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


def declared_columns(frame: Frame, dictionary: Dictionary) -> Columns:
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


def frame_labels(frame: Frame) -> dict[str, object]:
    """Names of the columns of a data frame as texts, with what the frame itself calls them."""
    if not hasattr(frame, "columns"):
        raise ValueError(
            f"a table must be a data frame of polars or pandas, not {type(frame).__name__}: levels "
            "and column names are not known otherwise"
        )
    columns = list(frame.columns)
    labels = {str(label): label for label in columns}
    if len(labels) != len(columns):
        raise ValueError("the data frame has two columns of the same name; rename one of them")
    return labels


def _check_there(name: str, labels: dict[str, object]) -> None:
    if name not in labels:
        raise ValueError(f"the data frame has no column {name!r}")


def _columns(found: Iterable[Numbers | Levels | Trouble], n_rows: int) -> Columns:
    columns, troubles = [], []
    for one in found:
        (troubles if isinstance(one, Trouble) else columns).append(one)
    return Columns(tuple(columns), n_rows, tuple(troubles))


def _series(name: str, column: Foreign, *, declared: bool = False) -> pl.Series:
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


def _text(cell: object) -> str | None:
    """What a text file would hold for a cell; None if it is neither text nor a number."""
    if isinstance(cell, str):
        return cell if is_unicode(cell) else None
    number: Foreign = cell.item() if isinstance(cell, np.generic) else cell
    if isinstance(number, bool):
        return str(number).lower()
    if not isinstance(number, (Real, Decimal)) or number != number:
        return None
    number = cast(float, number)
    if not -_LARGE < number < _LARGE:
        return "-1e999" if number < 0 else "1e999"
    whole = math.trunc(number)
    return str(whole) if number == whole else repr(float(number))


def read_declared(
    series: pl.Series, levels: Sequence[str] | None, *, decimal_comma: bool = False
) -> Numbers | Levels | Trouble:
    """Return a column as numbers, or as the given levels, without a look at what kind it seems.

    Where records are private, what one cell is taken for must not depend on the cells of others.
    So there is no guess and no refusal for what a cell holds: a cell that is no number is a missing
    one, and so is a text that is none of the levels. Only a type that the file itself states, such
    as dates, is refused.

    `levels`: the levels, or None for numbers. `decimal_comma`: whether ``1,5`` is a number.
    """
    import polars as pl

    name, dtype = series.name, series.dtype
    if dtype.is_temporal():
        return Trouble(name, "dates")
    text = dtype in (pl.String, pl.Categorical, pl.Enum)
    if not (text or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        return Trouble(name, "values")
    if levels is not None:
        return _as_levels(series, tuple(levels))
    if not text:
        return Numbers(name, floats(series))
    return Numbers(name, floats(_numbers(series.cast(pl.String).str.strip_chars(), decimal_comma)))


def _numbers(text: pl.Series, decimal_comma: bool) -> pl.Series:
    """Numbers, true and false as 1 and 0, and null for everything else."""
    import polars as pl

    plain = text
    if decimal_comma:
        swapped = text.str.replace(",", ".", literal=True)
        plain = pl.select(pl.when(text.str.contains(COMMA)).then(swapped).otherwise(text))
        plain = plain.to_series()
    numbers = plain.cast(pl.Float64, strict=False)
    lower = text.str.to_lowercase()
    words = pl.when(lower == "true").then(1.0).when(lower == "false").then(0.0)
    return pl.select(numbers.fill_null(pl.select(words).to_series())).to_series()


def _as_levels(series: pl.Series, levels: tuple[str, ...]) -> Levels:
    import polars as pl

    if series.dtype.is_float():  # 2.0 is the level "2"
        whole = series.cast(pl.Int64, strict=False)
        text = pl.select(
            pl.when(whole.cast(pl.Float64) == series)
            .then(whole.cast(pl.String))
            .otherwise(series.cast(pl.String))
        ).to_series()
    else:
        text = series.cast(pl.String)
    place = pl.Series(range(len(levels)), dtype=pl.Int32)
    codes = text.str.strip_chars().replace_strict(
        pl.Series(levels, dtype=pl.String), place, default=-1, return_dtype=pl.Int32
    )
    return Levels(series.name, np.ascontiguousarray(codes.fill_null(-1).to_numpy()), levels)


def read_labels(
    series: pl.Series, classes: Sequence[str] | None, *, decimal_comma: bool = False
) -> Numbers | Trouble:
    """Labels as numbers, or with the names of two classes as 0 and 1; NaN for all others."""
    found = read_declared(series, classes, decimal_comma=decimal_comma)
    if isinstance(found, Levels):
        return Numbers(found.name, np.where(found.codes < 0, np.nan, found.codes))
    return found


def class_names(names: Sequence[str]) -> list[str] | list[float]:
    """Names of classes without the spaces around them; numbers if all of them read as such.

    >>> class_names([" No", "Yes"]), class_names(["1", "2.0"]), class_names(["0", "yes"])
    (['No', 'Yes'], [1, 2], ['0', 'yes'])
    """
    import polars as pl

    names = [name.strip() for name in names]
    if not set(names).isdisjoint(MISSING):
        raise ValueError("a class has a name that stands for a missing value")
    found = read_declared(pl.Series(names, dtype=pl.String), None)
    if not (isinstance(found, Numbers) and np.isfinite(found.values).all()):
        return names
    return [int(x) if x.is_integer() else x for x in found.values.tolist()]
