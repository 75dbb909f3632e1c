"""Columns of a table as they were read, from polars' own, and what each becomes in the matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of float64 numbers; NaN stands for a missing value."""

    name: str
    values: np.ndarray = field(repr=False)

    @property
    def missing(self) -> np.ndarray:
        """Rows without a value, increasing."""
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(self.values)):  # finite only if every term is
                return np.empty(0, dtype=np.intp)
        return np.flatnonzero(np.isnan(self.values))


@dataclass(frozen=True, eq=False)
class Levels:
    """A column of texts: row m has ``levels[codes[m]]``, and no value where the code is −1.

    The levels are sorted, each once, and each occurs.
    """

    name: str
    codes: np.ndarray = field(repr=False)
    levels: tuple[str, ...]

    @property
    def missing(self) -> np.ndarray:
        """Rows without a value, increasing."""
        return np.flatnonzero(self.codes < 0)


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of one table, and what is wrong with those that could not be read.

    - `columns`: the columns that could be read, in order.
    - `troubles`: one for each column that could not be read.
    - `block`: the numbers of all columns as one matrix in Fortran order, of which their values are
      views; None if they are not stored like that.
    """

    columns: tuple[Numbers | Levels, ...]
    n_rows: int
    troubles: tuple[Trouble, ...] = ()
    block: np.ndarray | None = field(default=None, repr=False)


def infinite_row(values: np.ndarray) -> int | None:
    """First row with an infinite number, or None."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values)):  # finite only if every term is
            return None
    rows = np.flatnonzero(np.isinf(values))
    return int(rows[0]) if rows.size else None


#: What stands for a missing value in text, spaces around it aside.
MISSING = ("", "NA", "<NA>", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None")
#: Most levels that a column may have, whoever asks for them.
MOST_LEVELS = 100_000
COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$"
_CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[AaPp][Mm])?( ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
_DAY = (
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    r"|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4}|[A-Za-z]{3,9} \d{1,2},? \d{4})"
)
_DATE = rf"^({_DAY}([T ]{_CLOCK})?|{_CLOCK})$"


def read_series(
    series: pl.Series,
    *,
    as_levels: bool = False,
    typed: bool = True,
    decimal_comma: bool = False,
) -> Numbers | Levels | Trouble:
    """Return a column as numbers or levels, or say why it is neither.

    Integers, decimals and booleans are numbers. Text becomes levels, without spaces around it,
    unless it reads as true and false, as dates, or as numbers.

    - `as_levels`: take numbers, booleans and dates as texts, too.
    - `typed`: whether the file says which columns are text. Otherwise text that reads as numbers
      is.
    - `decimal_comma`: whether ``1,5`` is a number, if the file does not say which columns are text.
    """
    import polars as pl

    dtype, name = series.dtype, series.name
    if dtype == pl.Null:
        nothing = np.full(len(series), -1, dtype=np.int32)
        return Levels(name, nothing, ()) if as_levels else Numbers(name, floats(series))
    if not as_levels and (dtype.is_numeric() or dtype == pl.Boolean):
        return Numbers(name, floats(series))
    if dtype.is_temporal() and not as_levels:
        return Trouble(name, "dates")
    if dtype not in (pl.String, pl.Categorical, pl.Enum) and not (
        dtype.is_numeric() or dtype.is_temporal() or dtype == pl.Boolean
    ):
        return Trouble(name, "values")
    text = series.cast(pl.String).str.strip_chars()
    text = pl.select(pl.when(~text.is_in(MISSING)).then(text)).to_series()
    if not as_levels:
        found = _numbers_in(name, text, typed, decimal_comma)
        if found is not None:
            return found
    levels = text.drop_nulls().unique().sort()
    if len(levels) > MOST_LEVELS:
        return Trouble(name, "many", count=len(levels))
    if not as_levels and levels.str.contains(_DATE).all():
        return Trouble(name, "dates")
    codes = text.cast(pl.Enum(levels)).to_physical().cast(pl.Int32).fill_null(-1)
    return Levels(name, np.ascontiguousarray(codes.to_numpy()), tuple(levels))


def _numbers_in(
    name: str, text: pl.Series, typed: bool, decimal_comma: bool
) -> Numbers | Trouble | None:
    """Return the text as numbers where it is, a trouble where one must ask, None for levels."""
    import polars as pl

    present = text.is_not_null()
    if not present.any():
        return Numbers(name, np.full(len(text), np.nan))
    lower = text.str.to_lowercase()
    if lower.drop_nulls().is_in(("true", "false")).all():
        return Numbers(name, floats(lower == "true"))
    numbers = text.cast(pl.Float64, strict=False)
    if decimal_comma and text.drop_nulls().str.contains(COMMA).all():
        numbers = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    bad = present & numbers.is_null()
    if not bad.any():
        return Trouble(name, "digits") if typed else Numbers(name, floats(numbers))
    if 2 * int(bad.sum()) < int(present.sum()):
        return Trouble(name, "mixed", int(bad.arg_max() or 0))
    return None


def floats(series: pl.Series) -> np.ndarray:
    import polars as pl

    return np.ascontiguousarray(series.cast(pl.Float64).fill_null(np.nan).to_numpy())


@dataclass(frozen=True)
class NumberCode:
    """A column of numbers.

    `fill`: what a missing value is replaced by; None refuses missing values. `indicator`: whether a
    column of its own tells by 1 that the value is missing.
    """

    name: str
    fill: float | None = None
    indicator: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        return (self.name, f"{self.name} is missing") if self.indicator else (self.name,)


@dataclass(frozen=True)
class LevelCode:
    """A column of texts: a 0/1 column for each level but the reference, which is zero in all.

    With a column for the reference, too, the columns and the intercept would be linearly
    dependent, and noise in a direction that changes no prediction can leave the objective without
    a minimum.

    - `levels`: the levels, sorted.
    - `reference`: the level without a column. None gives each level a column; then every other
      value, a missing one included, is zero in all of them.
    - `missing`: whether a missing value is one more level, after the others; otherwise it is
      refused.
    """

    name: str
    levels: tuple[str, ...]
    reference: str | None
    missing: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The levels that have a column."""
        return tuple(level for level in self.levels if level != self.reference)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the columns of the matrix."""
        names = tuple(f"{self.name}={level}" for level in self.shown)
        return (*names, f"{self.name} is missing") if self.missing else names
