"""A data dictionary: what is publicly known about the columns of a private table."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privasso._validation import TOO_CLOSE, ZERO_ONE, separated
from privasso.encoding._columns import MISSING, Columns, LevelCode, Levels, NumberCode
from privasso.encoding._encoding import Encoding
from privasso.encoding._troubles import Words, option_words, refusal


@dataclass(frozen=True)
class NumberEntry:
    """A column of numbers.

    `low`, `high`: its bounds; None where they are to be found in the data with noise. `fill`: what
    stands for a missing value; None for the middle of the bounds, or zero without any. `indicator`:
    whether the numbers are zeros and ones, the bounds.
    """

    name: str
    low: float | None = None
    high: float | None = None
    fill: float | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        low, high, fill = self.low, self.high, self.fill
        if self.indicator and (low, high) != (0.0, 1.0):
            raise ValueError(f"the bounds of column {self.name!r}, zeros and ones, are 0 and 1")
        if (low is None) != (high is None):
            raise ValueError(f"column {self.name!r} has one bound; give both low and high")
        for number in (low, high, fill):
            if number is not None and not math.isfinite(number):
                raise ValueError(f"low, high and fill of column {self.name!r} must be finite")
        if low is None or high is None:
            return
        if low > high:
            raise ValueError(f"low of column {self.name!r} is above its high; exchange them")
        if not math.isfinite(high - low):
            raise ValueError(f"low and high of column {self.name!r} must have a finite distance")
        if low < high and not separated(*np.array([[low, high]]).T)[0]:
            raise ValueError(f"low and high of column {self.name!r} are {TOO_CLOSE}")
        if fill is not None and not low <= fill <= high:
            raise ValueError(f"fill of column {self.name!r} must lie between its low and high")

    @property
    def filled(self) -> float:
        """What stands for a missing value."""
        if self.fill is not None:
            return self.fill
        return 0.0 if self.low is None or self.high is None else 0.5 * self.low + 0.5 * self.high


@dataclass(frozen=True)
class LevelEntry:
    """A column of texts, of which each of the levels becomes a 0/1 column.

    Every other value, a missing one included, is zero in all of them.
    """

    name: str
    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise ValueError(f"the levels of column {self.name!r} must be distinct, at least one")
        taken = [level for level in self.levels if level in MISSING]
        if taken:
            raise ValueError(
                f"the level {taken[0]!r} of column {self.name!r} stands for a missing value; write "
                "it differently, in the table too"
            )
        object.__setattr__(self, "levels", tuple(sorted(self.levels)))


@dataclass(frozen=True)
class Dictionary:
    """What is publicly known about columns, so that nothing about them is learnt from the data."""

    entries: tuple[NumberEntry | LevelEntry, ...]

    def __post_init__(self) -> None:
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"the data dictionary has the column {twice[0]!r} twice")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of the table."""
        return tuple(entry.name for entry in self.entries)

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """Levels of the columns that have them."""
        return {one.name: one.levels for one in self.entries if isinstance(one, LevelEntry)}

    @property
    def encoding(self) -> Encoding:
        """How the columns become those of a matrix."""
        return Encoding(
            tuple(
                LevelCode(one.name, one.levels, None)
                if isinstance(one, LevelEntry)
                else NumberCode(one.name, one.filled)
                for one in self.entries
            )
        )

    @property
    def bounds(self) -> dict[str, tuple[float, float] | str] | None:
        """Bounds of the columns of the matrix by name; None if some are not known.

        Those of levels, and of zeros and ones, are "0/1", as `RecordDP` takes them.
        """
        found: dict[str, tuple[float, float] | str] = {}
        for one, code in zip(self.entries, self.encoding.codes, strict=True):
            if isinstance(one, LevelEntry):
                found |= dict.fromkeys(code.outputs, ZERO_ONE)
            elif one.low is None or one.high is None:
                return None
            else:
                found[one.name] = ZERO_ONE if one.indicator else (one.low, one.high)
        return found

    @property
    def limits(self) -> np.ndarray | None:
        """The same as numbers, of shape (N, 2)."""
        if self.bounds is None:
            return None
        pairs = [(0.0, 1.0) if one == ZERO_ONE else one for one in self.bounds.values()]
        return np.array(pairs, dtype=np.float64)

    def of(self, names: Sequence[str]) -> Dictionary:
        """The entries of these columns, in this order; one that is missing is refused."""
        known = {entry.name: entry for entry in self.entries}
        for name in names:
            if name not in known:
                raise ValueError(
                    f"the data dictionary has no line for the column {name!r}; add one, or leave "
                    "the column out with --exclude"
                )
        return Dictionary(tuple(known[name] for name in names))

    def matrix(self, table: Columns, *, words: Words = option_words) -> np.ndarray:
        """Return the matrix of a table that was read by this dictionary, always dense.

        Missing numbers are filled in the memory of the table, where it holds numbers alone. Errors,
        which are about types of columns, write options as `words` does.
        """
        if table.troubles:
            raise refusal(table.troubles, words)
        X, at = table.block, 0
        if self.levels or X is None:
            X = np.zeros((table.n_rows, len(self.encoding.names)), order="F")
        for entry, column in zip(self.entries, table.columns, strict=True):
            if isinstance(column, Levels):
                assert isinstance(entry, LevelEntry)
                rows = np.flatnonzero(column.codes >= 0)
                X[rows, at + column.codes[rows]] = 1.0
                at += len(entry.levels)
                continue
            assert isinstance(entry, NumberEntry)
            if X is not table.block:
                X[:, at] = column.values
            missing = column.missing
            if missing.size:
                X[missing, at] = entry.filled
            at += 1
        return X
