"""From results to the rows of a table: missing numbers, means, and the types of the columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

Row = dict[str, str | int | float | None]

#: The columns that say what a row is about come first, in this order.
_IDENTITY = (
    "law",
    "columns",
    "design",
    "alpha",
    "lam",
    "sigma",
    "n_features",
    "samples",
    "seed",
    "version",
)
#: Columns that hold words and whole numbers; all others hold numbers, or null.
_WORDS = {"law", "columns", "design", "version", "status_theory", "status_limit"}
_COUNTS = {"n_features", "samples", "seed", "exists", "unbounded", "unsolved", "converged"}
_COUNTS |= {"vamp_converged", "amp_converged", "amp_unbounded", "amp_flicker", "amp_diverged"}


def known(values: Sequence[float | None]) -> np.ndarray:
    """Return the numbers of a list, without its Nones."""
    return np.array([value for value in values if value is not None], dtype=np.float64)


def or_none(values: np.ndarray, where: np.ndarray) -> list[float | None]:
    """Return numbers as JSON values: None where `where` is false, and for NaN and infinity."""
    return [
        float(value) if there and math.isfinite(value) else None
        for value, there in zip(values, where, strict=True)
    ]


def mean_and_error(values: np.ndarray) -> tuple[float | None, float | None]:
    """Mean and standard error; None for fewer than two values.

    >>> mean_and_error(np.array([1.0, 3.0])), mean_and_error(np.array([1.0]))
    ((2.0, 1.0), (None, None))
    """
    if values.size < 2:
        return None, None
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))


def frame(rows: list[Row]) -> pl.DataFrame:
    """Return rows as a table, with column types that do not depend on the values."""
    import polars as pl  # only tables need it, and it takes a while to import

    names = [name for name in _IDENTITY if name in rows[0]]
    names += [name for name in rows[0] if name not in _IDENTITY]
    types = {
        name: pl.String if name in _WORDS else pl.Int64 if name in _COUNTS else pl.Float64
        for name in names
    }
    return pl.DataFrame({name: [row[name] for row in rows] for name in names}, schema=types)
