"""Files that polars reads, in a process of its own: CSV, Parquet, Arrow."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from privasso._files import open_regular
from privasso._text import escaped
from privasso.tables._reader import Reader, ReadFailedError
from privasso.tables._table import (
    Table,
    check_finite,
    check_size,
    fill_labels,
    missing_value,
    unreadable,
)

#: Longest header of a text file, in characters.
_LONGEST_HEADER = 1 << 26


class FrameTable(Table):
    """A file that polars reads: Parquet, or an Arrow IPC file (Feather version 2), by `form`."""

    def __init__(self, path: Path, form: str) -> None:
        self._form = form
        self._reader: Reader | None = None
        super().__init__(path, self._names(path))

    def _names(self, path: Path) -> list[str]:
        try:
            return self._living().ask(format=self._form, path=str(path))["names"]
        except ReadFailedError:
            raise unreadable(path) from None

    def _read(self, names: list[str], target: str | None) -> tuple[np.ndarray, np.ndarray]:
        columns = names if target is None else [*names, target]
        reader = self._living()
        try:
            answer = reader.ask(format=self._form, path=str(self.path), columns=columns)
            m = answer["rows"]
            if m == 0:
                raise ValueError(f"{escaped(self.path)} has no rows")
            check_size(self.path, m, len(columns))
            matrix = np.empty((m, len(names)), order="F")
            labels = np.empty(m if target is not None else 0)
            for k, name in enumerate(names):
                _take(reader, name, matrix[:, k])
            if target is not None:
                fill_labels(partial(_take, reader, target, labels))
            return matrix, labels
        except ReadFailedError:
            raise unreadable(self.path) from None
        except BaseException:
            reader.forget()
            raise

    def _living(self) -> Reader:
        """The process that reads the file; a new one if there is none that can answer."""
        if self._reader is None or not self._reader.alive:
            self._reader = Reader()
        return self._reader


class CsvTable(FrameTable):
    """Comma- or tab-separated text with a header, by `form`."""

    def _names(self, path: Path) -> list[str]:
        separator = "\t" if self._form == "tsv" else ","
        try:
            with open_regular(path) as file:
                text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
                return next(csv.reader(_lines(text), delimiter=separator), [])
        except (UnicodeDecodeError, csv.Error):
            raise unreadable(path) from None


def _take(reader: Reader, name: str, values: np.ndarray) -> None:
    """Take a column from the answer of the process, or say what is wrong with it."""
    answer = reader.next()
    if "wrong" not in answer:
        reader.numbers(values)
        check_finite(values, name)
        return
    what, row = answer["wrong"], answer["row"]
    if what == "missing":
        raise missing_value(name, row)
    where = "" if row is None else f", first in row {row + 1}"
    what = "values that are no numbers" if what == "values" else what
    raise ValueError(
        f"column {name!r} holds {what}{where}; turn it into numbers, or leave it out with --exclude"
    )


def _lines(text: io.TextIOBase) -> Iterator[str]:
    """Lines of a file, as many as a header may have."""
    left = _LONGEST_HEADER
    while line := text.readline(left):
        left -= len(line)
        if left <= 0:
            raise csv.Error("the header does not end")
        yield line
