"""Text files: each line is one record, and is read on its own."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privasso._files import fits_memory, open_regular, unreadable
from privasso._text import escaped
from privasso.encoding import Columns, Levels, Numbers, Trouble, read_declared, read_series
from privasso.tables._table import Asked, Table, check_size

if TYPE_CHECKING:
    from privasso.tables._text_lines import TextLines


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
        from privasso.tables._text_lines import TextLines  # compiled code is loaded now, not before

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


#: Longest header of a text file, in bytes.
_LONGEST_HEADER = 1 << 26
_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True)
class Header:
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
