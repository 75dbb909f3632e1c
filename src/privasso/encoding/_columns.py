"""Columns of a table as they were read: numbers, or codes of levels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.encoding._troubles import Trouble


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of float64 numbers; NaN stands for a missing value.

    Examples
    --------
    >>> Numbers("age", np.array([30.0, np.nan, 50.0])).missing
    array([1])
    """

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

    Examples
    --------
    >>> Levels("ward", np.array([1, 0, -1]), ("a", "b")).missing  # texts "b", "a" and none
    array([2])
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

    Attributes
    ----------
    columns : tuple of Numbers or Levels
        The columns that could be read, in order.
    n_rows : int
        Rows of the table.
    troubles : tuple of Trouble
        One for each column that could not be read.
    block : ndarray or None
        The numbers of all columns as one matrix in Fortran order, of which their values are
        views; None if they are not stored like that.

    Examples
    --------
    >>> import polars as pl
    >>> from privasso.encoding import columns_of_frame
    >>> found = columns_of_frame(pl.DataFrame({"age": [30.0, None], "ward": ["b", "a"]}))
    >>> found.columns, found.n_rows
    ((Numbers(name='age'), Levels(name='ward', levels=('a', 'b'))), 2)
    """

    columns: tuple[Numbers | Levels, ...]
    n_rows: int
    troubles: tuple[Trouble, ...] = ()
    block: np.ndarray | None = field(default=None, repr=False)
