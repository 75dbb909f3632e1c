"""The header of a text file: what separates its fields, and what its columns are called."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privasso._files import open_regular
from privasso._text import is_unicode
from privasso.tables._table import unreadable

#: Longest header of a text file, in characters.
_LONGEST_HEADER = 1 << 26
_SEPARATORS = (",", ";", "\t")


@dataclass(frozen=True)
class Header:
    """What the first lines of a text file say.

    Attributes
    ----------
    names : tuple of str
        Names of the columns; one without a name is called as pandas does, ``Unnamed: 0``.
    separator : str
        What separates fields.
    row_names : bool
        Whether rows begin with a name for which the header has no field, as R writes them.
    """

    names: tuple[str, ...]
    separator: str
    row_names: bool

    @property
    def fields(self) -> int:
        """Fields of the header line."""
        return len(self.names) - self.row_names


def read_header(path: Path) -> Header:
    r"""Read the header and the first row of a text file, and find what separates their fields.

    It is the separator that gives the most columns, if the first row has as many fields as the
    header or one more; the one that the ending of the name says in case of doubt.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "data.csv")
    ...     _ = file.write_text('"age";"weight"\n"1";61;80,5\n')
    ...     read_header(file)
    Header(names=('Unnamed: 0', 'age', 'weight'), separator=';', row_names=True)
    """
    usual = "\t" if path.suffix.lower() == ".tsv" else ","
    separators = (usual, *(one for one in _SEPARATORS if one != usual))
    found = [header for one in separators if (header := _header(path, one)) is not None]
    found = [header for header in found if header.separator == usual or header.fields > 1]
    if not found:  # polars finds out what is wrong
        return Header(_first_rows(path, usual)[0], usual, False)
    return max(found, key=lambda header: header.fields)


def _header(path: Path, separator: str) -> Header | None:
    """Return the header with this separator, or None if the first row does not fit it."""
    names, row = _first_rows(path, separator)
    extra = 0 if row is None else len(row) - len(names)
    if extra == 1 and row is not None and row[-1] == "":
        return None  # a separator at the end of each row is no name at its beginning
    if extra not in (0, 1) or not names:
        return None
    named = ("",) * extra + names
    return Header(
        tuple(name or f"Unnamed: {k}" for k, name in enumerate(named)), separator, extra == 1
    )


def _first_rows(path: Path, separator: str) -> tuple[tuple[str, ...], list[str] | None]:
    """Fields of the header, and of the first row if there is one that can be read."""
    try:
        with open_regular(path) as file:
            # Bytes that are no text may belong to any row; only the header must be readable here.
            text = io.TextIOWrapper(
                file, encoding="utf-8-sig", errors="surrogateescape", newline=""
            )
            rows = csv.reader(_lines(text), delimiter=separator)
            names = tuple(next(rows, []))
            if not all(map(is_unicode, names)):
                raise unreadable(path)
            try:
                row = next((row for row in rows if row), None)
            except csv.Error:  # polars finds out what is wrong with it
                row = None
            return names, row
    except csv.Error:
        raise unreadable(path) from None


def _lines(text: io.TextIOBase) -> Iterator[str]:
    """Lines of a file, as many as a header may have."""
    left = _LONGEST_HEADER
    while line := text.readline(left):
        left -= len(line)
        if left <= 0:
            raise csv.Error("the header does not end")
        yield line
