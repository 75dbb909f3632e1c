"""The encoding that a table asks for, or all that is wrong with its columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias, get_args

import numpy as np

from privasso.encoding._columns import (
    Columns,
    LevelCode,
    Levels,
    NumberCode,
    Numbers,
    infinite_row,
)
from privasso.encoding._encoding import Encoding
from privasso.encoding._troubles import Trouble, Words, option_words, refusal

MissingRule: TypeAlias = Literal["error", "mean", "indicator"]
MISSING_RULES: tuple[str, ...] = get_args(MissingRule)

#: A text column with more levels than this is taken for an identifier.
MANY_LEVELS = 10_000
#: So is one with more than this many levels that have fewer than two rows each on average.
FEW_LEVELS = 20
#: Rows from which on whole numbers that count without a gap are taken for an identifier.
_RUN = 10
_NAMES = {"id", "index", "row", "rownames", "row_names", "row.names", "rowid", "row_id", "uuid",
          "guid", "_id", "key"}  # fmt: skip


def learn_encoding(
    table: Columns,
    *,
    missing: str = "error",
    keep: Collection[str] = (),
    words: Words = option_words,
) -> Encoding:
    """Return the encoding of all columns of a table.

    `missing` is ``"error"``, which refuses missing values; ``"mean"``, which replaces a missing
    number by the mean of its column and refuses missing texts; or ``"indicator"``, which also adds
    a 0/1 column that tells where a number was missing, and takes a missing text as a level of its
    own. Means are learnt of complete columns, too, for tables that come later; those have no such
    0/1 column or level. Columns in `keep` are used although they look like identifiers.

    The reference of a text column is its most frequent level, the first of them in a tie. The error
    names all columns that cannot be used, and what settles it.
    """
    if missing not in MISSING_RULES:
        rules = ", ".join(MISSING_RULES)
        raise ValueError(f"missing must be one of {rules}, not {missing!r}")
    troubles, codes = list(table.troubles), []
    for column in table.columns:
        if column.name not in keep and looks_like_identifier(column):
            troubles.append(Trouble(column.name, "identifier"))
        numbers = isinstance(column, Numbers)
        found = _numbers(column, missing) if numbers else _levels(column, missing)
        if isinstance(found, Trouble):
            troubles.append(found)
        else:
            codes.append(found)
    if troubles:
        raise refusal(troubles, words)
    encoding = Encoding(tuple(codes))
    if not encoding.names:
        raise ValueError("every column has the same value in all rows, so there is nothing to fit")
    return encoding


def looks_like_identifier(column: Numbers | Levels) -> bool:
    """Whether a column seems to number or name the rows.

    Text does if no two rows have the same, or if there are many levels with few rows each. Whole
    numbers do if they count from one number to another without a gap, or if the column is called
    an identifier. Other numbers never do, but for a column without a name of its own.
    """
    if _nameless(column.name):
        return True
    if isinstance(column, Levels):
        rows = column.codes.size - column.missing.size
        n = len(column.levels)
        return n > MANY_LEVELS or 2 < n == rows or (n > FEW_LEVELS and 2 * n > rows)
    values = column.values
    name = column.name.strip().casefold()
    suspicious = name in _NAMES or name.endswith(("_id", " id", ".id"))
    if suspicious:
        present = values[~np.isnan(values)]
        return bool(present.size and np.all(present == np.floor(present)))
    return values.size >= _RUN and _is_run(values)


def _nameless(name: str) -> bool:
    """Whether a name is what a library writes for a column of row numbers."""
    return name == "" or name.startswith(("Unnamed: ", "__index_level_"))


def _is_run(values: np.ndarray) -> bool:
    """Whether the values are a, a + 1, …, a + n − 1 in some order."""
    low, high = float(np.min(values)), float(np.max(values))
    if not (high == low + values.size - 1 and low.is_integer()):
        return False
    steps = values - low
    places = steps.astype(np.int64)
    return bool(np.array_equal(places, steps) and np.bincount(places).max() == 1)


def _numbers(column: Numbers, rule: str) -> NumberCode | Trouble:
    infinite = infinite_row(column.values)
    if infinite is not None:
        return Trouble(column.name, "infinite", infinite)
    missing = column.missing
    if missing.size == column.values.size:
        return Trouble(column.name, "empty")
    if missing.size and rule == "error":
        return Trouble(column.name, "missing", int(missing[0]))
    if rule == "error":
        return NumberCode(column.name)
    return NumberCode(column.name, _mean(column.values), rule == "indicator" and missing.size > 0)


def _levels(column: Levels, rule: str) -> LevelCode | Trouble:
    missing = column.missing
    if not column.levels:
        return Trouble(column.name, "empty")
    if missing.size and rule != "indicator":
        return Trouble(column.name, "blank", int(missing[0]))
    counts = np.bincount(column.codes + 1, minlength=len(column.levels) + 1)[1:]
    most_common = column.levels[int(np.argmax(counts))]
    return LevelCode(column.name, column.levels, most_common, bool(missing.size))


def _mean(values: np.ndarray) -> float:
    """Mean of the values that are there, without overflow."""
    present = values[~np.isnan(values)]
    size = float(np.max(np.abs(present)))
    return float(np.mean(present / size)) * size if size > 0.0 else 0.0
