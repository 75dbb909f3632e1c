"""Text files: each line is one record, split and read on its own by compiled code."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from privasso._fields import COMMA, POINT, WORD, line_ends, numbers, split_lines
from privasso._files import fits_memory, open_regular, unreadable
from privasso._text import escaped
from privasso.encoding import (
    MISSING,
    Columns,
    Levels,
    Numbers,
    Trouble,
    read_declared,
    read_labels,
    read_series,
)
from privasso.tables._table import Asked, Table, check_size

if TYPE_CHECKING:
    import polars as pl

#: Longest header of a text file, in bytes.
_LONGEST_HEADER = 1 << 26
_SEPARATORS = (",", ";", "\t")
#: Cells that are looked at together.
_CELLS = 1 << 17
_QUOTE = ord('"')


def _words() -> np.ndarray:
    """What stands for a missing value as bytes, each after its length."""
    found = np.zeros((len(MISSING), 1 + max(map(len, MISSING))), dtype=np.uint8)
    for line, word in zip(found, MISSING, strict=True):
        line[: 1 + len(word)] = [len(word), *word.encode()]
    return found


_MISSING = _words()


class TextTable(Table):
    """Text with a header, whose fields are separated by commas, semicolons or tabs.

    The first line, which names the columns, says what separates them. Every other line is one
    record, whatever it holds: a quote does not reach beyond it. It may have fewer fields than the
    header, and the last ones are then missing; further ones must be empty. A quote opens at the
    beginning of a field, is doubled inside, and closes at the end of the field. A line that does
    not fit is a record without any value where cells are read as declared, and an error elsewhere.

    With `row_names` each line begins with one more field, as R's write.table writes it, which is
    ignored.
    """

    def __init__(self, path: Path, *, row_names: bool = False) -> None:
        header = read_header(path)
        self._separator, self._row_names = header.separator, row_names
        super().__init__(path, header.names)

    @property
    def n_rows(self) -> int:
        """Number of lines after the header."""
        return self._text().n_rows

    def _text(self) -> TextLines:
        with open_regular(self.path) as file:
            if not fits_memory(os.fstat(file.fileno()).st_size):
                raise unreadable(self.path)
            text = TextLines(self, file.read(), self._separator, self._row_names)
        if text.n_rows == 0:
            raise ValueError(f"{escaped(self.path)} has no rows")
        return text

    def _read(self, asked: Asked) -> tuple[Columns, np.ndarray]:
        text, names, target, levels = self._text(), asked.names, asked.target, asked.levels
        public = levels is None
        check_size(self.path, text.n_rows, len(names) + (target is not None))
        words = set(asked.categorical if levels is None else levels)
        plain = [name for name in names if name not in words]
        block = np.empty((text.n_rows, len(plain)), order="F")
        labels = np.empty(0 if target is None else text.n_rows)
        marks = [0] * len(plain)
        cut = plain if target is None else [*plain, target]
        for rows, cells in text.cells(cut, strict=public):
            for k in range(len(plain)):
                marks[k] |= text.numbers(block[rows, k], *cells[k], closely=not public)
            if target is not None:
                text.numbers(labels[rows], *cells[-1], closely=True, classes=asked.classes)
        if public:  # columns are what they seem to be, all cells together
            words |= {name for name, mark in zip(plain, marks, strict=True) if text.is_text(mark)}
        found: dict[str, Numbers | Levels | Trouble] = {
            name: Numbers(name, block[:, k]) for k, name in enumerate(plain) if name not in words
        }
        for name, series in text.series([name for name in names if name in words], public):
            if levels is not None:
                found[name] = read_declared(series, levels[name])
            else:
                as_levels = name in asked.categorical
                found[name] = read_series(
                    series, as_levels=as_levels, typed=False, decimal_comma=text.comma
                )
        read = [found[name] for name in names]
        columns = tuple(one for one in read if not isinstance(one, Trouble))
        troubles = tuple(one for one in read if isinstance(one, Trouble))
        whole = block if words.isdisjoint(plain) else None
        return Columns(columns, text.n_rows, troubles, whole), labels


class TextLines:
    """The bytes of a text file, and where its lines end."""

    def __init__(self, table: Table, content: bytes, separator: str, row_names: bool) -> None:
        self.path, self.names, self.row_names = table.path, table.names, row_names
        self.separator, self.comma = ord(separator), separator == ";"
        self.content, self.data = content, np.frombuffer(content, dtype=np.uint8)
        self.start = content.find(b"\n") + 1 or len(content)
        self.ends = line_ends(self.data, self.start)
        self.n_rows = self.ends.size

    def cells(
        self, names: Sequence[str], *, strict: bool
    ) -> Iterator[tuple[slice, list[tuple[np.ndarray, np.ndarray]]]]:
        """Some rows at a time, and where the cells of these columns begin and end in them.

        With `strict` a line that does not fit is refused; its cells are empty otherwise.
        """
        place = {name: k for k, name in enumerate(self.names, start=int(self.row_names))}
        slots = np.full(len(self.names) + self.row_names, -1)
        for k, name in enumerate(names):
            slots[place[name]] = k
        step = min(self.n_rows, max(1, _CELLS // max(1, len(names))))
        start = self.start
        for first in range(0, self.n_rows, step):
            lines = self.ends[first : first + step]
            begins, ends = np.empty((2, len(names), lines.size), dtype=np.int64)
            fits = np.empty(lines.size, dtype=bool)
            split_lines(self.data, start, lines, self.separator, slots, begins, ends, fits)
            if strict and not fits.all():
                raise ValueError(
                    f"{escaped(self.path)}: line {first + int(np.argmin(fits)) + 2} does not fit "
                    "the header, because it has more fields or a quote that does not open and "
                    "close one; if each line begins with the name of its row, as R's write.table "
                    "writes it, add --row-names"
                )
            start = lines[-1] + 1
            yield slice(first, first + lines.size), list(zip(begins, ends, strict=True))

    def numbers(
        self,
        values: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        *,
        closely: bool,
        classes: Sequence[str] | None = None,
    ) -> int:
        """Read cells as numbers, and return the marks of what they hold.

        What is not plainly a number is read as declared if one looks `closely`. With `classes` all
        cells are labels of these.
        """
        other = np.empty(begins.size, dtype=bool)
        marks = numbers(self.data, begins, ends, self.comma, _MISSING, values, other)
        if classes is not None:
            other[:] = True
        if classes is not None or (closely and marks & WORD):
            cells = self._series("", begins[other], ends[other])
            found = read_labels(cells, classes, decimal_comma=self.comma)
            if isinstance(found, Numbers):  # as texts always are
                values[other] = found.values
        return marks

    def is_text(self, marks: int) -> bool:
        """Whether a column holds something else than numbers that are all written in one way."""
        return bool(marks & WORD) or marks == POINT | COMMA

    def series(self, names: Sequence[str], strict: bool) -> Iterator[tuple[str, pl.Series]]:
        """Columns of text; with `strict` bytes that are not UTF-8 are refused."""
        import polars as pl

        parts: dict[str, list[pl.Series]] = {name: [] for name in names}
        for rows, cells in self.cells(names, strict=strict) if names else ():
            for name, (begins, ends) in zip(names, cells, strict=True):
                line = rows.start + 2 if strict else None
                parts[name].append(self._series(name, begins, ends, line))
        for name in names:
            yield name, pl.concat(parts.pop(name))

    def _series(
        self, name: str, begins: np.ndarray, ends: np.ndarray, line: int | None = None
    ) -> pl.Series:
        """Cells as text; if these are the lines from `line` on, bytes must be UTF-8."""
        import polars as pl

        whole, found = self.content, []
        errors = "replace" if line is None else "strict"
        try:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                cell = whole[begin:end]
                if b'"' in cell and whole[begin - 1] == _QUOTE:
                    cell = cell.replace(b'""', b'"')
                found.append(cell.decode("utf-8", errors))
        except UnicodeDecodeError:
            raise ValueError(
                f"{escaped(self.path)}: line {(line or 0) + len(found)} is not text in UTF-8; save "
                "the file in this encoding"
            ) from None
        return pl.Series(name, found, dtype=pl.String)


class Header(NamedTuple):
    """What the first line of a text file says.

    `names`: names of the columns; one without a name is called as pandas does, ``Unnamed: 0``.
    `separator`: what separates fields.
    """

    names: tuple[str, ...]
    separator: str


def read_header(path: Path) -> Header:
    """Read the first line of a text file, and find what separates its fields.

    It is the separator that gives the most columns; the one that the ending of the name says in
    case of doubt. No other line is looked at.
    """
    with open_regular(path) as file:
        line = file.readline(_LONGEST_HEADER)
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    separators = (usual, *(one for one in _SEPARATORS if one != usual))
    try:
        if len(line) == _LONGEST_HEADER:
            raise ValueError
        text = line.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
        found = {one: names for one in separators if (names := _fields(text, one)) is not None}
        separator = max(found, key=lambda one: len(found[one]))
    except ValueError:
        raise ValueError(
            f"{escaped(path)} cannot be read as {path.suffix.lstrip('.').lower()}: its first line "
            "must hold the names of the columns, as text in UTF-8 with quotes that close"
        ) from None
    names = (name or f"Unnamed: {k}" for k, name in enumerate(found[separator]))
    return Header(tuple(names), separator)


def _fields(line: str, separator: str) -> list[str] | None:
    """The fields of the line, or None if its quotes do not fit this separator."""
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return None
