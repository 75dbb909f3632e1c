"""A data dictionary: what is publicly known about the columns of a private table, and its files."""

from __future__ import annotations

import csv
import io
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from privasso._documents import DocumentError, Fields, read_json
from privasso._files import read_bounded
from privasso._text import for_sheets, from_sheets
from privasso._types import Passed
from privasso._validation import TOO_CLOSE, ZERO_ONE, real_float, separated
from privasso.encoding._columns import MISSING, Columns, LevelCode, Levels, NumberCode, Numbers
from privasso.encoding._encoding import Encoding
from privasso.encoding._troubles import Words, option_words, refusal

#: Bytes beyond which a file is refused, the columns of one, and what separates levels in it.
_MAX_BYTES = 64 * 1024 * 1024
_NUMBERS = ("low", "high", "fill")
_HEAD = ("name", *_NUMBERS, "levels")
_BETWEEN = "|"
#: The name of a column, and what a file says of it: numbers, and levels or "0/1".
_Said: TypeAlias = tuple[str, dict[str, Passed]]


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
            match entry, column:
                case LevelEntry(), Levels():
                    rows = np.flatnonzero(column.codes >= 0)
                    X[rows, at + column.codes[rows]] = 1.0
                    at += len(entry.levels)
                case NumberEntry(), Numbers():
                    if X is not table.block:
                        X[:, at] = column.values
                    if column.missing.size:
                        X[column.missing, at] = entry.filled
                    at += 1
        return X


def read_dictionary(path: str | os.PathLike[str]) -> Dictionary:
    r"""Read a data dictionary; anything wrong with it raises `DocumentError` with one sentence.

    A text file has a header and one line per column: its ``name``, and either ``low`` and ``high``
    or ``levels`` with ``|`` between them, or ``0/1`` there for numbers that are zeros and ones;
    ``fill`` may be left out. A JSON file maps names to ``[low, high]``, to ``"0/1"``, to an object
    with ``low``, ``high`` and, if wanted, ``fill``, or to one with a list ``levels``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "bounds.csv")
    ...     _ = file.write_text("name,low,high,levels\nage,18,98,\nold,,,0/1\nward,,,heart|eye\n")
    ...     read_dictionary(file).bounds
    {'age': (18.0, 98.0), 'old': '0/1', 'ward=eye': '0/1', 'ward=heart': '0/1'}
    """
    path = Path(path)
    try:
        if path.suffix.lower() == ".json":
            said = _of_json(read_json(path, most_bytes=_MAX_BYTES))
        else:
            said = _of_lines(path)
        entries = tuple(_entry(name, **known) for name, known in said)
        if not entries:
            raise DocumentError("the file has no line for any column")
        return Dictionary(entries)
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(str(error)) from None


def template(columns: Iterable[tuple[str, str | None]]) -> str:
    """A dictionary to fill in: the names of the columns, and their types where these are known.

    A name that a spreadsheet would take for a formula has an apostrophe before it, which
    `read_dictionary` removes.
    """
    with io.StringIO(newline="") as out:
        rows = csv.writer(out)
        rows.writerow([*_HEAD, "type"])
        rows.writerows([for_sheets(name), "", "", "", "", kind or ""] for name, kind in columns)
        return out.getvalue()


def _of_lines(path: Path) -> Iterator[_Said]:
    """What each line of a text file says."""
    try:
        text = read_bounded(path, _MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DocumentError("the file is not text in UTF-8") from None
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    try:
        lines = [
            [cell.strip() for cell in line]
            for line in csv.reader(io.StringIO(text, newline=""), delimiter=separator)
            if any(cell.strip() for cell in line)
        ]
    except csv.Error:
        raise DocumentError("the file is not a table of text") from None
    head = [cell.lower() for cell in lines[0]] if lines else []
    known = {*_HEAD, "type"}
    if "name" not in head or len(set(head)) != len(head) or not set(head) <= known:
        raise DocumentError(
            "the first line must be the header name,low,high, with fill and levels if wanted"
        )
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(head):
            raise DocumentError(
                f"line {number} has {len(line)} fields, and the header has {len(head)}"
            )
        cells = dict(zip(head, line, strict=True))
        name, levels = from_sheets(cells["name"]), cells.get("levels", "")
        numbers = {
            key: _number(cells.get(key, ""), f"{key} of column {name!r}") for key in _NUMBERS
        }
        given = levels if levels == ZERO_ONE else levels.split(_BETWEEN) if levels else None
        yield name, {**numbers, "levels": given}


def _number(text: str, what: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise DocumentError(f"{what} is not a number") from None


def _of_json(document: object) -> Iterator[_Said]:
    """What each entry of an object says."""
    if not isinstance(document, dict):
        raise DocumentError("the file must be an object that maps names of columns to their bounds")
    for name, value in document.items():
        if isinstance(value, list):
            if len(value) != 2:
                raise DocumentError(f"the bounds of column {name!r} must be a list [low, high]")
            value = {"low": value[0], "high": value[1]}
        if value == ZERO_ONE:
            yield name, {"levels": ZERO_ONE}
            continue
        fields = Fields(value, f"the entry of column {name!r}")
        known: dict[str, Passed] = {
            key: real_float(f"{key} of column {name!r}", fields.take(key))
            for key in _NUMBERS
            if key in fields.names() and not fields.is_null(key)
        }
        if "levels" in fields.names():
            known["levels"] = fields.texts("levels")
        fields.end()
        yield name, known


def _entry(
    name: str,
    low: float | None = None,
    high: float | None = None,
    fill: float | None = None,
    levels: list[str] | str | None = None,
) -> NumberEntry | LevelEntry:
    """What a file says of a column, if it fits together."""
    if isinstance(levels, str):
        if low is not None or high is not None:
            raise DocumentError(
                f"column {name!r} is of zeros and ones; leave its low and high empty"
            )
        return NumberEntry(name, 0.0, 1.0, fill, indicator=True)
    if levels is None:
        if low is None and high is None:
            raise DocumentError(
                f"column {name!r} has no bounds; fill in low and high, or the levels of a text "
                "column"
            )
        return NumberEntry(name, low, high, fill)
    if (low, high, fill) != (None, None, None):
        raise DocumentError(
            f"column {name!r} has levels, which need no low, high or fill; leave these empty"
        )
    levels = [level.strip() for level in levels]
    if not all(levels):
        raise DocumentError(f"column {name!r} has an empty level; leave it out")
    return LevelEntry(name, tuple(levels))
