"""The header of a text file: what separates its fields, and what its columns are called."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from privasso._files import open_regular
from privasso._text import escaped

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
