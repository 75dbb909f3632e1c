"""A column read by a public description: each cell for itself, whatever the others hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from privasso.encoding._columns import Levels, Numbers
from privasso.encoding._series import COMMA, floats
from privasso.encoding._troubles import Trouble

if TYPE_CHECKING:
    import polars as pl


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
