"""Columns of a table as they were read: numbers, or codes of levels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privasso.encoding._troubles import Trouble


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
